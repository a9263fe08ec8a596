from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from muster.v1 import pod_shape_pb2 as _pod_shape_pb2
from muster.v1 import reason_pb2 as _reason_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GangMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GANG_MODE_UNSPECIFIED: _ClassVar[GangMode]
    GANG_MODE_STRICT: _ClassVar[GangMode]
    GANG_MODE_NON_STRICT: _ClassVar[GangMode]

class MatchPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATCH_POLICY_UNSPECIFIED: _ClassVar[MatchPolicy]
    MATCH_POLICY_ONCE_SATISFIED: _ClassVar[MatchPolicy]
    MATCH_POLICY_ONLY_WAITING: _ClassVar[MatchPolicy]
    MATCH_POLICY_WAITING_AND_RUNNING: _ClassVar[MatchPolicy]
    MATCH_POLICY_WAITING_RUNNING_SUCCEED: _ClassVar[MatchPolicy]

class TimeoutAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIMEOUT_ACTION_UNSPECIFIED: _ClassVar[TimeoutAction]
    TIMEOUT_ACTION_FAIL: _ClassVar[TimeoutAction]
    TIMEOUT_ACTION_REQUEUE: _ClassVar[TimeoutAction]

class MemberFailureAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_FAILURE_ACTION_UNSPECIFIED: _ClassVar[MemberFailureAction]
    MEMBER_FAILURE_ACTION_KEEP: _ClassVar[MemberFailureAction]
    MEMBER_FAILURE_ACTION_EVICT_ALL: _ClassVar[MemberFailureAction]
GANG_MODE_UNSPECIFIED: GangMode
GANG_MODE_STRICT: GangMode
GANG_MODE_NON_STRICT: GangMode
MATCH_POLICY_UNSPECIFIED: MatchPolicy
MATCH_POLICY_ONCE_SATISFIED: MatchPolicy
MATCH_POLICY_ONLY_WAITING: MatchPolicy
MATCH_POLICY_WAITING_AND_RUNNING: MatchPolicy
MATCH_POLICY_WAITING_RUNNING_SUCCEED: MatchPolicy
TIMEOUT_ACTION_UNSPECIFIED: TimeoutAction
TIMEOUT_ACTION_FAIL: TimeoutAction
TIMEOUT_ACTION_REQUEUE: TimeoutAction
MEMBER_FAILURE_ACTION_UNSPECIFIED: MemberFailureAction
MEMBER_FAILURE_ACTION_KEEP: MemberFailureAction
MEMBER_FAILURE_ACTION_EVICT_ALL: MemberFailureAction

class Gang(_message.Message):
    __slots__ = ("namespace", "name", "phase", "sources", "rules", "counts", "satisfied", "timed_out", "priority", "requeues", "create_time", "reason", "warnings", "members")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[Gang.Phase]
        PHASE_PENDING: _ClassVar[Gang.Phase]
        PHASE_PRE_SCHEDULING: _ClassVar[Gang.Phase]
        PHASE_SCHEDULING: _ClassVar[Gang.Phase]
        PHASE_SCHEDULED: _ClassVar[Gang.Phase]
        PHASE_RUNNING: _ClassVar[Gang.Phase]
        PHASE_UNKNOWN: _ClassVar[Gang.Phase]
        PHASE_FINISHED: _ClassVar[Gang.Phase]
        PHASE_FAILED: _ClassVar[Gang.Phase]
    PHASE_UNSPECIFIED: Gang.Phase
    PHASE_PENDING: Gang.Phase
    PHASE_PRE_SCHEDULING: Gang.Phase
    PHASE_SCHEDULING: Gang.Phase
    PHASE_SCHEDULED: Gang.Phase
    PHASE_RUNNING: Gang.Phase
    PHASE_UNKNOWN: Gang.Phase
    PHASE_FINISHED: Gang.Phase
    PHASE_FAILED: Gang.Phase
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SOURCE_UNSPECIFIED: _ClassVar[Gang.Source]
        SOURCE_KOORDINATOR_ANNOTATIONS: _ClassVar[Gang.Source]
        SOURCE_POD_GROUP_ANNOTATIONS: _ClassVar[Gang.Source]
        SOURCE_POD_GROUP_SIGS: _ClassVar[Gang.Source]
        SOURCE_POD_GROUP_X: _ClassVar[Gang.Source]
        SOURCE_POD_GROUP_NATIVE: _ClassVar[Gang.Source]
        SOURCE_API: _ClassVar[Gang.Source]
        SOURCE_POD_GROUP_KAI: _ClassVar[Gang.Source]
        SOURCE_POD_GROUP_VOLCANO: _ClassVar[Gang.Source]
        SOURCE_OWNER: _ClassVar[Gang.Source]
    SOURCE_UNSPECIFIED: Gang.Source
    SOURCE_KOORDINATOR_ANNOTATIONS: Gang.Source
    SOURCE_POD_GROUP_ANNOTATIONS: Gang.Source
    SOURCE_POD_GROUP_SIGS: Gang.Source
    SOURCE_POD_GROUP_X: Gang.Source
    SOURCE_POD_GROUP_NATIVE: Gang.Source
    SOURCE_API: Gang.Source
    SOURCE_POD_GROUP_KAI: Gang.Source
    SOURCE_POD_GROUP_VOLCANO: Gang.Source
    SOURCE_OWNER: Gang.Source
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SATISFIED_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REQUEUES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    phase: Gang.Phase
    sources: _containers.RepeatedScalarFieldContainer[Gang.Source]
    rules: GangRules
    counts: GangCounts
    satisfied: bool
    timed_out: bool
    priority: int
    requeues: int
    create_time: _timestamp_pb2.Timestamp
    reason: _reason_pb2.Reason
    warnings: _containers.RepeatedScalarFieldContainer[str]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., phase: _Optional[_Union[Gang.Phase, str]] = ..., sources: _Optional[_Iterable[_Union[Gang.Source, str]]] = ..., rules: _Optional[_Union[GangRules, _Mapping]] = ..., counts: _Optional[_Union[GangCounts, _Mapping]] = ..., satisfied: bool = ..., timed_out: bool = ..., priority: _Optional[int] = ..., requeues: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ...) -> None: ...

class GangRules(_message.Message):
    __slots__ = ("min_member", "total_number", "wait_timeout", "mode", "match_policy", "queue", "on_timeout", "on_member_failure", "min_resources", "group", "topology", "subgroups", "preemptible", "expected_duration")
    class MinResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MIN_MEMBER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NUMBER_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MATCH_POLICY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ON_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ON_MEMBER_FAILURE_FIELD_NUMBER: _ClassVar[int]
    MIN_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    SUBGROUPS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_DURATION_FIELD_NUMBER: _ClassVar[int]
    min_member: int
    total_number: int
    wait_timeout: _duration_pb2.Duration
    mode: GangMode
    match_policy: MatchPolicy
    queue: str
    on_timeout: TimeoutAction
    on_member_failure: MemberFailureAction
    min_resources: _containers.ScalarMap[str, str]
    group: _containers.RepeatedScalarFieldContainer[str]
    topology: Topology
    subgroups: _containers.RepeatedCompositeFieldContainer[Subgroup]
    preemptible: bool
    expected_duration: _duration_pb2.Duration
    def __init__(self, min_member: _Optional[int] = ..., total_number: _Optional[int] = ..., wait_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., mode: _Optional[_Union[GangMode, str]] = ..., match_policy: _Optional[_Union[MatchPolicy, str]] = ..., queue: _Optional[str] = ..., on_timeout: _Optional[_Union[TimeoutAction, str]] = ..., on_member_failure: _Optional[_Union[MemberFailureAction, str]] = ..., min_resources: _Optional[_Mapping[str, str]] = ..., group: _Optional[_Iterable[str]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., subgroups: _Optional[_Iterable[_Union[Subgroup, _Mapping]]] = ..., preemptible: bool = ..., expected_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Subgroup(_message.Message):
    __slots__ = ("name", "parent", "minimum", "leaf", "topology", "pending", "waiting", "placed", "future_members")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    LEAF_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    FUTURE_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    minimum: int
    leaf: bool
    topology: Topology
    pending: int
    waiting: int
    placed: int
    future_members: int
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., minimum: _Optional[int] = ..., leaf: bool = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., pending: _Optional[int] = ..., waiting: _Optional[int] = ..., placed: _Optional[int] = ..., future_members: _Optional[int] = ...) -> None: ...

class GangCounts(_message.Message):
    __slots__ = ("members", "waiting", "binding", "bound", "running", "succeeded", "failed", "planned", "held")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    members: int
    waiting: int
    binding: int
    bound: int
    running: int
    succeeded: int
    failed: int
    planned: int
    held: int
    def __init__(self, members: _Optional[int] = ..., waiting: _Optional[int] = ..., binding: _Optional[int] = ..., bound: _Optional[int] = ..., running: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., planned: _Optional[int] = ..., held: _Optional[int] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("uid", "name", "state", "node", "priority", "reason", "binding", "subgroup")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Member.State]
        STATE_PENDING: _ClassVar[Member.State]
        STATE_WAITING: _ClassVar[Member.State]
        STATE_BINDING: _ClassVar[Member.State]
        STATE_BOUND: _ClassVar[Member.State]
        STATE_RUNNING: _ClassVar[Member.State]
        STATE_SUCCEEDED: _ClassVar[Member.State]
        STATE_FAILED: _ClassVar[Member.State]
        STATE_TERMINATING: _ClassVar[Member.State]
    STATE_UNSPECIFIED: Member.State
    STATE_PENDING: Member.State
    STATE_WAITING: Member.State
    STATE_BINDING: Member.State
    STATE_BOUND: Member.State
    STATE_RUNNING: Member.State
    STATE_SUCCEEDED: Member.State
    STATE_FAILED: Member.State
    STATE_TERMINATING: Member.State
    UID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    SUBGROUP_FIELD_NUMBER: _ClassVar[int]
    uid: str
    name: str
    state: Member.State
    node: str
    priority: int
    reason: _reason_pb2.Reason
    binding: Binding
    subgroup: str
    def __init__(self, uid: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[Member.State, str]] = ..., node: _Optional[str] = ..., priority: _Optional[int] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ..., binding: _Optional[_Union[Binding, _Mapping]] = ..., subgroup: _Optional[str] = ...) -> None: ...

class Binding(_message.Message):
    __slots__ = ("phase", "node", "message", "attempts", "next_try_time")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[Binding.Phase]
        PHASE_PENDING: _ClassVar[Binding.Phase]
        PHASE_SUCCEEDED: _ClassVar[Binding.Phase]
        PHASE_FAILED: _ClassVar[Binding.Phase]
    PHASE_UNSPECIFIED: Binding.Phase
    PHASE_PENDING: Binding.Phase
    PHASE_SUCCEEDED: Binding.Phase
    PHASE_FAILED: Binding.Phase
    PHASE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TRY_TIME_FIELD_NUMBER: _ClassVar[int]
    phase: Binding.Phase
    node: str
    message: str
    attempts: int
    next_try_time: _timestamp_pb2.Timestamp
    def __init__(self, phase: _Optional[_Union[Binding.Phase, str]] = ..., node: _Optional[str] = ..., message: _Optional[str] = ..., attempts: _Optional[int] = ..., next_try_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GangSpec(_message.Message):
    __slots__ = ("namespace", "name", "min_member", "total_number", "wait_timeout", "mode", "match_policy", "on_timeout", "on_member_failure", "min_resources", "priority", "group", "subgroups", "topology", "queue", "preemptible", "expected_duration")
    class MinResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_MEMBER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NUMBER_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MATCH_POLICY_FIELD_NUMBER: _ClassVar[int]
    ON_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ON_MEMBER_FAILURE_FIELD_NUMBER: _ClassVar[int]
    MIN_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SUBGROUPS_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_DURATION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    min_member: int
    total_number: int
    wait_timeout: _duration_pb2.Duration
    mode: GangMode
    match_policy: MatchPolicy
    on_timeout: TimeoutAction
    on_member_failure: MemberFailureAction
    min_resources: _containers.ScalarMap[str, str]
    priority: int
    group: _containers.RepeatedScalarFieldContainer[str]
    subgroups: _containers.RepeatedCompositeFieldContainer[SubgroupSpec]
    topology: Topology
    queue: str
    preemptible: bool
    expected_duration: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., min_member: _Optional[int] = ..., total_number: _Optional[int] = ..., wait_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., mode: _Optional[_Union[GangMode, str]] = ..., match_policy: _Optional[_Union[MatchPolicy, str]] = ..., on_timeout: _Optional[_Union[TimeoutAction, str]] = ..., on_member_failure: _Optional[_Union[MemberFailureAction, str]] = ..., min_resources: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., group: _Optional[_Iterable[str]] = ..., subgroups: _Optional[_Iterable[_Union[SubgroupSpec, _Mapping]]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., queue: _Optional[str] = ..., preemptible: bool = ..., expected_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Topology(_message.Message):
    __slots__ = ("required", "preferred", "spread")
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    required: str
    preferred: str
    spread: str
    def __init__(self, required: _Optional[str] = ..., preferred: _Optional[str] = ..., spread: _Optional[str] = ...) -> None: ...

class SubgroupSpec(_message.Message):
    __slots__ = ("name", "parent", "min_member", "topology", "members")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    MIN_MEMBER_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    min_member: int
    topology: Topology
    members: MemberTemplate
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., min_member: _Optional[int] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., members: _Optional[_Union[MemberTemplate, _Mapping]] = ...) -> None: ...

class MemberTemplate(_message.Message):
    __slots__ = ("requests", "node_selector", "tolerations")
    class RequestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.ScalarMap[str, str]
    node_selector: _containers.ScalarMap[str, str]
    tolerations: _containers.RepeatedCompositeFieldContainer[_pod_shape_pb2.Toleration]
    def __init__(self, requests: _Optional[_Mapping[str, str]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., tolerations: _Optional[_Iterable[_Union[_pod_shape_pb2.Toleration, _Mapping]]] = ...) -> None: ...

class CreateGangRequest(_message.Message):
    __slots__ = ("request_id", "gang")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    gang: GangSpec
    def __init__(self, request_id: _Optional[str] = ..., gang: _Optional[_Union[GangSpec, _Mapping]] = ...) -> None: ...

class UpdateGangRequest(_message.Message):
    __slots__ = ("request_id", "gang", "update_mask")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    gang: GangSpec
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, request_id: _Optional[str] = ..., gang: _Optional[_Union[GangSpec, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class DeleteGangRequest(_message.Message):
    __slots__ = ("request_id", "namespace", "name")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    namespace: str
    name: str
    def __init__(self, request_id: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteGangResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetGangRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ListGangsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGangsResponse(_message.Message):
    __slots__ = ("gangs", "next_page_token")
    GANGS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    gangs: _containers.RepeatedCompositeFieldContainer[Gang]
    next_page_token: str
    def __init__(self, gangs: _Optional[_Iterable[_Union[Gang, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchGangsRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class GangEvent(_message.Message):
    __slots__ = ("upserted", "removed", "synced", "resync")
    UPSERTED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    upserted: Gang
    removed: str
    synced: bool
    resync: bool
    def __init__(self, upserted: _Optional[_Union[Gang, _Mapping]] = ..., removed: _Optional[str] = ..., synced: bool = ..., resync: bool = ...) -> None: ...

class ExplainGangRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class QueuedGang(_message.Message):
    __slots__ = ("namespace", "name", "queue", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    queue: str
    reason: _reason_pb2.Reason
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., queue: _Optional[str] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ...) -> None: ...

class ExplainGangResponse(_message.Message):
    __slots__ = ("text", "gang", "queue_position", "queue_length", "ahead", "wait_start_time")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    WAIT_START_TIME_FIELD_NUMBER: _ClassVar[int]
    text: str
    gang: Gang
    queue_position: int
    queue_length: int
    ahead: _containers.RepeatedCompositeFieldContainer[QueuedGang]
    wait_start_time: _timestamp_pb2.Timestamp
    def __init__(self, text: _Optional[str] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ..., queue_position: _Optional[int] = ..., queue_length: _Optional[int] = ..., ahead: _Optional[_Iterable[_Union[QueuedGang, _Mapping]]] = ..., wait_start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ExplainPodRequest(_message.Message):
    __slots__ = ("namespace", "name", "uid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ...) -> None: ...

class ExplainPodResponse(_message.Message):
    __slots__ = ("text", "namespace", "pod", "gang")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    text: str
    namespace: str
    pod: Member
    gang: Gang
    def __init__(self, text: _Optional[str] = ..., namespace: _Optional[str] = ..., pod: _Optional[_Union[Member, _Mapping]] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ...) -> None: ...
