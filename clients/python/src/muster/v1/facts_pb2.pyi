from google.protobuf import timestamp_pb2 as _timestamp_pb2
from muster.v1 import gang_pb2 as _gang_pb2
from muster.v1 import pod_shape_pb2 as _pod_shape_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeFacts(_message.Message):
    __slots__ = ("name", "labels", "taints", "unschedulable", "allocatable")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    labels: _containers.ScalarMap[str, str]
    taints: _containers.RepeatedCompositeFieldContainer[Taint]
    unschedulable: bool
    allocatable: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., taints: _Optional[_Iterable[_Union[Taint, _Mapping]]] = ..., unschedulable: bool = ..., allocatable: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Taint(_message.Message):
    __slots__ = ("key", "value", "effect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    effect: _pod_shape_pb2.TaintEffect
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[_Union[_pod_shape_pb2.TaintEffect, str]] = ...) -> None: ...

class PodFacts(_message.Message):
    __slots__ = ("uid", "namespace", "name", "create_time", "priority", "scheduler_name", "shape", "gang", "declaration", "node_name", "phase", "deleting", "subgroup", "labels")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[PodFacts.Phase]
        PHASE_PENDING: _ClassVar[PodFacts.Phase]
        PHASE_RUNNING: _ClassVar[PodFacts.Phase]
        PHASE_SUCCEEDED: _ClassVar[PodFacts.Phase]
        PHASE_FAILED: _ClassVar[PodFacts.Phase]
    PHASE_UNSPECIFIED: PodFacts.Phase
    PHASE_PENDING: PodFacts.Phase
    PHASE_RUNNING: PodFacts.Phase
    PHASE_SUCCEEDED: PodFacts.Phase
    PHASE_FAILED: PodFacts.Phase
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    UID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    DECLARATION_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    DELETING_FIELD_NUMBER: _ClassVar[int]
    SUBGROUP_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    uid: str
    namespace: str
    name: str
    create_time: _timestamp_pb2.Timestamp
    priority: int
    scheduler_name: str
    shape: _pod_shape_pb2.PodShape
    gang: str
    declaration: _gang_pb2.GangSpec
    node_name: str
    phase: PodFacts.Phase
    deleting: bool
    subgroup: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, uid: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., priority: _Optional[int] = ..., scheduler_name: _Optional[str] = ..., shape: _Optional[_Union[_pod_shape_pb2.PodShape, _Mapping]] = ..., gang: _Optional[str] = ..., declaration: _Optional[_Union[_gang_pb2.GangSpec, _Mapping]] = ..., node_name: _Optional[str] = ..., phase: _Optional[_Union[PodFacts.Phase, str]] = ..., deleting: bool = ..., subgroup: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SendSnapshotRequest(_message.Message):
    __slots__ = ("source", "version", "nodes", "pods", "manifests", "last")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    source: str
    version: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeFacts]
    pods: _containers.RepeatedCompositeFieldContainer[PodFacts]
    manifests: _containers.RepeatedScalarFieldContainer[str]
    last: bool
    def __init__(self, source: _Optional[str] = ..., version: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeFacts, _Mapping]]] = ..., pods: _Optional[_Iterable[_Union[PodFacts, _Mapping]]] = ..., manifests: _Optional[_Iterable[str]] = ..., last: bool = ...) -> None: ...

class UpdateFactsRequest(_message.Message):
    __slots__ = ("request_id", "source", "version", "nodes", "removed_nodes", "pods", "removed_pods", "manifests", "removed_manifests")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_NODES_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_PODS_FIELD_NUMBER: _ClassVar[int]
    MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    source: str
    version: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeFacts]
    removed_nodes: _containers.RepeatedScalarFieldContainer[str]
    pods: _containers.RepeatedCompositeFieldContainer[PodFacts]
    removed_pods: _containers.RepeatedScalarFieldContainer[str]
    manifests: _containers.RepeatedScalarFieldContainer[str]
    removed_manifests: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[str] = ..., source: _Optional[str] = ..., version: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeFacts, _Mapping]]] = ..., removed_nodes: _Optional[_Iterable[str]] = ..., pods: _Optional[_Iterable[_Union[PodFacts, _Mapping]]] = ..., removed_pods: _Optional[_Iterable[str]] = ..., manifests: _Optional[_Iterable[str]] = ..., removed_manifests: _Optional[_Iterable[str]] = ...) -> None: ...

class GetFactsStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FactsStatus(_message.Message):
    __slots__ = ("version", "source", "node_count", "pod_count", "warnings")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    POD_COUNT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    version: int
    source: str
    node_count: int
    pod_count: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[int] = ..., source: _Optional[str] = ..., node_count: _Optional[int] = ..., pod_count: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...
