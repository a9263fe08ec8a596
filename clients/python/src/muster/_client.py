"""The blocking client."""
from __future__ import annotations

import time
from typing import Any, Iterator, List, Optional, Sequence, Type, Union

import grpc

from muster import _core as core
from muster.v1 import decisions_pb2, decisions_pb2_grpc, facts_pb2, facts_pb2_grpc, muster_pb2, muster_pb2_grpc


class Client:
    """A connection to one musterd. Takes an address or Options. A context manager. Thread-safe."""

    def __init__(self, server: Union[str, core.Options] = "127.0.0.1:9091") -> None:
        self._options = server if isinstance(server, core.Options) else core.Options(server=server)
        credentials = self._options.credentials()
        arguments = self._options.channel_arguments()
        self._channel = grpc.insecure_channel(self._options.server, options=arguments) if credentials is None else \
            grpc.secure_channel(self._options.server, credentials, options=arguments)
        self._gangs = muster_pb2_grpc.GangServiceStub(self._channel)
        self._nodes = muster_pb2_grpc.NodeServiceStub(self._channel)
        self._queues = muster_pb2_grpc.QueueServiceStub(self._channel)
        self._facts = facts_pb2_grpc.FactsServiceStub(self._channel)
        self._decisions = decisions_pb2_grpc.DecisionServiceStub(self._channel)
        self._placements = decisions_pb2_grpc.PlacementServiceStub(self._channel)
        self._events = decisions_pb2_grpc.EventServiceStub(self._channel)
        self._traces = decisions_pb2_grpc.TraceServiceStub(self._channel)
        self._what_ifs = decisions_pb2_grpc.WhatIfServiceStub(self._channel)

    def close(self) -> None:
        """Ends every call in progress."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Any) -> None:
        self.close()

    def _call(self, method: Any, request: Any) -> Any:
        deadline = time.monotonic() + self._options.timeout_s
        pause = core.FIRST_PAUSE_S
        while True:
            try:
                return method(request, timeout=max(0.001, deadline - time.monotonic()), metadata=self._options.metadata())
            except grpc.RpcError as error:
                failure = core.error_of(error)
                if not failure.again or time.monotonic() + pause >= deadline:
                    raise failure from None
            time.sleep(pause)
            pause = min(pause * 2, core.LONGEST_PAUSE_S)

    def _stream(self, method: Any, request: Any) -> Iterator[Any]:
        call = method(request, metadata=self._options.metadata())
        try:
            for message in call:
                yield message
        except grpc.RpcError as error:
            raise core.error_of(error) from None
        finally:
            call.cancel()

    def create_gang(self, gang: muster_pb2.GangSpec, *, request_id: Optional[str] = None) -> muster_pb2.Gang:
        """Declares a gang."""
        return self._call(self._gangs.CreateGang, muster_pb2.CreateGangRequest(
            request_id=request_id or core.new_id(), gang=gang))

    def update_gang(self, gang: muster_pb2.GangSpec, *, request_id: Optional[str] = None) -> muster_pb2.Gang:
        """Replaces the declaration of a gang."""
        return self._call(self._gangs.UpdateGang, muster_pb2.UpdateGangRequest(
            request_id=request_id or core.new_id(), gang=gang))

    def delete_gang(self, name: str, namespace: str = "default", *, request_id: Optional[str] = None) -> None:
        """Removes a declaration."""
        self._call(self._gangs.DeleteGang, muster_pb2.DeleteGangRequest(
            request_id=request_id or core.new_id(), namespace=namespace, name=name))

    def get_gang(self, name: str, namespace: str = "default") -> muster_pb2.Gang:
        """Returns the gang with its members."""
        return self._call(self._gangs.GetGang, muster_pb2.GetGangRequest(namespace=namespace, name=name))

    def explain_gang(self, name: str, namespace: str = "default") -> muster_pb2.ExplainGangResponse:
        """Returns why the gang waits, since when, and what would end the wait."""
        return self._call(self._gangs.ExplainGang, muster_pb2.ExplainGangRequest(namespace=namespace, name=name))

    def list_gangs(self, namespace: str = "") -> List[muster_pb2.Gang]:
        """Lists the gangs of a namespace, or of all."""
        return list((self._call(self._gangs.ListGangs, muster_pb2.ListGangsRequest(namespace=namespace))).gangs)

    def list_nodes(self) -> List[muster_pb2.Node]:
        """Lists nodes with their used, reserved and free capacity."""
        return list((self._call(self._nodes.ListNodes, muster_pb2.ListNodesRequest())).nodes)

    def get_queue(self, name: str) -> muster_pb2.Queue:
        """Returns a queue's declaration and current state."""
        return self._call(self._queues.GetQueue, muster_pb2.GetQueueRequest(name=name))

    def list_queues(self) -> List[muster_pb2.Queue]:
        """Lists the queues, parents before their children."""
        return list((self._call(self._queues.ListQueues, muster_pb2.ListQueuesRequest())).queues)

    def update_facts(self, *, nodes: Sequence[facts_pb2.NodeFacts] = (), removed_nodes: Sequence[str] = (), pods:
                     Sequence[facts_pb2.PodFacts] = (), removed_pods: Sequence[str] = (), manifests:
                     Sequence[core.Manifest] = (), removed_manifests: Sequence[core.Manifest] = (), source: str =
                     "", version: int = 0, request_id: Optional[str] = None) -> facts_pb2.FactsStatus:
        """Applies one step of facts, as a whole or not at all. version is the last one plus one; 0 is an edit outside
        the sequence. SnapshotNeeded: steps are missing."""
        return self._call(self._facts.UpdateFacts, facts_pb2.UpdateFactsRequest(
            request_id=request_id or core.new_id(), source=source, version=version, nodes=nodes,
            removed_nodes=removed_nodes, pods=pods, removed_pods=removed_pods, manifests=[core.manifest_text(m) for m
            in manifests], removed_manifests=[core.manifest_text(m) for m in removed_manifests]))

    def facts_status(self) -> facts_pb2.FactsStatus:
        """Returns the current version and its announcer."""
        return self._call(self._facts.GetFactsStatus, facts_pb2.GetFactsStatusRequest())

    def submit_gang(self, gang: Union[str, muster_pb2.GangSpec] = "", count: int = 0, requests:
                    Optional[core.Requests] = None, *, namespace: str = "default", min_member: Optional[int] = None,
                    members: Sequence[decisions_pb2.MemberSet] = (), pods: Sequence[facts_pb2.PodFacts] = (),
                    manifests: Sequence[core.Manifest] = (), ttl: float = 0, request_id: Optional[str] = None) -> decisions_pb2.Submission:
        """Places a gang as a whole: count equal members, or member sets, pods or Kubernetes manifests. ttl in
        seconds. The same request_id again returns its current state."""
        return self._call(self._placements.SubmitGang, core.submit_request(
            gang, count, requests, namespace, min_member, members, pods, manifests, ttl, request_id))

    def confirm_gang(self, submission: decisions_pb2.Submission) -> decisions_pb2.Submission:
        """Accepts the plan that `submission` shows."""
        return self._call(self._placements.ConfirmGang, decisions_pb2.ConfirmGangRequest(
            id=submission.id, plan=submission.plan))

    def abandon_gang(self, submission_id: str) -> decisions_pb2.Submission:
        """Releases the plan."""
        return self._call(self._placements.AbandonGang, decisions_pb2.AbandonGangRequest(id=submission_id))

    def get_submission(self, submission_id: str) -> decisions_pb2.Submission:
        """Returns the current state of a submitted gang. The call renews a waiting gang."""
        return self._call(self._placements.GetSubmission, decisions_pb2.GetSubmissionRequest(id=submission_id))

    def pre_filter(self, pod_uid: str, *, request_id: Optional[str] = None) -> decisions_pb2.PreFilterResponse:
        """Asks whether the pod may be tried in this cycle."""
        return self._call(self._decisions.PreFilter, decisions_pb2.PreFilterRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid))

    def filter(self, pod_uid: str, nodes: Sequence[str] = ()) -> decisions_pb2.FilterResponse:
        """Returns the nodes on which the pod fits now, best first."""
        return self._call(self._decisions.Filter, decisions_pb2.FilterRequest(pod_uid=pod_uid, nodes=nodes))

    def prioritize(self, pod_uid: str, nodes: Sequence[str] = ()) -> decisions_pb2.PrioritizeResponse:
        """Returns scores from 0 to 100."""
        return self._call(self._decisions.Prioritize, decisions_pb2.PrioritizeRequest(pod_uid=pod_uid, nodes=nodes))

    def post_filter(self, pod_uid: str, message: str = "", *, request_id: Optional[str] = None) -> None:
        """Reports that no node was found for the pod."""
        self._call(self._decisions.PostFilter, decisions_pb2.PostFilterRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid, message=message))

    def unreserve(self, pod_uid: str, cause: decisions_pb2.UnreserveRequest.Cause, *, request_id:
                  Optional[str] = None) -> None:
        """Releases the pod's slot."""
        self._call(self._decisions.Unreserve, decisions_pb2.UnreserveRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid, cause=cause))

    def post_bind(self, pod_uid: str, node: str, *, request_id: Optional[str] = None) -> None:
        """Reports that the pod is bound."""
        self._call(self._decisions.PostBind, decisions_pb2.PostBindRequest(
            request_id=request_id or core.new_id(), pod_uid=pod_uid, node=node))

    def plan_gang(self, request: decisions_pb2.PlanGangRequest) -> decisions_pb2.PlanGangResponse:
        """Returns where a gang would be placed, now or after a change of the cluster, or what prevents it."""
        return self._call(self._what_ifs.PlanGang, request)

    def get_trace(self, namespace: str, gang: str = "", pod: str = "") -> decisions_pb2.GetTraceResponse:
        """Returns the decisions about a gang or a pod, and how the time was spent."""
        return self._call(self._traces.GetTrace, decisions_pb2.GetTraceRequest(
            namespace=namespace, gang=gang, pod=pod))

    def list_events(self, namespace: str = "", after_sequence: int = 0) -> decisions_pb2.ListEventsResponse:
        """Lists Muster's decisions about pods."""
        return self._call(self._events.ListEvents, decisions_pb2.ListEventsRequest(
            namespace=namespace, after_sequence=after_sequence))

    def watch_gangs(self, namespace: str = "") -> Iterator[muster_pb2.GangEvent]:
        """Yields everything that exists, then every change."""
        return self._stream(self._gangs.WatchGangs, muster_pb2.WatchGangsRequest(namespace=namespace))

    def watch_submission(self, submission_id: str) -> Iterator[decisions_pb2.Submission]:
        """Yields the state of a submitted gang until it ends. Meanwhile a waiting gang does not expire."""
        return self._stream(self._placements.WatchSubmission, decisions_pb2.GetSubmissionRequest(id=submission_id))

    def permit(self, pod_uid: str, node: str, *, bind_within: float = 0) -> Iterator[decisions_pb2.PermitEvent]:
        """Yields WAIT, then PERMIT or REJECT. Leaving the loop early releases the slot."""
        return self._stream(self._decisions.Permit, decisions_pb2.PermitRequest(
            pod_uid=pod_uid, node=node, bind_within_ms=int(bind_within * 1000)))

    def watch_events(self, namespace: str = "", after_sequence: int = 0) -> Iterator[decisions_pb2.Event]:
        """Yields the retained events, then new ones."""
        return self._stream(self._events.WatchEvents, decisions_pb2.WatchEventsRequest(
            namespace=namespace, after_sequence=after_sequence))

    def send_snapshot(self, source: str, version: int, nodes: Sequence[facts_pb2.NodeFacts] = (),
                      pods: Sequence[facts_pb2.PodFacts] = (),
                      manifests: Sequence[core.Manifest] = ()) -> facts_pb2.FactsStatus:
        """Announces all existing nodes and pods in one step; `source` is the announcer from then on."""
        def send(_: None, timeout: float, metadata: Any) -> Any:
            parts = core.snapshot_parts(source, version, nodes, pods, manifests)
            return self._facts.SendSnapshot(iter(parts), timeout=timeout, metadata=metadata)

        return self._call(send, None)

    def wait_planned(self, submission_id: str, timeout: Optional[float] = None) -> decisions_pb2.Submission:
        """Returns when a submitted gang has a plan, or has ended. TimeoutError after `timeout` seconds; the gang then
        waits until its TTL."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            now = self.get_submission(submission_id)
            if now.state != decisions_pb2.Submission.WAITING:
                return now
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"gang of submission {submission_id} waits: {now.reason.text}")
            time.sleep(core.FIRST_PAUSE_S)

    def permit_wait(self, pod_uid: str, node: str, *, timeout: Optional[float] = None,
                    bind_within: float = 0) -> decisions_pb2.PermitEvent:
        """Returns the PERMIT or REJECT that ends a Permit. After a TimeoutError the slot is released."""
        request = decisions_pb2.PermitRequest(pod_uid=pod_uid, node=node, bind_within_ms=int(bind_within * 1000))
        call = self._decisions.Permit(request, timeout=timeout, metadata=self._options.metadata())
        last = decisions_pb2.PermitEvent()
        try:
            for last in call:
                pass
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise TimeoutError(f"pod {pod_uid} waits: {last.reason.text}") from None
            raise core.error_of(error) from None
        return last
