from google.protobuf import duration_pb2 as _duration_pb2
from muster.v1 import reason_pb2 as _reason_pb2
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
    __slots__ = ("allowed", "reason")
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    allowed: bool
    reason: _reason_pb2.Reason
    def __init__(self, allowed: bool = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ...) -> None: ...

class FilterRequest(_message.Message):
    __slots__ = ("pod_uid", "nodes")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pod_uid: _Optional[str] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class FilterResponse(_message.Message):
    __slots__ = ("nodes", "refusals", "reason")
    NODES_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    refusals: _containers.RepeatedCompositeFieldContainer[NodeRefusal]
    reason: _reason_pb2.Reason
    def __init__(self, nodes: _Optional[_Iterable[str]] = ..., refusals: _Optional[_Iterable[_Union[NodeRefusal, _Mapping]]] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ...) -> None: ...

class NodeRefusal(_message.Message):
    __slots__ = ("node", "reason")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    node: str
    reason: _reason_pb2.Reason
    def __init__(self, node: _Optional[str] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ...) -> None: ...

class PrioritizeRequest(_message.Message):
    __slots__ = ("pod_uid", "nodes")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pod_uid: _Optional[str] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class PrioritizeResponse(_message.Message):
    __slots__ = ("scores",)
    SCORES_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[NodeScore]
    def __init__(self, scores: _Optional[_Iterable[_Union[NodeScore, _Mapping]]] = ...) -> None: ...

class NodeScore(_message.Message):
    __slots__ = ("node", "score")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    node: str
    score: int
    def __init__(self, node: _Optional[str] = ..., score: _Optional[int] = ...) -> None: ...

class PermitRequest(_message.Message):
    __slots__ = ("request_id", "pod_uid", "node", "bind_timeout")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    BIND_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    pod_uid: str
    node: str
    bind_timeout: _duration_pb2.Duration
    def __init__(self, request_id: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ..., bind_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PermitEvent(_message.Message):
    __slots__ = ("verdict", "reason", "remaining_wait", "activate_pod_uids")
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[PermitEvent.Verdict]
        VERDICT_WAIT: _ClassVar[PermitEvent.Verdict]
        VERDICT_PERMIT: _ClassVar[PermitEvent.Verdict]
        VERDICT_REJECT: _ClassVar[PermitEvent.Verdict]
    VERDICT_UNSPECIFIED: PermitEvent.Verdict
    VERDICT_WAIT: PermitEvent.Verdict
    VERDICT_PERMIT: PermitEvent.Verdict
    VERDICT_REJECT: PermitEvent.Verdict
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REMAINING_WAIT_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_POD_UIDS_FIELD_NUMBER: _ClassVar[int]
    verdict: PermitEvent.Verdict
    reason: _reason_pb2.Reason
    remaining_wait: _duration_pb2.Duration
    activate_pod_uids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, verdict: _Optional[_Union[PermitEvent.Verdict, str]] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ..., remaining_wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., activate_pod_uids: _Optional[_Iterable[str]] = ...) -> None: ...

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
        CAUSE_PERMIT_TIMEOUT: _ClassVar[UnreserveRequest.Cause]
        CAUSE_REJECTED: _ClassVar[UnreserveRequest.Cause]
        CAUSE_BIND_FAILED: _ClassVar[UnreserveRequest.Cause]
    CAUSE_UNSPECIFIED: UnreserveRequest.Cause
    CAUSE_PERMIT_TIMEOUT: UnreserveRequest.Cause
    CAUSE_REJECTED: UnreserveRequest.Cause
    CAUSE_BIND_FAILED: UnreserveRequest.Cause
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
