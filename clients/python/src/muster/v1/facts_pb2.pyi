from muster.v1 import muster_pb2 as _muster_pb2
from google.protobuf.internal import containers as _containers
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
    effect: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class PodShape(_message.Message):
    __slots__ = ("requests", "node_selector", "affinity", "tolerations", "host_ports", "pod_affinity", "pod_anti_affinity", "topology_spread", "preferred_nodes", "preferred_pods")
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
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    HOST_PORTS_FIELD_NUMBER: _ClassVar[int]
    POD_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    POD_ANTI_AFFINITY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_SPREAD_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_NODES_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_PODS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.ScalarMap[str, str]
    node_selector: _containers.ScalarMap[str, str]
    affinity: _containers.RepeatedCompositeFieldContainer[NodeSelectorTerm]
    tolerations: _containers.RepeatedCompositeFieldContainer[Toleration]
    host_ports: _containers.RepeatedCompositeFieldContainer[HostPort]
    pod_affinity: _containers.RepeatedCompositeFieldContainer[PodAffinityTerm]
    pod_anti_affinity: _containers.RepeatedCompositeFieldContainer[PodAffinityTerm]
    topology_spread: _containers.RepeatedCompositeFieldContainer[TopologySpreadConstraint]
    preferred_nodes: _containers.RepeatedCompositeFieldContainer[PreferredNodeTerm]
    preferred_pods: _containers.RepeatedCompositeFieldContainer[PreferredPodAffinityTerm]
    def __init__(self, requests: _Optional[_Mapping[str, str]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., affinity: _Optional[_Iterable[_Union[NodeSelectorTerm, _Mapping]]] = ..., tolerations: _Optional[_Iterable[_Union[Toleration, _Mapping]]] = ..., host_ports: _Optional[_Iterable[_Union[HostPort, _Mapping]]] = ..., pod_affinity: _Optional[_Iterable[_Union[PodAffinityTerm, _Mapping]]] = ..., pod_anti_affinity: _Optional[_Iterable[_Union[PodAffinityTerm, _Mapping]]] = ..., topology_spread: _Optional[_Iterable[_Union[TopologySpreadConstraint, _Mapping]]] = ..., preferred_nodes: _Optional[_Iterable[_Union[PreferredNodeTerm, _Mapping]]] = ..., preferred_pods: _Optional[_Iterable[_Union[PreferredPodAffinityTerm, _Mapping]]] = ...) -> None: ...

class NodeSelectorTerm(_message.Message):
    __slots__ = ("expressions", "fields")
    EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    expressions: _containers.RepeatedCompositeFieldContainer[SelectorRequirement]
    fields: _containers.RepeatedCompositeFieldContainer[SelectorRequirement]
    def __init__(self, expressions: _Optional[_Iterable[_Union[SelectorRequirement, _Mapping]]] = ..., fields: _Optional[_Iterable[_Union[SelectorRequirement, _Mapping]]] = ...) -> None: ...

class SelectorRequirement(_message.Message):
    __slots__ = ("key", "operator", "values")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class PodSelector(_message.Message):
    __slots__ = ("expressions", "namespaces", "all_namespaces")
    EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    ALL_NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    expressions: _containers.RepeatedCompositeFieldContainer[SelectorRequirement]
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    all_namespaces: bool
    def __init__(self, expressions: _Optional[_Iterable[_Union[SelectorRequirement, _Mapping]]] = ..., namespaces: _Optional[_Iterable[str]] = ..., all_namespaces: bool = ...) -> None: ...

class PodAffinityTerm(_message.Message):
    __slots__ = ("selector", "topology_key")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_KEY_FIELD_NUMBER: _ClassVar[int]
    selector: PodSelector
    topology_key: str
    def __init__(self, selector: _Optional[_Union[PodSelector, _Mapping]] = ..., topology_key: _Optional[str] = ...) -> None: ...

class PreferredNodeTerm(_message.Message):
    __slots__ = ("term", "weight")
    TERM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    term: NodeSelectorTerm
    weight: int
    def __init__(self, term: _Optional[_Union[NodeSelectorTerm, _Mapping]] = ..., weight: _Optional[int] = ...) -> None: ...

class PreferredPodAffinityTerm(_message.Message):
    __slots__ = ("term", "weight")
    TERM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    term: PodAffinityTerm
    weight: int
    def __init__(self, term: _Optional[_Union[PodAffinityTerm, _Mapping]] = ..., weight: _Optional[int] = ...) -> None: ...

class TopologySpreadConstraint(_message.Message):
    __slots__ = ("selector", "topology_key", "max_skew", "min_domains", "node_affinity_policy", "node_taints_policy")
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_SKEW_FIELD_NUMBER: _ClassVar[int]
    MIN_DOMAINS_FIELD_NUMBER: _ClassVar[int]
    NODE_AFFINITY_POLICY_FIELD_NUMBER: _ClassVar[int]
    NODE_TAINTS_POLICY_FIELD_NUMBER: _ClassVar[int]
    selector: PodSelector
    topology_key: str
    max_skew: int
    min_domains: int
    node_affinity_policy: str
    node_taints_policy: str
    def __init__(self, selector: _Optional[_Union[PodSelector, _Mapping]] = ..., topology_key: _Optional[str] = ..., max_skew: _Optional[int] = ..., min_domains: _Optional[int] = ..., node_affinity_policy: _Optional[str] = ..., node_taints_policy: _Optional[str] = ...) -> None: ...

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

class HostPort(_message.Message):
    __slots__ = ("port", "protocol", "host_ip")
    PORT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_IP_FIELD_NUMBER: _ClassVar[int]
    port: int
    protocol: str
    host_ip: str
    def __init__(self, port: _Optional[int] = ..., protocol: _Optional[str] = ..., host_ip: _Optional[str] = ...) -> None: ...

class PodFacts(_message.Message):
    __slots__ = ("uid", "namespace", "name", "created_unix_ms", "priority", "scheduler_name", "shape", "gang", "declaration", "node_name", "phase", "deleting", "subgroup", "labels")
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
    CREATED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
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
    created_unix_ms: int
    priority: int
    scheduler_name: str
    shape: PodShape
    gang: str
    declaration: _muster_pb2.GangSpec
    node_name: str
    phase: str
    deleting: bool
    subgroup: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, uid: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., created_unix_ms: _Optional[int] = ..., priority: _Optional[int] = ..., scheduler_name: _Optional[str] = ..., shape: _Optional[_Union[PodShape, _Mapping]] = ..., gang: _Optional[str] = ..., declaration: _Optional[_Union[_muster_pb2.GangSpec, _Mapping]] = ..., node_name: _Optional[str] = ..., phase: _Optional[str] = ..., deleting: bool = ..., subgroup: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SnapshotPart(_message.Message):
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
    __slots__ = ("version", "source", "nodes", "pods", "warnings")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    version: int
    source: str
    nodes: int
    pods: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[int] = ..., source: _Optional[str] = ..., nodes: _Optional[int] = ..., pods: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...
