from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeInclusionPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_INCLUSION_POLICY_UNSPECIFIED: _ClassVar[NodeInclusionPolicy]
    NODE_INCLUSION_POLICY_HONOR: _ClassVar[NodeInclusionPolicy]
    NODE_INCLUSION_POLICY_IGNORE: _ClassVar[NodeInclusionPolicy]

class TaintEffect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TAINT_EFFECT_UNSPECIFIED: _ClassVar[TaintEffect]
    TAINT_EFFECT_NO_SCHEDULE: _ClassVar[TaintEffect]
    TAINT_EFFECT_PREFER_NO_SCHEDULE: _ClassVar[TaintEffect]
    TAINT_EFFECT_NO_EXECUTE: _ClassVar[TaintEffect]
NODE_INCLUSION_POLICY_UNSPECIFIED: NodeInclusionPolicy
NODE_INCLUSION_POLICY_HONOR: NodeInclusionPolicy
NODE_INCLUSION_POLICY_IGNORE: NodeInclusionPolicy
TAINT_EFFECT_UNSPECIFIED: TaintEffect
TAINT_EFFECT_NO_SCHEDULE: TaintEffect
TAINT_EFFECT_PREFER_NO_SCHEDULE: TaintEffect
TAINT_EFFECT_NO_EXECUTE: TaintEffect

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
    class Operator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPERATOR_UNSPECIFIED: _ClassVar[SelectorRequirement.Operator]
        OPERATOR_IN: _ClassVar[SelectorRequirement.Operator]
        OPERATOR_NOT_IN: _ClassVar[SelectorRequirement.Operator]
        OPERATOR_EXISTS: _ClassVar[SelectorRequirement.Operator]
        OPERATOR_DOES_NOT_EXIST: _ClassVar[SelectorRequirement.Operator]
        OPERATOR_GT: _ClassVar[SelectorRequirement.Operator]
        OPERATOR_LT: _ClassVar[SelectorRequirement.Operator]
    OPERATOR_UNSPECIFIED: SelectorRequirement.Operator
    OPERATOR_IN: SelectorRequirement.Operator
    OPERATOR_NOT_IN: SelectorRequirement.Operator
    OPERATOR_EXISTS: SelectorRequirement.Operator
    OPERATOR_DOES_NOT_EXIST: SelectorRequirement.Operator
    OPERATOR_GT: SelectorRequirement.Operator
    OPERATOR_LT: SelectorRequirement.Operator
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: SelectorRequirement.Operator
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[_Union[SelectorRequirement.Operator, str]] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

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
    node_affinity_policy: NodeInclusionPolicy
    node_taints_policy: NodeInclusionPolicy
    def __init__(self, selector: _Optional[_Union[PodSelector, _Mapping]] = ..., topology_key: _Optional[str] = ..., max_skew: _Optional[int] = ..., min_domains: _Optional[int] = ..., node_affinity_policy: _Optional[_Union[NodeInclusionPolicy, str]] = ..., node_taints_policy: _Optional[_Union[NodeInclusionPolicy, str]] = ...) -> None: ...

class Toleration(_message.Message):
    __slots__ = ("key", "operator", "value", "effect")
    class Operator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPERATOR_UNSPECIFIED: _ClassVar[Toleration.Operator]
        OPERATOR_EQUAL: _ClassVar[Toleration.Operator]
        OPERATOR_EXISTS: _ClassVar[Toleration.Operator]
    OPERATOR_UNSPECIFIED: Toleration.Operator
    OPERATOR_EQUAL: Toleration.Operator
    OPERATOR_EXISTS: Toleration.Operator
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: Toleration.Operator
    value: str
    effect: TaintEffect
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[_Union[Toleration.Operator, str]] = ..., value: _Optional[str] = ..., effect: _Optional[_Union[TaintEffect, str]] = ...) -> None: ...

class HostPort(_message.Message):
    __slots__ = ("port", "protocol", "host_ip")
    class Protocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PROTOCOL_UNSPECIFIED: _ClassVar[HostPort.Protocol]
        PROTOCOL_TCP: _ClassVar[HostPort.Protocol]
        PROTOCOL_UDP: _ClassVar[HostPort.Protocol]
        PROTOCOL_SCTP: _ClassVar[HostPort.Protocol]
    PROTOCOL_UNSPECIFIED: HostPort.Protocol
    PROTOCOL_TCP: HostPort.Protocol
    PROTOCOL_UDP: HostPort.Protocol
    PROTOCOL_SCTP: HostPort.Protocol
    PORT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_IP_FIELD_NUMBER: _ClassVar[int]
    port: int
    protocol: HostPort.Protocol
    host_ip: str
    def __init__(self, port: _Optional[int] = ..., protocol: _Optional[_Union[HostPort.Protocol, str]] = ..., host_ip: _Optional[str] = ...) -> None: ...
