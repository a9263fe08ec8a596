from muster.v1 import facts_pb2 as _facts_pb2
from muster.v1 import placement_pb2 as _placement_pb2
from muster.v1 import reason_pb2 as _reason_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddedNodes(_message.Message):
    __slots__ = ("node", "like", "count")
    NODE_FIELD_NUMBER: _ClassVar[int]
    LIKE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    node: _facts_pb2.NodeFacts
    like: str
    count: int
    def __init__(self, node: _Optional[_Union[_facts_pb2.NodeFacts, _Mapping]] = ..., like: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class QueueCapacityChange(_message.Message):
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
    __slots__ = ("job", "namespace", "name", "removed_nodes", "added_nodes", "added_manifests", "queue_capacity_changes")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REMOVED_NODES_FIELD_NUMBER: _ClassVar[int]
    ADDED_NODES_FIELD_NUMBER: _ClassVar[int]
    ADDED_MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CAPACITY_CHANGES_FIELD_NUMBER: _ClassVar[int]
    job: _placement_pb2.SubmitGangRequest
    namespace: str
    name: str
    removed_nodes: _containers.RepeatedScalarFieldContainer[str]
    added_nodes: _containers.RepeatedCompositeFieldContainer[AddedNodes]
    added_manifests: _containers.RepeatedScalarFieldContainer[str]
    queue_capacity_changes: _containers.RepeatedCompositeFieldContainer[QueueCapacityChange]
    def __init__(self, job: _Optional[_Union[_placement_pb2.SubmitGangRequest, _Mapping]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., removed_nodes: _Optional[_Iterable[str]] = ..., added_nodes: _Optional[_Iterable[_Union[AddedNodes, _Mapping]]] = ..., added_manifests: _Optional[_Iterable[str]] = ..., queue_capacity_changes: _Optional[_Iterable[_Union[QueueCapacityChange, _Mapping]]] = ...) -> None: ...

class PlanGangResponse(_message.Message):
    __slots__ = ("starts", "placements", "reason", "planned_before", "affected_gangs")
    STARTS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PLANNED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFFECTED_GANGS_FIELD_NUMBER: _ClassVar[int]
    starts: bool
    placements: _containers.RepeatedCompositeFieldContainer[_placement_pb2.Placement]
    reason: _reason_pb2.Reason
    planned_before: _containers.RepeatedScalarFieldContainer[str]
    affected_gangs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, starts: bool = ..., placements: _Optional[_Iterable[_Union[_placement_pb2.Placement, _Mapping]]] = ..., reason: _Optional[_Union[_reason_pb2.Reason, _Mapping]] = ..., planned_before: _Optional[_Iterable[str]] = ..., affected_gangs: _Optional[_Iterable[str]] = ...) -> None: ...
