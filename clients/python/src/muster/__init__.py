"""Client of Muster, the gang-scheduling decision service.

`Client` blocks, `AsyncClient` is for asyncio; both have the same calls. Errors are `MusterError`, with the fields that were
wrong. Calls that cannot reach musterd, or are told to come back, are tried again for as long as the call's time lasts; calls
that change something carry a request id, so that nothing happens twice.
"""
from muster._aio import AsyncClient
from muster._client import Client
from muster._core import MusterError, Options, SnapshotNeeded, Violation, node, pod
from muster.v1.decisions_pb2 import Event, FilterResponse, MemberSet, PermitEvent, Placement, PreFilterResponse, \
    PrioritizeResponse, Submission, UnreserveRequest
from muster.v1.facts_pb2 import FactsStatus, NodeFacts, PodFacts, PodShape
from muster.v1.muster_pb2 import ExplainGangResponse, Gang, GangEvent, GangSpec, Node, Queue, Reason

__all__ = [
    "AsyncClient", "Client", "Event", "ExplainGangResponse", "FactsStatus", "FilterResponse", "Gang", "GangEvent",
    "GangSpec", "MemberSet", "MusterError", "Node", "NodeFacts", "Options", "PermitEvent", "Placement", "PodFacts", "Queue",
    "PodShape", "PreFilterResponse", "PrioritizeResponse", "Reason", "SnapshotNeeded", "Submission", "UnreserveRequest",
    "Violation", "node", "pod",
]
