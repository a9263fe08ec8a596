from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Gang(_message.Message):
    __slots__ = ("namespace", "name", "phase", "source", "rules", "counts", "satisfied", "timed_out", "priority", "requeues", "created_unix_ms", "reason", "warnings", "members")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SATISFIED_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REQUEUES_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    phase: str
    source: str
    rules: GangRules
    counts: GangCounts
    satisfied: bool
    timed_out: bool
    priority: int
    requeues: int
    created_unix_ms: int
    reason: Reason
    warnings: _containers.RepeatedScalarFieldContainer[str]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., phase: _Optional[str] = ..., source: _Optional[str] = ..., rules: _Optional[_Union[GangRules, _Mapping]] = ..., counts: _Optional[_Union[GangCounts, _Mapping]] = ..., satisfied: bool = ..., timed_out: bool = ..., priority: _Optional[int] = ..., requeues: _Optional[int] = ..., created_unix_ms: _Optional[int] = ..., reason: _Optional[_Union[Reason, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ...) -> None: ...

class GangRules(_message.Message):
    __slots__ = ("min_member", "total_number", "wait_time_ms", "mode", "match_policy", "queue", "on_timeout", "on_member_failure", "min_resources", "group", "topology", "subgroups", "preemptible", "duration_ms")
    class MinResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MIN_MEMBER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NUMBER_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
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
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    min_member: int
    total_number: int
    wait_time_ms: int
    mode: str
    match_policy: str
    queue: str
    on_timeout: str
    on_member_failure: str
    min_resources: _containers.ScalarMap[str, str]
    group: _containers.RepeatedScalarFieldContainer[str]
    topology: Topology
    subgroups: _containers.RepeatedCompositeFieldContainer[Subgroup]
    preemptible: bool
    duration_ms: int
    def __init__(self, min_member: _Optional[int] = ..., total_number: _Optional[int] = ..., wait_time_ms: _Optional[int] = ..., mode: _Optional[str] = ..., match_policy: _Optional[str] = ..., queue: _Optional[str] = ..., on_timeout: _Optional[str] = ..., on_member_failure: _Optional[str] = ..., min_resources: _Optional[_Mapping[str, str]] = ..., group: _Optional[_Iterable[str]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., subgroups: _Optional[_Iterable[_Union[Subgroup, _Mapping]]] = ..., preemptible: bool = ..., duration_ms: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("children", "waiting", "binding", "bound", "running", "succeeded", "failed", "planned", "held")
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    children: int
    waiting: int
    binding: int
    bound: int
    running: int
    succeeded: int
    failed: int
    planned: int
    held: int
    def __init__(self, children: _Optional[int] = ..., waiting: _Optional[int] = ..., binding: _Optional[int] = ..., bound: _Optional[int] = ..., running: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., planned: _Optional[int] = ..., held: _Optional[int] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("code", "text", "since_unix_ms", "would_help")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    WOULD_HELP_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    since_unix_ms: int
    would_help: str
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ..., since_unix_ms: _Optional[int] = ..., would_help: _Optional[str] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("uid", "name", "state", "node", "priority", "reason", "binding", "subgroup")
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
    state: str
    node: str
    priority: int
    reason: Reason
    binding: Binding
    subgroup: str
    def __init__(self, uid: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[str] = ..., node: _Optional[str] = ..., priority: _Optional[int] = ..., reason: _Optional[_Union[Reason, _Mapping]] = ..., binding: _Optional[_Union[Binding, _Mapping]] = ..., subgroup: _Optional[str] = ...) -> None: ...

class Binding(_message.Message):
    __slots__ = ("phase", "node", "reason", "attempts")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    phase: str
    node: str
    reason: str
    attempts: int
    def __init__(self, phase: _Optional[str] = ..., node: _Optional[str] = ..., reason: _Optional[str] = ..., attempts: _Optional[int] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("name", "unschedulable", "allocatable", "used", "reserved", "free", "refused", "stale_since_unix_ms", "stale_too_long")
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ReservedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class FreeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    STALE_SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    STALE_TOO_LONG_FIELD_NUMBER: _ClassVar[int]
    name: str
    unschedulable: bool
    allocatable: _containers.ScalarMap[str, str]
    used: _containers.ScalarMap[str, str]
    reserved: _containers.ScalarMap[str, str]
    free: _containers.ScalarMap[str, str]
    refused: str
    stale_since_unix_ms: int
    stale_too_long: bool
    def __init__(self, name: _Optional[str] = ..., unschedulable: bool = ..., allocatable: _Optional[_Mapping[str, str]] = ..., used: _Optional[_Mapping[str, str]] = ..., reserved: _Optional[_Mapping[str, str]] = ..., free: _Optional[_Mapping[str, str]] = ..., refused: _Optional[str] = ..., stale_since_unix_ms: _Optional[int] = ..., stale_too_long: bool = ...) -> None: ...

class GangSpec(_message.Message):
    __slots__ = ("namespace", "name", "min_member", "total_number", "wait_time_ms", "mode", "match_policy", "on_timeout", "on_member_failure", "min_resources", "priority", "group", "subgroups", "topology", "queue", "preemptible", "duration_ms")
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
    WAIT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
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
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    min_member: int
    total_number: int
    wait_time_ms: int
    mode: str
    match_policy: str
    on_timeout: str
    on_member_failure: str
    min_resources: _containers.ScalarMap[str, str]
    priority: int
    group: _containers.RepeatedScalarFieldContainer[str]
    subgroups: _containers.RepeatedCompositeFieldContainer[SubgroupSpec]
    topology: Topology
    queue: str
    preemptible: bool
    duration_ms: int
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., min_member: _Optional[int] = ..., total_number: _Optional[int] = ..., wait_time_ms: _Optional[int] = ..., mode: _Optional[str] = ..., match_policy: _Optional[str] = ..., on_timeout: _Optional[str] = ..., on_member_failure: _Optional[str] = ..., min_resources: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., group: _Optional[_Iterable[str]] = ..., subgroups: _Optional[_Iterable[_Union[SubgroupSpec, _Mapping]]] = ..., topology: _Optional[_Union[Topology, _Mapping]] = ..., queue: _Optional[str] = ..., preemptible: bool = ..., duration_ms: _Optional[int] = ...) -> None: ...

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
    class Toleration(_message.Message):
        __slots__ = ("key", "operator", "value", "effect")
        KEY_FIELD_NUMBER: _ClassVar[int]
        OPERATOR_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        EFFECT_FIELD_NUMBER: _ClassVar[int]
        key: str
        operator: str
        value: str
        effect: str
        def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...
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
    tolerations: _containers.RepeatedCompositeFieldContainer[MemberTemplate.Toleration]
    def __init__(self, requests: _Optional[_Mapping[str, str]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., tolerations: _Optional[_Iterable[_Union[MemberTemplate.Toleration, _Mapping]]] = ...) -> None: ...

class CreateGangRequest(_message.Message):
    __slots__ = ("request_id", "gang")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    gang: GangSpec
    def __init__(self, request_id: _Optional[str] = ..., gang: _Optional[_Union[GangSpec, _Mapping]] = ...) -> None: ...

class UpdateGangRequest(_message.Message):
    __slots__ = ("request_id", "gang")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    gang: GangSpec
    def __init__(self, request_id: _Optional[str] = ..., gang: _Optional[_Union[GangSpec, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListGangsResponse(_message.Message):
    __slots__ = ("gangs",)
    GANGS_FIELD_NUMBER: _ClassVar[int]
    gangs: _containers.RepeatedCompositeFieldContainer[Gang]
    def __init__(self, gangs: _Optional[_Iterable[_Union[Gang, _Mapping]]] = ...) -> None: ...

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

class GangInLine(_message.Message):
    __slots__ = ("namespace", "name", "queue", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    queue: str
    reason: Reason
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., queue: _Optional[str] = ..., reason: _Optional[_Union[Reason, _Mapping]] = ...) -> None: ...

class ExplainGangResponse(_message.Message):
    __slots__ = ("text", "gang", "place", "places", "ahead", "waits_since_unix_ms")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    WAITS_SINCE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    text: str
    gang: Gang
    place: int
    places: int
    ahead: _containers.RepeatedCompositeFieldContainer[GangInLine]
    waits_since_unix_ms: int
    def __init__(self, text: _Optional[str] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ..., place: _Optional[int] = ..., places: _Optional[int] = ..., ahead: _Optional[_Iterable[_Union[GangInLine, _Mapping]]] = ..., waits_since_unix_ms: _Optional[int] = ...) -> None: ...

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

class GetNodeRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ...) -> None: ...

class WatchNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NodeEvent(_message.Message):
    __slots__ = ("upserted", "removed", "synced", "resync")
    UPSERTED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    upserted: Node
    removed: str
    synced: bool
    resync: bool
    def __init__(self, upserted: _Optional[_Union[Node, _Mapping]] = ..., removed: _Optional[str] = ..., synced: bool = ..., resync: bool = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "parent", "leaf", "quota", "limit", "over_quota_weight", "priority", "max_applications", "sort", "used", "waiting", "share", "running_gangs", "waiting_gangs")
    class QuotaEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LimitEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OverQuotaWeightEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class WaitingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ShareEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LEAF_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OVER_QUOTA_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_GANGS_FIELD_NUMBER: _ClassVar[int]
    WAITING_GANGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    leaf: bool
    quota: _containers.ScalarMap[str, str]
    limit: _containers.ScalarMap[str, str]
    over_quota_weight: _containers.ScalarMap[str, int]
    priority: int
    max_applications: int
    sort: str
    used: _containers.ScalarMap[str, str]
    waiting: _containers.ScalarMap[str, str]
    share: _containers.ScalarMap[str, str]
    running_gangs: int
    waiting_gangs: int
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., leaf: bool = ..., quota: _Optional[_Mapping[str, str]] = ..., limit: _Optional[_Mapping[str, str]] = ..., over_quota_weight: _Optional[_Mapping[str, int]] = ..., priority: _Optional[int] = ..., max_applications: _Optional[int] = ..., sort: _Optional[str] = ..., used: _Optional[_Mapping[str, str]] = ..., waiting: _Optional[_Mapping[str, str]] = ..., share: _Optional[_Mapping[str, str]] = ..., running_gangs: _Optional[int] = ..., waiting_gangs: _Optional[int] = ...) -> None: ...

class QueueSpec(_message.Message):
    __slots__ = ("name", "parent", "quota", "limit", "over_quota_weight", "priority", "max_applications", "sort")
    class QuotaEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LimitEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OverQuotaWeightEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OVER_QUOTA_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    quota: _containers.ScalarMap[str, str]
    limit: _containers.ScalarMap[str, str]
    over_quota_weight: _containers.ScalarMap[str, int]
    priority: int
    max_applications: int
    sort: str
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., quota: _Optional[_Mapping[str, str]] = ..., limit: _Optional[_Mapping[str, str]] = ..., over_quota_weight: _Optional[_Mapping[str, int]] = ..., priority: _Optional[int] = ..., max_applications: _Optional[int] = ..., sort: _Optional[str] = ...) -> None: ...

class ApplyQueuesRequest(_message.Message):
    __slots__ = ("request_id", "queues", "prune")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRUNE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    queues: _containers.RepeatedCompositeFieldContainer[QueueSpec]
    prune: bool
    def __init__(self, request_id: _Optional[str] = ..., queues: _Optional[_Iterable[_Union[QueueSpec, _Mapping]]] = ..., prune: bool = ...) -> None: ...

class ApplyQueuesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("request_id", "name")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExplainQueueRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExplainQueueResponse(_message.Message):
    __slots__ = ("text", "queue", "line", "places")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    text: str
    queue: Queue
    line: _containers.RepeatedCompositeFieldContainer[GangInLine]
    places: int
    def __init__(self, text: _Optional[str] = ..., queue: _Optional[_Union[Queue, _Mapping]] = ..., line: _Optional[_Iterable[_Union[GangInLine, _Mapping]]] = ..., places: _Optional[int] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ...) -> None: ...
