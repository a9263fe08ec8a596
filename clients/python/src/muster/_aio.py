"""The client for asyncio."""
from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncIterable, AsyncIterator, List, Optional, Sequence, Type, Union

import grpc

from muster import _core as core
from muster.v1 import decision_pb2, decision_pb2_grpc, event_pb2, event_pb2_grpc, facts_pb2, facts_pb2_grpc, \
    gang_pb2, gang_pb2_grpc, node_pb2, node_pb2_grpc, placement_pb2, placement_pb2_grpc, queue_pb2, queue_pb2_grpc, \
    trace_pb2, trace_pb2_grpc, version_pb2, version_pb2_grpc, what_if_pb2, what_if_pb2_grpc


class AsyncClient:
    """A connection to one musterd. Takes an address or Options. A context manager. For one event loop."""

    def __init__(self, server: Union[str, core.Options] = "127.0.0.1:9091") -> None:
        self._options = server if isinstance(server, core.Options) else core.Options(server=server)
        credentials = self._options.credentials()
        arguments = self._options.channel_arguments()
        self._channel = grpc.aio.insecure_channel(self._options.server, options=arguments) if credentials is None else \
            grpc.aio.secure_channel(self._options.server, credentials, options=arguments)
        self._gangs = gang_pb2_grpc.GangServiceStub(self._channel)
        self._nodes = node_pb2_grpc.NodeServiceStub(self._channel)
        self._queues = queue_pb2_grpc.QueueServiceStub(self._channel)
        self._facts = facts_pb2_grpc.FactsServiceStub(self._channel)
        self._decisions = decision_pb2_grpc.DecisionServiceStub(self._channel)
        self._placements = placement_pb2_grpc.PlacementServiceStub(self._channel)
        self._events = event_pb2_grpc.EventServiceStub(self._channel)
        self._traces = trace_pb2_grpc.TraceServiceStub(self._channel)
        self._what_ifs = what_if_pb2_grpc.WhatIfServiceStub(self._channel)
        self._versions = version_pb2_grpc.VersionServiceStub(self._channel)

    async def close(self) -> None:
        """Ends every call in progress."""
        await self._channel.close(None)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Any) -> None:
        await self.close()

    async def _call(self, method: Any, request: Any) -> Any:
        deadline = time.monotonic() + self._options.timeout_s
        pause = core.FIRST_PAUSE_S
        while True:
            try:
                return await method(request, timeout=max(0.001, deadline - time.monotonic()), metadata=self._options.metadata())
            except grpc.RpcError as error:
                failure = core.error_of(error)
                if not failure.again or time.monotonic() + pause >= deadline:
                    raise failure from None
            await asyncio.sleep(pause)
            pause = min(pause * 2, core.LONGEST_PAUSE_S)

    async def _stream(self, method: Any, request: Any) -> AsyncIterator[Any]:
        call = method(request, metadata=self._options.metadata())
        try:
            async for message in call:
                yield message
        except grpc.RpcError as error:
            raise core.error_of(error) from None
        finally:
            call.cancel()

    async def _pages(self, method: Any, request: Any, field: str) -> List[Any]:
        objects: List[Any] = []
        while True:
            page = await self._call(method, request)
            objects.extend(getattr(page, field))
            if not page.next_page_token:
                return objects
            request.page_token = page.next_page_token

    async def create_gang(self, gang: gang_pb2.GangSpec, *, request_id: Optional[str] = None) -> gang_pb2.Gang:
        """Declares a gang."""
        return await self._call(self._gangs.CreateGang, gang_pb2.CreateGangRequest(
            request_id=request_id or core.new_id(), gang=gang))

    async def update_gang(self, gang: gang_pb2.GangSpec, fields: Optional[Sequence[str]] = None, *,
                    request_id: Optional[str] = None) -> gang_pb2.Gang:
        """Replaces the declaration of a gang, or only the named fields of it, for example ["min_member"]."""
        return await self._call(self._gangs.UpdateGang, gang_pb2.UpdateGangRequest(
            request_id=request_id or core.new_id(), gang=gang, update_mask=core.mask(fields)))

    async def delete_gang(self, name: str, namespace: str = "default", *, request_id: Optional[str] = None) -> None:
        """Removes a declaration."""
        await self._call(self._gangs.DeleteGang, gang_pb2.DeleteGangRequest(
            request_id=request_id or core.new_id(), namespace=namespace, name=name))

    async def get_gang(self, name: str, namespace: str = "default") -> gang_pb2.Gang:
        """Returns the gang with its members."""
        return await self._call(self._gangs.GetGang, gang_pb2.GetGangRequest(namespace=namespace, name=name))

    async def explain_gang(self, name: str, namespace: str = "default") -> gang_pb2.ExplainGangResponse:
        """Returns why the gang waits, since when, and what would end the wait."""
        return await self._call(self._gangs.ExplainGang, gang_pb2.ExplainGangRequest(
            namespace=namespace, name=name))

    async def explain_pod(self, name: str = "", namespace: str = "default", *, uid: str = "") -> gang_pb2.ExplainPodResponse:
        """Returns why the pod waits, and the state of its gang."""
        return await self._call(self._gangs.ExplainPod, gang_pb2.ExplainPodRequest(
            namespace=namespace, name=name, uid=uid))

    async def list_gangs(self, namespace: str = "") -> List[gang_pb2.Gang]:
        """Lists the gangs of a namespace, or of all, without their members."""
        return await self._pages(self._gangs.ListGangs, gang_pb2.ListGangsRequest(namespace=namespace), "gangs")

    async def get_node(self, name: str) -> node_pb2.Node:
        """Returns a node with its used, reserved and free capacity."""
        return await self._call(self._nodes.GetNode, node_pb2.GetNodeRequest(name=name))

    async def list_nodes(self) -> List[node_pb2.Node]:
        """Lists nodes with their used, reserved and free capacity."""
        return await self._pages(self._nodes.ListNodes, node_pb2.ListNodesRequest(), "nodes")

    async def get_queue(self, name: str) -> queue_pb2.Queue:
        """Returns a queue's declaration and current state."""
        return await self._call(self._queues.GetQueue, queue_pb2.GetQueueRequest(name=name))

    async def list_queues(self) -> List[queue_pb2.Queue]:
        """Lists the queues, parents before their children."""
        return await self._pages(self._queues.ListQueues, queue_pb2.ListQueuesRequest(), "queues")

    async def explain_queue(self, name: str) -> queue_pb2.ExplainQueueResponse:
        """Returns the queue's entitlement and usage, its first waiting gang, and why that gang waits."""
        return await self._call(self._queues.ExplainQueue, queue_pb2.ExplainQueueRequest(name=name))

    async def apply_queues(self, queues: Sequence[queue_pb2.QueueSpec], *, prune: bool = False,
                     request_id: Optional[str] = None) -> None:
        """Creates or replaces queues in one step. prune: deletes all others."""
        await self._call(self._queues.ApplyQueues, queue_pb2.ApplyQueuesRequest(
            request_id=request_id or core.new_id(), queues=queues, prune=prune))

    async def delete_queue(self, name: str, *, request_id: Optional[str] = None) -> None:
        """Removes a queue."""
        await self._call(self._queues.DeleteQueue, queue_pb2.DeleteQueueRequest(
            request_id=request_id or core.new_id(), name=name))

    async def update_facts(self, *, nodes: Sequence[facts_pb2.NodeFacts] = (), removed_nodes: Sequence[str] = (),
                           pods: Sequence[facts_pb2.PodFacts] = (), removed_pods: Sequence[str] = (), manifests:
                           Sequence[core.Manifest] = (), removed_manifests: Sequence[core.Manifest] = (), source:
                           str = "", version: int = 0, request_id: Optional[str] = None) -> facts_pb2.FactsStatus:
        """Applies one step of facts, as a whole or not at all. version is the last one plus one; 0 is an edit outside
        the sequence. SnapshotNeeded: steps are missing."""
        return await self._call(self._facts.UpdateFacts, facts_pb2.UpdateFactsRequest(
            request_id=request_id or core.new_id(), source=source, version=version, nodes=nodes,
            removed_nodes=removed_nodes, pods=pods, removed_pods=removed_pods, manifests=[core.manifest_text(m) for m
            in manifests], removed_manifests=[core.manifest_text(m) for m in removed_manifests]))

    async def facts_status(self) -> facts_pb2.FactsStatus:
        """Returns the current version and its announcer."""
        return await self._call(self._facts.GetFactsStatus, facts_pb2.GetFactsStatusRequest())

    async def submit_gang(self, gang: Union[str, gang_pb2.GangSpec] = "", count: int = 0, requests:
                          Optional[core.Requests] = None, *, namespace: str = "default", min_member: Optional[int] =
                          None, members: Sequence[placement_pb2.MemberSet] = (), pods: Sequence[facts_pb2.PodFacts]
                          = (), manifests: Sequence[core.Manifest] = (), ttl: float = 0, confirm: bool = False,
                          request_id: Optional[str] = None) -> placement_pb2.Submission:
        """Places a gang as a whole: count equal members, or member sets, pods or Kubernetes manifests. ttl in
        seconds. confirm: also confirms the plan if there is one now. The same request_id again returns its current
        state."""
        return await self._call(self._placements.SubmitGang, core.submit_request(
            gang, count, requests, namespace, min_member, members, pods, manifests, ttl, confirm, request_id))

    async def confirm_gang(self, submission: placement_pb2.Submission) -> placement_pb2.Submission:
        """Accepts the plan that `submission` shows."""
        return await self._call(self._placements.ConfirmGang, placement_pb2.ConfirmGangRequest(
            id=submission.id, plan=submission.plan))

    async def abandon_gang(self, submission_id: str) -> placement_pb2.Submission:
        """Releases the plan."""
        return await self._call(self._placements.AbandonGang, placement_pb2.AbandonGangRequest(id=submission_id))

    async def get_submission(self, submission_id: str) -> placement_pb2.Submission:
        """Returns the current state of a submitted gang. The call renews a waiting gang."""
        return await self._call(self._placements.GetSubmission, placement_pb2.GetSubmissionRequest(id=submission_id))

    async def list_submissions(self, namespace: str = "") -> List[placement_pb2.Submission]:
        """Lists the submissions that have not ended, and the last ones that have. The call renews none."""
        return await self._pages(self._placements.ListSubmissions, placement_pb2.ListSubmissionsRequest(
            namespace=namespace), "submissions")

    async def pre_filter(self, pod_uid: str, *, request_id: Optional[str] = None) -> decision_pb2.PreFilterResponse:
        """Asks whether the pod may be tried in this cycle."""
        return await self._call(self._decisions.PreFilter, decision_pb2.PreFilterRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid))

    async def filter(self, pod_uid: str, nodes: Sequence[str] = ()) -> decision_pb2.FilterResponse:
        """Returns the nodes on which the pod fits now, best first."""
        return await self._call(self._decisions.Filter, decision_pb2.FilterRequest(pod_uid=pod_uid, nodes=nodes))

    async def prioritize(self, pod_uid: str, nodes: Sequence[str] = ()) -> decision_pb2.PrioritizeResponse:
        """Returns scores from 0 to 100."""
        return await self._call(self._decisions.Prioritize, decision_pb2.PrioritizeRequest(
            pod_uid=pod_uid, nodes=nodes))

    async def post_filter(self, pod_uid: str, message: str = "", *, request_id: Optional[str] = None) -> None:
        """Reports that no node was found for the pod."""
        await self._call(self._decisions.PostFilter, decision_pb2.PostFilterRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid, message=message))

    async def unreserve(self, pod_uid: str, cause: decision_pb2.UnreserveRequest.Cause, *, request_id:
                        Optional[str] = None) -> None:
        """Releases the pod's slot."""
        await self._call(self._decisions.Unreserve, decision_pb2.UnreserveRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid, cause=cause))

    async def post_bind(self, pod_uid: str, node: str, *, request_id: Optional[str] = None) -> None:
        """Reports that the pod is bound."""
        await self._call(self._decisions.PostBind, decision_pb2.PostBindRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid, node=node))

    async def plan_gang(self, request: what_if_pb2.PlanGangRequest) -> what_if_pb2.PlanGangResponse:
        """Returns where a gang would be placed, now or after a change of the cluster, or what prevents it."""
        return await self._call(self._what_ifs.PlanGang, request)

    async def get_trace(self, namespace: str, gang: str = "", pod: str = "") -> trace_pb2.GetTraceResponse:
        """Returns the decisions about a gang or a pod, and how the time was spent."""
        return await self._call(self._traces.GetTrace, trace_pb2.GetTraceRequest(
            namespace=namespace, gang=gang, pod=pod))

    async def list_events(self, namespace: str = "", after_sequence: int = 0) -> List[event_pb2.Event]:
        """Lists Muster's decisions about pods. `dropped_events` of the first one counts those that are no longer
        retained."""
        events: List[event_pb2.Event] = []
        request = event_pb2.ListEventsRequest(namespace=namespace, after_sequence=after_sequence)
        while True:
            page = await self._call(self._events.ListEvents, request)
            if page.events:
                page.events[0].dropped_events = page.dropped_events
            events.extend(page.events)
            if not page.next_page_token:
                return events
            request.page_token = page.next_page_token

    async def get_version(self) -> version_pb2.Version:
        """Returns the version of the server."""
        return await self._call(self._versions.GetVersion, version_pb2.GetVersionRequest())

    def watch_gangs(self, namespace: str = "") -> AsyncIterator[gang_pb2.GangEvent]:
        """Yields everything that exists, then every change."""
        return self._stream(self._gangs.WatchGangs, gang_pb2.WatchGangsRequest(namespace=namespace))

    def watch_nodes(self) -> AsyncIterator[node_pb2.NodeEvent]:
        """Yields every node, then every change."""
        return self._stream(self._nodes.WatchNodes, node_pb2.WatchNodesRequest())

    def watch_queues(self) -> AsyncIterator[queue_pb2.QueueEvent]:
        """Yields every queue, then every change."""
        return self._stream(self._queues.WatchQueues, queue_pb2.WatchQueuesRequest())

    def watch_submissions(self, namespace: str = "") -> AsyncIterator[placement_pb2.SubmissionEvent]:
        """Yields every submission that has not ended, then every change. Renews none."""
        return self._stream(self._placements.WatchSubmissions, placement_pb2.WatchSubmissionsRequest(
            namespace=namespace))

    def watch_submission(self, submission_id: str) -> AsyncIterator[placement_pb2.Submission]:
        """Yields the state of a submitted gang until it ends. Meanwhile a waiting gang does not expire."""
        return self._stream(self._placements.WatchSubmission, placement_pb2.WatchSubmissionRequest(id=submission_id))

    async def place_gangs(self, calls: AsyncIterable[core.Calls]) -> AsyncIterator[placement_pb2.PlacementResult]:
        """Makes many calls on one stream, at a fraction of the cost of a call each, and yields the answers in the order
        of the calls. A list of calls is sent as one message. result_error(result) returns why a call was refused. After
        a broken stream, send again what was not answered: a call with the same id has no second effect. Submissions
        need a request_id."""
        messages = core.Messages()
        try:
            async for response in self._stream(self._placements.PlaceGangs, messages.of_async(calls)):
                for result in messages.results(response):
                    yield result
        except (core.MusterError, asyncio.CancelledError):  # gRPC cancels the call of an iterator that raised
            if messages.raised is not None:
                raise messages.raised
            raise
        messages.check_end()

    def permit(self, pod_uid: str, node: str, *, bind_within: float = 0) -> AsyncIterator[decision_pb2.PermitEvent]:
        """Yields WAIT, then PERMIT or REJECT. Leaving the loop early releases the slot."""
        return self._stream(self._decisions.Permit, decision_pb2.PermitRequest(
            pod_uid=pod_uid, node=node, bind_timeout=core.duration(bind_within)))

    def watch_events(self, namespace: str = "", after_sequence: int = 0) -> AsyncIterator[event_pb2.Event]:
        """Yields the retained events, then new ones."""
        return self._stream(self._events.WatchEvents, event_pb2.WatchEventsRequest(
            namespace=namespace, after_sequence=after_sequence))

    async def send_snapshot(self, source: str, version: int, nodes: Sequence[facts_pb2.NodeFacts] = (),
                            pods: Sequence[facts_pb2.PodFacts] = (),
                            manifests: Sequence[core.Manifest] = ()) -> facts_pb2.FactsStatus:
        """Announces all existing nodes and pods in one step; `source` is the announcer from then on."""
        def send(_: None, timeout: float, metadata: Any) -> Any:
            parts = core.snapshot_parts(source, version, nodes, pods, manifests)
            return self._facts.SendSnapshot(iter(parts), timeout=timeout, metadata=metadata)

        return await self._call(send, None)

    async def wait_planned(self, submission_id: str, timeout: Optional[float] = None) -> placement_pb2.Submission:
        """Returns when a submitted gang has a plan, or has ended. TimeoutError after `timeout` seconds; the gang then
        waits until its TTL."""
        async def follow() -> placement_pb2.Submission:
            async for now in self.watch_submission(submission_id):
                if now.state != placement_pb2.Submission.STATE_WAITING:
                    return now
            return await self.get_submission(submission_id)

        return await asyncio.wait_for(follow(), timeout)

    async def permit_wait(self, pod_uid: str, node: str, *, timeout: Optional[float] = None,
                          bind_within: float = 0) -> decision_pb2.PermitEvent:
        """Returns the PERMIT or REJECT that ends a Permit. After a TimeoutError the slot is released."""
        async def follow() -> decision_pb2.PermitEvent:
            last = decision_pb2.PermitEvent()
            async for last in self.permit(pod_uid, node, bind_within=bind_within):
                pass
            return last

        return await asyncio.wait_for(follow(), timeout)
