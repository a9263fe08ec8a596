from muster.v1 import gang_pb2 as _gang_pb2
from muster.v1 import pod_shape_pb2 as _pod_shape_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueueSort(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_SORT_UNSPECIFIED: _ClassVar[QueueSort]
    QUEUE_SORT_FIFO: _ClassVar[QueueSort]
    QUEUE_SORT_FAIR: _ClassVar[QueueSort]
QUEUE_SORT_UNSPECIFIED: QueueSort
QUEUE_SORT_FIFO: QueueSort
QUEUE_SORT_FAIR: QueueSort

class NamespaceSelector(_message.Message):
    __slots__ = ("requirements",)
    REQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    requirements: _containers.RepeatedCompositeFieldContainer[_pod_shape_pb2.SelectorRequirement]
    def __init__(self, requirements: _Optional[_Iterable[_Union[_pod_shape_pb2.SelectorRequirement, _Mapping]]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "parent", "leaf", "quota", "limit", "over_quota_weight", "priority", "max_applications", "sort", "used", "waiting", "fair_share", "running_gangs", "waiting_gangs", "namespaces", "namespace_selector", "identities")
    class QuotaEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LimitEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OverQuotaWeightEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class WaitingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class FairShareEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LEAF_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OVER_QUOTA_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    FAIR_SHARE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_GANGS_FIELD_NUMBER: _ClassVar[int]
    WAITING_GANGS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    IDENTITIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    leaf: bool
    quota: _containers.ScalarMap[str, str]
    limit: _containers.ScalarMap[str, str]
    over_quota_weight: _containers.ScalarMap[str, int]
    priority: int
    max_applications: int
    sort: QueueSort
    used: _containers.ScalarMap[str, str]
    waiting: _containers.ScalarMap[str, str]
    fair_share: _containers.ScalarMap[str, str]
    running_gangs: int
    waiting_gangs: int
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    namespace_selector: NamespaceSelector
    identities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., leaf: bool = ..., quota: _Optional[_Mapping[str, str]] = ..., limit: _Optional[_Mapping[str, str]] = ..., over_quota_weight: _Optional[_Mapping[str, int]] = ..., priority: _Optional[int] = ..., max_applications: _Optional[int] = ..., sort: _Optional[_Union[QueueSort, str]] = ..., used: _Optional[_Mapping[str, str]] = ..., waiting: _Optional[_Mapping[str, str]] = ..., fair_share: _Optional[_Mapping[str, str]] = ..., running_gangs: _Optional[int] = ..., waiting_gangs: _Optional[int] = ..., namespaces: _Optional[_Iterable[str]] = ..., namespace_selector: _Optional[_Union[NamespaceSelector, _Mapping]] = ..., identities: _Optional[_Iterable[str]] = ...) -> None: ...

class QueueSpec(_message.Message):
    __slots__ = ("name", "parent", "quota", "limit", "over_quota_weight", "priority", "max_applications", "sort", "namespaces", "namespace_selector", "identities")
    class QuotaEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LimitEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OverQuotaWeightEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OVER_QUOTA_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    IDENTITIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: str
    quota: _containers.ScalarMap[str, str]
    limit: _containers.ScalarMap[str, str]
    over_quota_weight: _containers.ScalarMap[str, int]
    priority: int
    max_applications: int
    sort: QueueSort
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    namespace_selector: NamespaceSelector
    identities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[str] = ..., quota: _Optional[_Mapping[str, str]] = ..., limit: _Optional[_Mapping[str, str]] = ..., over_quota_weight: _Optional[_Mapping[str, int]] = ..., priority: _Optional[int] = ..., max_applications: _Optional[int] = ..., sort: _Optional[_Union[QueueSort, str]] = ..., namespaces: _Optional[_Iterable[str]] = ..., namespace_selector: _Optional[_Union[NamespaceSelector, _Mapping]] = ..., identities: _Optional[_Iterable[str]] = ...) -> None: ...

class ApplyQueuesRequest(_message.Message):
    __slots__ = ("request_id", "queues", "prune")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRUNE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    queues: _containers.RepeatedCompositeFieldContainer[QueueSpec]
    prune: bool
    def __init__(self, request_id: _Optional[str] = ..., queues: _Optional[_Iterable[_Union[QueueSpec, _Mapping]]] = ..., prune: bool = ...) -> None: ...

class ApplyQueuesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("request_id", "name")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExplainQueueRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExplainQueueResponse(_message.Message):
    __slots__ = ("text", "queue", "waiting_gangs", "queue_length")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WAITING_GANGS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    text: str
    queue: Queue
    waiting_gangs: _containers.RepeatedCompositeFieldContainer[_gang_pb2.QueuedGang]
    queue_length: int
    def __init__(self, text: _Optional[str] = ..., queue: _Optional[_Union[Queue, _Mapping]] = ..., waiting_gangs: _Optional[_Iterable[_Union[_gang_pb2.QueuedGang, _Mapping]]] = ..., queue_length: _Optional[int] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "next_page_token")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    next_page_token: str
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueueEvent(_message.Message):
    __slots__ = ("upserted", "removed", "synced")
    UPSERTED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    upserted: Queue
    removed: str
    synced: bool
    def __init__(self, upserted: _Optional[_Union[Queue, _Mapping]] = ..., removed: _Optional[str] = ..., synced: bool = ...) -> None: ...
