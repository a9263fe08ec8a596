"""Client of Muster, the gang-scheduling decision service.

`Client` blocks, `AsyncClient` is for asyncio; both have the same calls. Errors are subclasses of `MusterError`, with
the code and the invalid fields. A call is retried within its timeout if musterd cannot be reached or asks for a retry.
Mutating calls carry a request id, so that a retry has no second effect. Lists return all pages.
"""
from muster._aio import AsyncClient
from muster._client import Client
from muster._core import AlreadyExists, DeadlineExceeded, FailedPrecondition, InvalidArgument, MusterError, \
    NotFound, Options, PermissionDenied, ResourceExhausted, SnapshotNeeded, Unauthenticated, Unavailable, \
    Violation, node, pod, result_error
from muster.v1.decision_pb2 import FilterResponse, PermitEvent, PreFilterResponse, PrioritizeResponse, \
    UnreserveRequest
from muster.v1.event_pb2 import Event
from muster.v1.facts_pb2 import FactsStatus, NodeFacts, PodFacts
from muster.v1.gang_pb2 import ExplainGangResponse, ExplainPodResponse, Gang, GangEvent, GangMode, GangSpec, \
    MatchPolicy, MemberFailureAction, TimeoutAction
from muster.v1.node_pb2 import Node, NodeEvent
from muster.v1.placement_pb2 import AbandonGangRequest, ConfirmGangRequest, GetSubmissionRequest, MemberSet, \
    Placement, PlacementCall, PlacementResult, SubmitGangRequest, Submission, SubmissionEvent
from muster.v1.pod_shape_pb2 import PodShape
from muster.v1.queue_pb2 import ExplainQueueResponse, NamespaceSelector, Queue, QueueEvent, QueueSort, QueueSpec
from muster.v1.reason_pb2 import Reason, ReasonCode
from muster.v1.version_pb2 import Version
from muster.v1.what_if_pb2 import PlanGangRequest, PlanGangResponse

__all__ = [
    "AbandonGangRequest", "AlreadyExists", "AsyncClient", "Client", "ConfirmGangRequest", "DeadlineExceeded", "Event",
    "ExplainGangResponse", "ExplainPodResponse", "ExplainQueueResponse", "FactsStatus", "FailedPrecondition",
    "FilterResponse", "Gang", "GangEvent", "GangMode", "GangSpec", "GetSubmissionRequest", "InvalidArgument",
    "MatchPolicy", "MemberFailureAction", "MemberSet", "MusterError", "NamespaceSelector", "Node", "NodeEvent",
    "NodeFacts", "NotFound", "Options", "PermissionDenied", "PermitEvent", "Placement", "PlacementCall",
    "PlacementResult", "PlanGangRequest", "PlanGangResponse", "PodFacts", "PodShape", "PreFilterResponse",
    "PrioritizeResponse", "Queue", "QueueEvent", "QueueSort", "QueueSpec", "Reason", "ReasonCode", "ResourceExhausted",
    "SnapshotNeeded", "Submission", "SubmissionEvent", "SubmitGangRequest", "TimeoutAction", "Unauthenticated",
    "Unavailable", "UnreserveRequest", "Version", "Violation", "node", "pod", "result_error",
]
