"""Shared by both clients: options, errors, requests."""
from __future__ import annotations

import dataclasses
import ipaddress
import json
import uuid
from typing import Any, AsyncIterable, AsyncIterator, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

import grpc
from google.protobuf import duration_pb2, field_mask_pb2
from google.rpc import error_details_pb2, status_pb2

from muster.v1 import facts_pb2, gang_pb2, placement_pb2, pod_shape_pb2

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

Requests = Mapping[str, Union[str, int]]
Manifest = Union[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Options:
    """The connection to musterd.

    ca, cert and key are paths of PEM files; any of them enables TLS. server_name is the name in the server's certificate
    if it differs from the host. A token is only sent over TLS or to a loopback address. timeout_s bounds one call, with
    all its retries.
    """

    server: str = "127.0.0.1:9091"
    ca: Optional[str] = None
    cert: Optional[str] = None
    key: Optional[str] = None
    token: Optional[str] = None
    server_name: Optional[str] = None
    timeout_s: float = 10.0

    @property
    def tls(self) -> bool:
        return any((self.ca, self.cert, self.key))

    def credentials(self) -> Optional[grpc.ChannelCredentials]:
        """Returns the TLS credentials; None: plain text."""
        host = self.server.rsplit(":", 1)[0]
        if self.token and not all("!" <= c <= "~" for c in self.token):
            raise ValueError("token: has characters that no token has; expected printable ASCII without spaces")
        if not self.tls:
            if self.token and not is_loopback(host):
                raise ValueError(f"token: would be sent to {self.server} unencrypted; expected a CA file, or a loopback address")
            return None
        if bool(self.cert) != bool(self.key):
            raise ValueError("key: expected together with cert, both or neither")

        def read(path: Optional[str]) -> Optional[bytes]:
            if path is None:
                return None
            with open(path, "rb") as file:
                return file.read()

        return grpc.ssl_channel_credentials(read(self.ca), read(self.key), read(self.cert))

    def channel_arguments(self) -> List[Tuple[str, Any]]:
        # Large clusters have large answers, and this server is trusted.
        arguments: List[Tuple[str, Any]] = [("grpc.max_receive_message_length", -1)]
        if self.server_name:
            arguments.append(("grpc.ssl_target_name_override", self.server_name))
        return arguments

    def metadata(self) -> List[Tuple[str, str]]:
        return [("authorization", f"Bearer {self.token}")] if self.token else []


@dataclasses.dataclass(frozen=True)
class Violation:
    """An invalid field, with what was expected."""

    field: str
    description: str


class MusterError(Exception):
    """A call that musterd refused, or that did not reach it. Its subclasses are one for each frequent code."""

    def __init__(self, code: grpc.StatusCode, message: str, violations: Sequence[Violation] = (), reason: str = "",
                 again: bool = False):
        super().__init__(f"{code.name}: {message}")
        #: The gRPC status code.
        self.code = code
        self.message = message
        self.violations = list(violations)
        #: For programs, for example SEND_SNAPSHOT; often empty.
        self.reason = reason
        #: Whether the same call may succeed later: nothing happened, or musterd asks for a retry.
        self.again = again


class InvalidArgument(MusterError):
    """The request is invalid; see `violations`."""


class NotFound(MusterError):
    """There is no such object."""


class AlreadyExists(MusterError):
    """An object of that name, or a pod of that UID, exists."""


class FailedPrecondition(MusterError):
    """The state of the object, or the configuration of musterd, does not allow the call."""


class PermissionDenied(MusterError):
    """The caller may not make the call."""


class Unauthenticated(MusterError):
    """The caller did not say who it is, or not in a way that musterd accepts."""


class ResourceExhausted(MusterError):
    """A limit is reached; `again` tells whether a retry may help."""


class Unavailable(MusterError):
    """musterd cannot be reached, or is starting or stopping."""


class DeadlineExceeded(MusterError):
    """musterd did not answer in time. The call may still take effect."""


class SnapshotNeeded(FailedPrecondition):
    """A snapshot is required: an update came after a gap, musterd's store does not have the earlier steps, or another
    announcer took over."""


_KINDS: Mapping[grpc.StatusCode, Type[MusterError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
}


def error_of(error: Any) -> MusterError:
    """The MusterError of a grpc.RpcError."""
    details = next((value for key, value in (error.trailing_metadata() or ()) if key == "grpc-status-details-bin"), b"")
    return _error(error.code(), error.details() or "", status_pb2.Status.FromString(details).details)


def result_error(result: placement_pb2.PlacementResult) -> Optional[MusterError]:
    """Why a call of place_gangs was refused; None: it was not."""
    if not result.HasField("error"):
        return None
    numbers: Any = grpc.StatusCode
    code = next((code for code in numbers if code.value[0] == result.error.code), grpc.StatusCode.UNKNOWN)
    return _error(code, result.error.message, result.error.details)


def _error(code: grpc.StatusCode, text: str, details: Iterable[Any]) -> MusterError:
    violations: List[Violation] = []
    reason = ""
    again = code == grpc.StatusCode.UNAVAILABLE
    for detail in details:
        bad = error_details_pb2.BadRequest()
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(bad):
            violations = [Violation(v.field, v.description) for v in bad.field_violations]
        elif detail.Unpack(info):
            reason = info.reason
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            again = True
    kind = _KINDS.get(code, MusterError)
    if reason == "SEND_SNAPSHOT":
        kind = SnapshotNeeded
    return kind(code, text, violations, reason, again)


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def duration(seconds: float) -> Optional[duration_pb2.Duration]:
    """The Duration; None for 0, which stands for the default."""
    if not seconds:
        return None
    nanos = round(seconds * 1e9)
    return duration_pb2.Duration(seconds=nanos // 10**9, nanos=nanos % 10**9)


def mask(fields: Optional[Sequence[str]]) -> Optional[field_mask_pb2.FieldMask]:
    """The mask of these fields; None: all."""
    return None if fields is None else field_mask_pb2.FieldMask(paths=list(fields))


def new_id() -> str:
    return uuid.uuid4().hex


def node(name: str, allocatable: Requests, *, labels: Optional[Mapping[str, str]] = None,
         unschedulable: bool = False) -> facts_pb2.NodeFacts:
    """A node with its quantities, for example {"cpu": "64", "nvidia.com/gpu": 8}."""
    return facts_pb2.NodeFacts(name=name, allocatable={k: str(v) for k, v in allocatable.items()}, labels=labels,
                               unschedulable=unschedulable)


def pod(uid: str, name: str, requests: Requests, *, namespace: str = "default", gang: str = "", min_member: Optional[int] = None,
        node_name: str = "", phase: facts_pb2.PodFacts.Phase = facts_pb2.PodFacts.PHASE_UNSPECIFIED, scheduler_name: str = "", priority: int = 0) -> facts_pb2.PodFacts:
    """A pod; with min_member it declares its gang itself."""
    return facts_pb2.PodFacts(
        uid=uid, name=name, namespace=namespace, gang=gang, node_name=node_name, phase=phase, priority=priority,
        scheduler_name=scheduler_name, shape=shape(requests),
        declaration=None if min_member is None else gang_pb2.GangSpec(min_member=min_member))


def shape(requests: Requests) -> pod_shape_pb2.PodShape:
    return pod_shape_pb2.PodShape(requests={k: str(v) for k, v in requests.items()})


def manifest_text(manifest: Manifest) -> str:
    return manifest if isinstance(manifest, str) else json.dumps(manifest)


def submit_request(gang: Union[str, gang_pb2.GangSpec], count: int, requests: Optional[Requests], namespace: str,
                   min_member: Optional[int], members: Iterable[placement_pb2.MemberSet],
                   pods: Iterable[facts_pb2.PodFacts], manifests: Iterable[Manifest], ttl: float,
                   confirm: bool, request_id: Optional[str]) -> placement_pb2.SubmitGangRequest:
    sets = list(members)
    if count:
        sets.append(placement_pb2.MemberSet(count=count, shape=shape(requests or {})))
    spec: Optional[gang_pb2.GangSpec]
    if isinstance(gang, str):
        total = sum(s.count for s in sets)
        spec = gang_pb2.GangSpec(namespace=namespace, name=gang, min_member=total if min_member is None else min_member) \
            if gang else None
    else:
        spec = gang
    return placement_pb2.SubmitGangRequest(
        request_id=request_id or new_id(), gang=spec, members=sets, pods=pods,
        manifests=[manifest_text(m) for m in manifests], ttl=duration(ttl), confirm=confirm)


Calls = Union[placement_pb2.PlacementCall, Sequence[placement_pb2.PlacementCall]]


class Messages:
    """Calls as messages. Counts those without an answer, and keeps what the caller's iterator raised, which gRPC hides."""

    def __init__(self) -> None:
        self.sent = 0  # written by gRPC's thread only
        self.answered = 0  # written by the reader only
        self.raised: Optional[Exception] = None

    def message(self, calls: Calls) -> placement_pb2.PlaceGangsRequest:
        request = placement_pb2.PlaceGangsRequest(
            calls=[calls] if isinstance(calls, placement_pb2.PlacementCall) else calls)
        self.sent += len(request.calls)
        return request

    def of(self, calls: Iterable[Calls]) -> Iterator[placement_pb2.PlaceGangsRequest]:
        try:
            for some in calls:
                yield self.message(some)
        except Exception as error:
            self.raised = error
            raise

    async def of_async(self, calls: AsyncIterable[Calls]) -> AsyncIterator[placement_pb2.PlaceGangsRequest]:
        try:
            async for some in calls:
                yield self.message(some)
        except Exception as error:
            self.raised = error
            raise

    def results(self, response: placement_pb2.PlaceGangsResponse) -> Sequence[placement_pb2.PlacementResult]:
        self.answered += len(response.results)
        return response.results

    def check_end(self) -> None:
        if self.sent != self.answered:
            raise MusterError(grpc.StatusCode.INTERNAL,
                              f"{self.sent - self.answered} calls have no answer: musterd could not read them")


def snapshot_parts(source: str, version: int, nodes: Sequence[facts_pb2.NodeFacts], pods: Sequence[facts_pb2.PodFacts],
                   manifests: Sequence[Manifest], part_bytes: int = 1 << 20) -> Iterable[facts_pb2.SendSnapshotRequest]:
    """Splits a snapshot into parts of one message each; the last one is marked."""
    part = facts_pb2.SendSnapshotRequest(source=source, version=version)
    size = 0
    texts = [manifest_text(m) for m in manifests]
    for field, items in (("nodes", nodes), ("pods", pods), ("manifests", texts)):
        for item in items:
            more = len(item.encode()) if isinstance(item, str) else item.ByteSize()
            if size and size + more > part_bytes:
                yield part
                part = facts_pb2.SendSnapshotRequest()
                size = 0
            getattr(part, field).append(item)
            size += more + 4
    part.last = True
    yield part
