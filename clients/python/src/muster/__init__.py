"""Client of Muster, the gang-scheduling decision service.

`Client` blocks, `AsyncClient` is for asyncio; both have the same calls. Errors are `MusterError`, with the invalid
fields. A call is retried within its timeout if musterd cannot be reached or asks for a retry. Mutating calls carry a
request id, so that a retry has no second effect.
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
