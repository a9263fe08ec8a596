from google.protobuf import timestamp_pb2 as _timestamp_pb2
from muster.v1 import reason_pb2 as _reason_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("sequence", "event_time", "type", "namespace", "pod_name", "pod_uid", "node", "reason", "dropped_events")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TYPE_UNSPECIFIED: _ClassVar[Event.Type]
        TYPE_BIND: _ClassVar[Event.Type]
        TYPE_ACTIVATE: _ClassVar[Event.Type]
        TYPE_TIMED_OUT: _ClassVar[Event.Type]
        TYPE_EVICT: _ClassVar[Event.Type]
        TYPE_NOTE: _ClassVar[Event.Type]
        TYPE_WARNING: _ClassVar[Event.Type]
    TYPE_UNSPECIFIED: Event.Type
    TYPE_BIND: Event.Type
    TYPE_ACTIVATE: Event.Type
    TYPE_TIMED_OUT: Event.Type
    TYPE_EVICT: Event.Type
    TYPE_NOTE: Event.Type
    TYPE_WARNING: Event.Type
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DROPPED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    event_time: _timestamp_pb2.Timestamp
    type: Event.Type
    namespace: str
    pod_name: str
    pod_uid: str
    node: str
    reason: _reason_pb2.Reason
    dropped_events: int
    def __init__(self, sequence: _Optional[int] = ..., event_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., type: _Optional[_Union[Event.Type, str]] = ..., namespace: _Optional[str] = ..., pod_name: _Optional[str] = ..., pod_uid: _Optional[str] = ..., node: _Optional[str] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ..., dropped_events: _Optional[int] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("namespace", "after_sequence", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after_sequence: int
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., after_sequence: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token", "dropped_events")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DROPPED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next_page_token: str
    dropped_events: int
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., dropped_events: _Optional[int] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("namespace", "after_sequence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    after_sequence: int
    def __init__(self, namespace: _Optional[str] = ..., after_sequence: _Optional[int] = ...) -> None: ...
