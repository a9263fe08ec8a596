from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from muster.v1 import facts_pb2 as _facts_pb2
from muster.v1 import gang_pb2 as _gang_pb2
from muster.v1 import pod_shape_pb2 as _pod_shape_pb2
from muster.v1 import reason_pb2 as _reason_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlaceGangsRequest(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[PlacementCall]
    def __init__(self, calls: _Optional[_Iterable[_Union[PlacementCall, _Mapping]]] = ...) -> None: ...

class PlacementCall(_message.Message):
    __slots__ = ("submit", "confirm", "abandon", "get")
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    ABANDON_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    submit: SubmitGangRequest
    confirm: ConfirmGangRequest
    abandon: AbandonGangRequest
    get: GetSubmissionRequest
    def __init__(self, submit: _Optional[_Union[SubmitGangRequest, _Mapping]] = ..., confirm: _Optional[_Union[ConfirmGangRequest, _Mapping]] = ..., abandon: _Optional[_Union[AbandonGangRequest, _Mapping]] = ..., get: _Optional[_Union[GetSubmissionRequest, _Mapping]] = ...) -> None: ...

class PlaceGangsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PlacementResult]
    def __init__(self, results: _Optional[_Iterable[_Union[PlacementResult, _Mapping]]] = ...) -> None: ...

class PlacementResult(_message.Message):
    __slots__ = ("submission", "error")
    SUBMISSION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    submission: Submission
    error: _status_pb2.Status
    def __init__(self, submission: _Optional[_Union[Submission, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

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
    shape: _pod_shape_pb2.PodShape
    priority: int
    subgroup: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., shape: _Optional[_Union[_pod_shape_pb2.PodShape, _Mapping]] = ..., priority: _Optional[int] = ..., subgroup: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SubmitGangRequest(_message.Message):
    __slots__ = ("request_id", "gang", "members", "pods", "manifests", "ttl", "confirm")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    gang: _gang_pb2.GangSpec
    members: _containers.RepeatedCompositeFieldContainer[MemberSet]
    pods: _containers.RepeatedCompositeFieldContainer[_facts_pb2.PodFacts]
    manifests: _containers.RepeatedScalarFieldContainer[str]
    ttl: _duration_pb2.Duration
    confirm: bool
    def __init__(self, request_id: _Optional[str] = ..., gang: _Optional[_Union[_gang_pb2.GangSpec, _Mapping]] = ..., members: _Optional[_Iterable[_Union[MemberSet, _Mapping]]] = ..., pods: _Optional[_Iterable[_Union[_facts_pb2.PodFacts, _Mapping]]] = ..., manifests: _Optional[_Iterable[str]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., confirm: bool = ...) -> None: ...

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
    __slots__ = ("id", "gang", "state", "plan", "placements", "expire_time", "reason")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Submission.State]
        STATE_WAITING: _ClassVar[Submission.State]
        STATE_PLANNED: _ClassVar[Submission.State]
        STATE_CONFIRMED: _ClassVar[Submission.State]
        STATE_ABANDONED: _ClassVar[Submission.State]
        STATE_EXPIRED: _ClassVar[Submission.State]
    STATE_UNSPECIFIED: Submission.State
    STATE_WAITING: Submission.State
    STATE_PLANNED: Submission.State
    STATE_CONFIRMED: Submission.State
    STATE_ABANDONED: Submission.State
    STATE_EXPIRED: Submission.State
    ID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    gang: str
    state: Submission.State
    plan: int
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    expire_time: _timestamp_pb2.Timestamp
    reason: _reason_pb2.Reason
    def __init__(self, id: _Optional[str] = ..., gang: _Optional[str] = ..., state: _Optional[_Union[Submission.State, str]] = ..., plan: _Optional[int] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ...) -> None: ...

class GetSubmissionRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class WatchSubmissionRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListSubmissionsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSubmissionsResponse(_message.Message):
    __slots__ = ("submissions", "next_page_token")
    SUBMISSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    submissions: _containers.RepeatedCompositeFieldContainer[Submission]
    next_page_token: str
    def __init__(self, submissions: _Optional[_Iterable[_Union[Submission, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchSubmissionsRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class SubmissionEvent(_message.Message):
    __slots__ = ("upserted", "synced", "resync")
    UPSERTED_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    upserted: Submission
    synced: bool
    resync: bool
    def __init__(self, upserted: _Optional[_Union[Submission, _Mapping]] = ..., synced: bool = ..., resync: bool = ...) -> None: ...

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
