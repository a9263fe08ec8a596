from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReasonCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_CODE_UNSPECIFIED: _ClassVar[ReasonCode]
    REASON_CODE_NOT_A_GANG: _ClassVar[ReasonCode]
    REASON_CODE_UNKNOWN_POD: _ClassVar[ReasonCode]
    REASON_CODE_UNKNOWN_GANG: _ClassVar[ReasonCode]
    REASON_CODE_UNINITIALISED: _ClassVar[ReasonCode]
    REASON_CODE_GROUP_DISAGREES: _ClassVar[ReasonCode]
    REASON_CODE_SCHEDULE_CYCLE: _ClassVar[ReasonCode]
    REASON_CODE_CONFLICT: _ClassVar[ReasonCode]
    REASON_CODE_PRIORITY_MISMATCH: _ClassVar[ReasonCode]
    REASON_CODE_TIMED_OUT: _ClassVar[ReasonCode]
    REASON_CODE_NOT_ENOUGH_PODS: _ClassVar[ReasonCode]
    REASON_CODE_NO_ROOM: _ClassVar[ReasonCode]
    REASON_CODE_MIN_RESOURCES: _ClassVar[ReasonCode]
    REASON_CODE_TOO_MANY_HOLDS: _ClassVar[ReasonCode]
    REASON_CODE_BACKOFF: _ClassVar[ReasonCode]
    REASON_CODE_QUEUED: _ClassVar[ReasonCode]
    REASON_CODE_PLANNED: _ClassVar[ReasonCode]
    REASON_CODE_BARRIER: _ClassVar[ReasonCode]
    REASON_CODE_BINDING: _ClassVar[ReasonCode]
    REASON_CODE_SATISFIED: _ClassVar[ReasonCode]
    REASON_CODE_SLOTS_TAKEN: _ClassVar[ReasonCode]
    REASON_CODE_NODE_NOT_OFFERED: _ClassVar[ReasonCode]
    REASON_CODE_MEMBER_UNSCHEDULABLE: _ClassVar[ReasonCode]
    REASON_CODE_INVALID_REQUEST: _ClassVar[ReasonCode]
    REASON_CODE_NOT_SERVED: _ClassVar[ReasonCode]
    REASON_CODE_GUARDED: _ClassVar[ReasonCode]
    REASON_CODE_STARTING: _ClassVar[ReasonCode]
    REASON_CODE_GONE: _ClassVar[ReasonCode]
    REASON_CODE_HOLD_EXPIRED: _ClassVar[ReasonCode]
    REASON_CODE_WITHDRAWN: _ClassVar[ReasonCode]
    REASON_CODE_BIND_FAILED: _ClassVar[ReasonCode]
    REASON_CODE_OVERLOADED: _ClassVar[ReasonCode]
    REASON_CODE_SHUTTING_DOWN: _ClassVar[ReasonCode]
    REASON_CODE_NO_PLACE_FOUND: _ClassVar[ReasonCode]
    REASON_CODE_QUEUE_LIMIT: _ClassVar[ReasonCode]
    REASON_CODE_UNKNOWN_QUEUE: _ClassVar[ReasonCode]
    REASON_CODE_QUEUE_REJECTED: _ClassVar[ReasonCode]
    REASON_CODE_EVICTED: _ClassVar[ReasonCode]
REASON_CODE_UNSPECIFIED: ReasonCode
REASON_CODE_NOT_A_GANG: ReasonCode
REASON_CODE_UNKNOWN_POD: ReasonCode
REASON_CODE_UNKNOWN_GANG: ReasonCode
REASON_CODE_UNINITIALISED: ReasonCode
REASON_CODE_GROUP_DISAGREES: ReasonCode
REASON_CODE_SCHEDULE_CYCLE: ReasonCode
REASON_CODE_CONFLICT: ReasonCode
REASON_CODE_PRIORITY_MISMATCH: ReasonCode
REASON_CODE_TIMED_OUT: ReasonCode
REASON_CODE_NOT_ENOUGH_PODS: ReasonCode
REASON_CODE_NO_ROOM: ReasonCode
REASON_CODE_MIN_RESOURCES: ReasonCode
REASON_CODE_TOO_MANY_HOLDS: ReasonCode
REASON_CODE_BACKOFF: ReasonCode
REASON_CODE_QUEUED: ReasonCode
REASON_CODE_PLANNED: ReasonCode
REASON_CODE_BARRIER: ReasonCode
REASON_CODE_BINDING: ReasonCode
REASON_CODE_SATISFIED: ReasonCode
REASON_CODE_SLOTS_TAKEN: ReasonCode
REASON_CODE_NODE_NOT_OFFERED: ReasonCode
REASON_CODE_MEMBER_UNSCHEDULABLE: ReasonCode
REASON_CODE_INVALID_REQUEST: ReasonCode
REASON_CODE_NOT_SERVED: ReasonCode
REASON_CODE_GUARDED: ReasonCode
REASON_CODE_STARTING: ReasonCode
REASON_CODE_GONE: ReasonCode
REASON_CODE_HOLD_EXPIRED: ReasonCode
REASON_CODE_WITHDRAWN: ReasonCode
REASON_CODE_BIND_FAILED: ReasonCode
REASON_CODE_OVERLOADED: ReasonCode
REASON_CODE_SHUTTING_DOWN: ReasonCode
REASON_CODE_NO_PLACE_FOUND: ReasonCode
REASON_CODE_QUEUE_LIMIT: ReasonCode
REASON_CODE_UNKNOWN_QUEUE: ReasonCode
REASON_CODE_QUEUE_REJECTED: ReasonCode
REASON_CODE_EVICTED: ReasonCode

class Reason(_message.Message):
    __slots__ = ("code", "text", "since_time", "suggestion")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    SUGGESTION_FIELD_NUMBER: _ClassVar[int]
    code: ReasonCode
    text: str
    since_time: _timestamp_pb2.Timestamp
    suggestion: str
    def __init__(self, code: _Optional[_Union[ReasonCode, str]] = ..., text: _Optional[str] = ..., since_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., suggestion: _Optional[str] = ...) -> None: ...
