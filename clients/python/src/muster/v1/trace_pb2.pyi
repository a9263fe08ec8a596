from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from muster.v1 import reason_pb2 as _reason_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Span(_message.Message):
    __slots__ = ("trace_id", "span_id", "parent_span_id", "name", "gang", "pod", "pod_uid", "node", "outcome", "reason", "start_time", "duration", "parts", "links", "pod_count")
    class Parts(_message.Message):
        __slots__ = ("queued", "decided", "held", "bound", "stored")
        QUEUED_FIELD_NUMBER: _ClassVar[int]
        DECIDED_FIELD_NUMBER: _ClassVar[int]
        HELD_FIELD_NUMBER: _ClassVar[int]
        BOUND_FIELD_NUMBER: _ClassVar[int]
        STORED_FIELD_NUMBER: _ClassVar[int]
        queued: _duration_pb2.Duration
        decided: _duration_pb2.Duration
        held: _duration_pb2.Duration
        bound: _duration_pb2.Duration
        stored: _duration_pb2.Duration
        def __init__(self, queued: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., decided: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., held: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., bound: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., stored: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    class Link(_message.Message):
        __slots__ = ("trace_id", "span_id", "relation")
        TRACE_ID_FIELD_NUMBER: _ClassVar[int]
        SPAN_ID_FIELD_NUMBER: _ClassVar[int]
        RELATION_FIELD_NUMBER: _ClassVar[int]
        trace_id: str
        span_id: str
        relation: str
        def __init__(self, trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., relation: _Optional[str] = ...) -> None: ...
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
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    POD_COUNT_FIELD_NUMBER: _ClassVar[int]
    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    gang: str
    pod: str
    pod_uid: str
    node: str
    outcome: str
    reason: _reason_pb2.Reason
    start_time: _timestamp_pb2.Timestamp
    duration: _duration_pb2.Duration
    parts: Span.Parts
    links: _containers.RepeatedCompositeFieldContainer[Span.Link]
    pod_count: int
    def __init__(self, trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., parent_span_id: _Optional[str] = ..., name: _Optional[str] = ..., gang: _Optional[str] = ..., pod: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., parts: _Optional[_Union[Span.Parts, _Mapping]] = ..., links: _Optional[_Iterable[_Union[Span.Link, _Mapping]]] = ..., pod_count: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("spans", "retained_since_time")
    SPANS_FIELD_NUMBER: _ClassVar[int]
    RETAINED_SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    spans: _containers.RepeatedCompositeFieldContainer[Span]
    retained_since_time: _timestamp_pb2.Timestamp
    def __init__(self, spans: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., retained_since_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
