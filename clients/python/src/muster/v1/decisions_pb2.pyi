from muster.v1 import facts_pb2 as _facts_pb2
from muster.v1 import muster_pb2 as _muster_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PreFilterRequest(_message.Message):
    __slots__ = ("request_id", "pod_uid")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    pod_uid: str
    def __init__(self, request_id: _Optional[str] = ..., pod_uid: _Optional[str] = ...) -> None: ...

class PreFilterResponse(_message.Message):
    __slots__ = ("passes", "reason")
    PASSES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    passes: bool
    reason: _muster_pb2.Reason
    def __init__(self, passes: bool = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ...) -> None: ...

class FilterRequest(_message.Message):
    __slots__ = ("pod_uid", "nodes")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pod_uid: _Optional[str] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class FilterResponse(_message.Message):
    __slots__ = ("nodes", "refused", "reason")
    NODES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    refused: _containers.RepeatedCompositeFieldContainer[NodeRefusal]
    reason: _muster_pb2.Reason
    def __init__(self, nodes: _Optional[_Iterable[str]] = ..., refused: _Optional[_Iterable[_Union[NodeRefusal, _Mapping]]] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ...) -> None: ...

class NodeRefusal(_message.Message):
    __slots__ = ("node", "reason")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    node: str
    reason: _muster_pb2.Reason
    def __init__(self, node: _Optional[str] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ...) -> None: ...

class PrioritizeRequest(_message.Message):
    __slots__ = ("pod_uid", "nodes")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pod_uid: _Optional[str] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class PrioritizeResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeScore]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeScore, _Mapping]]] = ...) -> None: ...

class NodeScore(_message.Message):
    __slots__ = ("node", "score")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    node: str
    score: int
    def __init__(self, node: _Optional[str] = ..., score: _Optional[int] = ...) -> None: ...

class PermitRequest(_message.Message):
    __slots__ = ("request_id", "pod_uid", "node", "bind_within_ms")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    BIND_WITHIN_MS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    pod_uid: str
    node: str
    bind_within_ms: int
    def __init__(self, request_id: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ..., bind_within_ms: _Optional[int] = ...) -> None: ...

class PermitEvent(_message.Message):
    __slots__ = ("verdict", "reason", "wait_left_ms", "activate_pod_uids")
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[PermitEvent.Verdict]
        WAIT: _ClassVar[PermitEvent.Verdict]
        PERMIT: _ClassVar[PermitEvent.Verdict]
        REJECT: _ClassVar[PermitEvent.Verdict]
    VERDICT_UNSPECIFIED: PermitEvent.Verdict
    WAIT: PermitEvent.Verdict
    PERMIT: PermitEvent.Verdict
    REJECT: PermitEvent.Verdict
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WAIT_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_POD_UIDS_FIELD_NUMBER: _ClassVar[int]
    verdict: PermitEvent.Verdict
    reason: _muster_pb2.Reason
    wait_left_ms: int
    activate_pod_uids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, verdict: _Optional[_Union[PermitEvent.Verdict, str]] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ..., wait_left_ms: _Optional[int] = ..., activate_pod_uids: _Optional[_Iterable[str]] = ...) -> None: ...

class PostFilterRequest(_message.Message):
    __slots__ = ("request_id", "pod_uid", "message")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    pod_uid: str
    message: str
    def __init__(self, request_id: _Optional[str] = ..., pod_uid: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class PostFilterResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UnreserveRequest(_message.Message):
    __slots__ = ("request_id", "pod_uid", "cause")
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CAUSE_UNSPECIFIED: _ClassVar[UnreserveRequest.Cause]
        PERMIT_TIMEOUT: _ClassVar[UnreserveRequest.Cause]
        REJECTED: _ClassVar[UnreserveRequest.Cause]
        BIND_FAILED: _ClassVar[UnreserveRequest.Cause]
    CAUSE_UNSPECIFIED: UnreserveRequest.Cause
    PERMIT_TIMEOUT: UnreserveRequest.Cause
    REJECTED: UnreserveRequest.Cause
    BIND_FAILED: UnreserveRequest.Cause
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    pod_uid: str
    cause: UnreserveRequest.Cause
    def __init__(self, request_id: _Optional[str] = ..., pod_uid: _Optional[str] = ..., cause: _Optional[_Union[UnreserveRequest.Cause, str]] = ...) -> None: ...

class UnreserveResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PostBindRequest(_message.Message):
    __slots__ = ("request_id", "pod_uid", "node")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    pod_uid: str
    node: str
    def __init__(self, request_id: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class PostBindResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemberSet(_message.Message):
    __slots__ = ("name", "count", "shape", "priority", "subgroup", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SUBGROUP_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    shape: _facts_pb2.PodShape
    priority: int
    subgroup: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., shape: _Optional[_Union[_facts_pb2.PodShape, _Mapping]] = ..., priority: _Optional[int] = ..., subgroup: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SubmitGangRequest(_message.Message):
    __slots__ = ("request_id", "gang", "members", "pods", "manifests", "ttl_ms")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    gang: _muster_pb2.GangSpec
    members: _containers.RepeatedCompositeFieldContainer[MemberSet]
    pods: _containers.RepeatedCompositeFieldContainer[_facts_pb2.PodFacts]
    manifests: _containers.RepeatedScalarFieldContainer[str]
    ttl_ms: int
    def __init__(self, request_id: _Optional[str] = ..., gang: _Optional[_Union[_muster_pb2.GangSpec, _Mapping]] = ..., members: _Optional[_Iterable[_Union[MemberSet, _Mapping]]] = ..., pods: _Optional[_Iterable[_Union[_facts_pb2.PodFacts, _Mapping]]] = ..., manifests: _Optional[_Iterable[str]] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("pod_uid", "pod_name", "node")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    pod_name: str
    node: str
    def __init__(self, pod_uid: _Optional[str] = ..., pod_name: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class Submission(_message.Message):
    __slots__ = ("id", "state", "plan", "placements", "expires_unix_ms", "reason")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Submission.State]
        WAITING: _ClassVar[Submission.State]
        PLANNED: _ClassVar[Submission.State]
        CONFIRMED: _ClassVar[Submission.State]
        ABANDONED: _ClassVar[Submission.State]
        EXPIRED: _ClassVar[Submission.State]
    STATE_UNSPECIFIED: Submission.State
    WAITING: Submission.State
    PLANNED: Submission.State
    CONFIRMED: Submission.State
    ABANDONED: Submission.State
    EXPIRED: Submission.State
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: Submission.State
    plan: int
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    expires_unix_ms: int
    reason: _muster_pb2.Reason
    def __init__(self, id: _Optional[str] = ..., state: _Optional[_Union[Submission.State, str]] = ..., plan: _Optional[int] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., expires_unix_ms: _Optional[int] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ...) -> None: ...

class GetSubmissionRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ConfirmGangRequest(_message.Message):
    __slots__ = ("id", "plan")
    ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    id: str
    plan: int
    def __init__(self, id: _Optional[str] = ..., plan: _Optional[int] = ...) -> None: ...

class AbandonGangRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class AddedNodes(_message.Message):
    __slots__ = ("node", "like", "count")
    NODE_FIELD_NUMBER: _ClassVar[int]
    LIKE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    node: _facts_pb2.NodeFacts
    like: str
    count: int
    def __init__(self, node: _Optional[_Union[_facts_pb2.NodeFacts, _Mapping]] = ..., like: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class MoreForQueue(_message.Message):
    __slots__ = ("queue", "amounts")
    class AmountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    AMOUNTS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    amounts: _containers.ScalarMap[str, str]
    def __init__(self, queue: _Optional[str] = ..., amounts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PlanGangRequest(_message.Message):
    __slots__ = ("job", "namespace", "name", "without_nodes", "added_nodes", "added_manifests", "more_for_queues")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_NODES_FIELD_NUMBER: _ClassVar[int]
    ADDED_NODES_FIELD_NUMBER: _ClassVar[int]
    ADDED_MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_QUEUES_FIELD_NUMBER: _ClassVar[int]
    job: SubmitGangRequest
    namespace: str
    name: str
    without_nodes: _containers.RepeatedScalarFieldContainer[str]
    added_nodes: _containers.RepeatedCompositeFieldContainer[AddedNodes]
    added_manifests: _containers.RepeatedScalarFieldContainer[str]
    more_for_queues: _containers.RepeatedCompositeFieldContainer[MoreForQueue]
    def __init__(self, job: _Optional[_Union[SubmitGangRequest, _Mapping]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., without_nodes: _Optional[_Iterable[str]] = ..., added_nodes: _Optional[_Iterable[_Union[AddedNodes, _Mapping]]] = ..., added_manifests: _Optional[_Iterable[str]] = ..., more_for_queues: _Optional[_Iterable[_Union[MoreForQueue, _Mapping]]] = ...) -> None: ...

class PlanGangResponse(_message.Message):
    __slots__ = ("starts", "placements", "reason", "others", "hit")
    STARTS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    HIT_FIELD_NUMBER: _ClassVar[int]
    starts: bool
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    reason: _muster_pb2.Reason
    others: _containers.RepeatedScalarFieldContainer[str]
    hit: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, starts: bool = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ..., others: _Optional[_Iterable[str]] = ..., hit: _Optional[_Iterable[str]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("sequence", "unix_ms", "type", "namespace", "pod_name", "pod_uid", "node", "reason", "missed")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    unix_ms: int
    type: str
    namespace: str
    pod_name: str
    pod_uid: str
    node: str
    reason: _muster_pb2.Reason
    missed: int
    def __init__(self, sequence: _Optional[int] = ..., unix_ms: _Optional[int] = ..., type: _Optional[str] = ..., namespace: _Optional[str] = ..., pod_name: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ..., missed: _Optional[int] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("namespace", "after_sequence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after_sequence: int
    def __init__(self, namespace: _Optional[str] = ..., after_sequence: _Optional[int] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "missed")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    missed: int
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., missed: _Optional[int] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("namespace", "after_sequence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after_sequence: int
    def __init__(self, namespace: _Optional[str] = ..., after_sequence: _Optional[int] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("trace_id", "span_id", "parent_span_id", "name", "gang", "pod", "pod_uid", "node", "outcome", "reason", "begin_unix_us", "duration_us", "parts", "links", "pods")
    class Parts(_message.Message):
        __slots__ = ("waited_us", "decided_us", "held_us", "bound_us", "stored_us")
        WAITED_US_FIELD_NUMBER: _ClassVar[int]
        DECIDED_US_FIELD_NUMBER: _ClassVar[int]
        HELD_US_FIELD_NUMBER: _ClassVar[int]
        BOUND_US_FIELD_NUMBER: _ClassVar[int]
        STORED_US_FIELD_NUMBER: _ClassVar[int]
        waited_us: int
        decided_us: int
        held_us: int
        bound_us: int
        stored_us: int
        def __init__(self, waited_us: _Optional[int] = ..., decided_us: _Optional[int] = ..., held_us: _Optional[int] = ..., bound_us: _Optional[int] = ..., stored_us: _Optional[int] = ...) -> None: ...
    class Link(_message.Message):
        __slots__ = ("trace_id", "span_id", "why")
        TRACE_ID_FIELD_NUMBER: _ClassVar[int]
        SPAN_ID_FIELD_NUMBER: _ClassVar[int]
        WHY_FIELD_NUMBER: _ClassVar[int]
        trace_id: str
        span_id: str
        why: str
        def __init__(self, trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BEGIN_UNIX_US_FIELD_NUMBER: _ClassVar[int]
    DURATION_US_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    gang: str
    pod: str
    pod_uid: str
    node: str
    outcome: str
    reason: _muster_pb2.Reason
    begin_unix_us: int
    duration_us: int
    parts: Span.Parts
    links: _containers.RepeatedCompositeFieldContainer[Span.Link]
    pods: int
    def __init__(self, trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., parent_span_id: _Optional[str] = ..., name: _Optional[str] = ..., gang: _Optional[str] = ..., pod: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[_Union[_muster_pb2.Reason, _Mapping]] = ..., begin_unix_us: _Optional[int] = ..., duration_us: _Optional[int] = ..., parts: _Optional[_Union[Span.Parts, _Mapping]] = ..., links: _Optional[_Iterable[_Union[Span.Link, _Mapping]]] = ..., pods: _Optional[int] = ...) -> None: ...

class GetTraceRequest(_message.Message):
    __slots__ = ("namespace", "gang", "pod")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    gang: str
    pod: str
    def __init__(self, namespace: _Optional[str] = ..., gang: _Optional[str] = ..., pod: _Optional[str] = ...) -> None: ...

class GetTraceResponse(_message.Message):
    __slots__ = ("spans", "kept_since_unix_us")
    SPANS_FIELD_NUMBER: _ClassVar[int]
    KEPT_SINCE_UNIX_US_FIELD_NUMBER: _ClassVar[int]
    spans: _containers.RepeatedCompositeFieldContainer[Span]
    kept_since_unix_us: int
    def __init__(self, spans: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., kept_since_unix_us: _Optional[int] = ...) -> None: ...
