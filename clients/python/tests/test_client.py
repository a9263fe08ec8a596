"""The Python client against a running musterd (SPEC S-1)."""
from __future__ import annotations

import asyncio
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import AsyncIterator, Iterator, List, Union

import grpc
import pytest

import muster
from conftest import Musterd

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
GPU = "nvidia.com/gpu"


def two_nodes(client: muster.Client) -> None:
    client.send_snapshot("test", 1, [muster.node(name, {"cpu": "8", GPU: 4}) for name in ("a", "b")])


def reserved(client: muster.Client) -> int:
    return sum(int(node.reserved.get(GPU, "0")) for node in client.list_nodes())


def used(client: muster.Client) -> int:
    return sum(int(node.used.get(GPU, "0")) for node in client.list_nodes())


@pytest.mark.parametrize("example", ["orchestrator.py", "orchestrator_async.py"])
def test_the_example_schedules_three_gangs(musterd: Musterd, example: str) -> None:
    run = subprocess.run([sys.executable, str(EXAMPLES / example)], env={**os.environ, "MUSTER_SERVER": musterd.address},
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    for name, pods in (("train", 8), ("serve", 4), ("sweep", 10)):
        assert f"{name} STATE_CONFIRMED {pods} pods" in run.stdout
    with muster.Client(musterd.address) as client:
        assert used(client) == 22
        assert {gang.phase for gang in client.list_gangs()} == {muster.Gang.PHASE_SCHEDULED}


def test_a_killed_client_leaves_no_reservation_after_the_ttl(musterd: Musterd) -> None:
    script = ("import muster, os, signal\n"
              f"client = muster.Client('{musterd.address}')\n"
              f"client.submit_gang('left', 4, {{'{GPU}': 1}}, ttl=1.5)\n"
              "os.kill(os.getpid(), signal.SIGKILL)\n")
    with muster.Client(musterd.address) as client:
        two_nodes(client)
        run = subprocess.run([sys.executable, "-c", script], timeout=30)
        assert run.returncode == -9
        assert reserved(client) == 4
        deadline = time.monotonic() + 5
        while reserved(client) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert reserved(client) == 0
        assert client.list_gangs() == []


def test_a_repeated_request_reserves_once(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        two_nodes(client)

        def submit(_: int) -> muster.Submission:
            return client.submit_gang("once", 3, {GPU: 1}, ttl=30, request_id="the-same")

        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(submit, range(20)))
        assert {answer.plan for answer in answers} == {answers[0].plan}
        assert reserved(client) == 3
        gang = client.confirm_gang(answers[0])
        assert client.confirm_gang(answers[0]) == gang
        assert (reserved(client), used(client)) == (0, 3)


def test_a_gang_without_room_waits_with_a_reason(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        two_nodes(client)
        first = client.submit_gang("first", 8, {GPU: 1}, ttl=30)
        second = client.submit_gang("second", 2, {GPU: 1}, ttl=5)
        assert second.state == muster.Submission.STATE_WAITING
        assert GPU in second.reason.text
        with pytest.raises(TimeoutError, match="second|room"):
            client.wait_planned(second.id, timeout=0.2)
        threading.Timer(0.3, lambda: client.abandon_gang(first.id)).start()
        planned = client.wait_planned(second.id, timeout=5)
        assert planned.state == muster.Submission.STATE_PLANNED
        assert client.confirm_gang(planned).state == muster.Submission.STATE_CONFIRMED


def test_queues_report_their_state(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        two_nodes(client)
        assert sorted(queue.name for queue in client.list_queues()) == ["default", "team"]
        client.submit_gang(muster.GangSpec(name="g", min_member=2, queue="team"), 2, {GPU: 1}, ttl=30)
        team = client.get_queue("team")
        assert (team.limit["cpu"], team.used[GPU], team.running_gangs) == ("2", "2", 1)
        with pytest.raises(muster.NotFound) as missing:
            client.get_queue("unknown")
        assert missing.value.code == grpc.StatusCode.NOT_FOUND

    async def names() -> List[str]:
        async with muster.AsyncClient(musterd.address) as client:
            assert (await client.get_queue("team")).running_gangs == 1
            return [queue.name for queue in await client.list_queues()]

    assert "team" in asyncio.run(names())


def test_permit_pod_by_pod(musterd: Musterd) -> None:
    async def run() -> List[int]:
        async with muster.AsyncClient(musterd.address) as client:
            await client.send_snapshot("test", 1, [muster.node("a", {"cpu": "8"})], [
                muster.pod(f"u{i}", f"p{i}", {"cpu": "1"}, gang="verbs", min_member=2) for i in range(2)])
            assert (await client.pre_filter("u0")).allowed
            assert list((await client.filter("u0")).nodes) == ["a"]
            with pytest.raises(asyncio.TimeoutError):
                await client.permit_wait("u0", "a", timeout=0.2)  # releases the slot
            first = asyncio.create_task(client.permit_wait("u0", "a", timeout=10))
            while (await client.get_gang("verbs")).counts.waiting == 0:
                await asyncio.sleep(0.01)
            second = await client.permit_wait("u1", "a", timeout=10)
            await client.post_bind("u0", "a")
            return [(await first).verdict, second.verdict]

    assert asyncio.run(run()) == [muster.PermitEvent.VERDICT_PERMIT, muster.PermitEvent.VERDICT_PERMIT]


def test_errors_name_fields_and_reasons(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        with pytest.raises(muster.InvalidArgument) as wrong:
            client.create_gang(muster.GangSpec(name="Not A Name", min_member=-1))
        assert wrong.value.code == grpc.StatusCode.INVALID_ARGUMENT
        assert {v.field for v in wrong.value.violations} == {"gang.name", "gang.min_member"}
        with pytest.raises(muster.SnapshotNeeded):
            client.update_facts(source="test", version=7)
        two_nodes(client)
        assert client.update_facts(source="test", version=2, removed_nodes=["b"]).version == 2
        with pytest.raises(muster.FailedPrecondition, match="FAILED_PRECONDITION: ") as gap:
            client.update_facts(source="test", version=4)
        assert isinstance(gap.value, muster.SnapshotNeeded) and gap.value.code == grpc.StatusCode.FAILED_PRECONDITION
        with pytest.raises(muster.MusterError) as missing:
            client.get_gang("unknown")
        assert missing.value.code == grpc.StatusCode.NOT_FOUND
        # A message that is too large is not sent again and again.
        begun = time.monotonic()
        with pytest.raises(muster.MusterError) as large:
            client.update_facts(manifests=[" " * (5 << 20)])
        assert large.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED and not large.value.again
        assert time.monotonic() - begun < 8


def test_a_call_waits_for_musterd_to_come_up(tmp_path: pathlib.Path, free_port: int) -> None:
    started: List[Musterd] = []
    timer = threading.Timer(0.5, lambda: started.append(Musterd(tmp_path, free_port)))
    timer.start()
    try:
        with muster.Client(f"127.0.0.1:{free_port}") as client:
            assert client.list_gangs() == []
    finally:
        timer.join()
        for musterd in started:
            musterd.kill()


def test_large_clusters_are_announced_and_listed(musterd: Musterd) -> None:
    labels = {f"label-{i}": "x" * 60 for i in range(25)}
    with muster.Client(muster.Options(server=musterd.address, timeout_s=60)) as client:
        status = client.send_snapshot("test", 1, [muster.node(f"node-{i}", {"cpu": "8", GPU: 4}, labels=labels)
                                                  for i in range(4000)])
        assert status.node_count == 4000
        nodes = client.list_nodes()
        assert len(nodes) == 4000


def test_a_token_is_not_sent_in_plain_text() -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        muster.Client(muster.Options(server="muster.example:9091", token="secret"))
    with pytest.raises(ValueError, match="unencrypted"):
        muster.Client(muster.Options(server="127.evil.example:9091", token="secret"))


def test_update_mask_replaces_named_fields(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        client.create_gang(muster.GangSpec(name="g", min_member=2, total_number=4))
        gang = client.update_gang(muster.GangSpec(name="g", min_member=3), ["min_member"])
        assert (gang.rules.min_member, gang.rules.total_number) == (3, 4)
        with pytest.raises(muster.InvalidArgument) as wrong:
            client.update_gang(muster.GangSpec(name="g"), ["minMember"])
        assert [violation.field for violation in wrong.value.violations] == ["update_mask.paths[0]"]


def test_submissions_are_listed_and_watched(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        two_nodes(client)
        client.submit_gang("a", 2, {GPU: 1}, ttl=60, request_id="id-a")
        client.submit_gang("b", 2, {GPU: 1}, ttl=60, request_id="id-b", namespace="other")
        assert [(s.id, s.gang) for s in client.list_submissions()] == [("id-a", "default/a"), ("id-b", "other/b")]
        assert [s.id for s in client.list_submissions("other")] == ["id-b"]
        seen: List[str] = []
        for event in client.watch_submissions():
            kind = event.WhichOneof("event")
            if kind == "synced":
                assert sorted(seen) == ["id-a 2", "id-b 2"]
                client.abandon_gang("id-a")
            else:
                seen.append(f"{event.upserted.id} {event.upserted.state}")
                if event.upserted.state == muster.Submission.STATE_ABANDONED:
                    break
        assert client.list_submissions()[0].state == muster.Submission.STATE_ABANDONED


def calls() -> List[Union[muster.PlacementCall, List[muster.PlacementCall]]]:
    def submit(name: str, request_id: str) -> muster.PlacementCall:
        return muster.PlacementCall(submit=muster.SubmitGangRequest(
            request_id=request_id, confirm=True, gang=muster.GangSpec(name=name, min_member=5),
            members=[muster.MemberSet(count=5, shape=muster.PodShape(requests={GPU: "1"}))]))
    return [[submit("a", "id-a"), submit("b", "")], submit("c", "id-c"),
            muster.PlacementCall(get=muster.GetSubmissionRequest(id="unknown"))]


def check_results(results: List[muster.PlacementResult]) -> None:
    assert [result.submission.state for result in results] == [
        muster.Submission.STATE_CONFIRMED, 0, muster.Submission.STATE_WAITING, 0]
    errors = [muster.result_error(result) for result in results]
    assert errors[0] is None and errors[2] is None
    assert isinstance(errors[1], muster.InvalidArgument)
    assert [violation.field for violation in errors[1].violations] == ["submit.request_id"]
    assert isinstance(errors[3], muster.NotFound)


def test_many_calls_share_a_stream(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        two_nodes(client)
        check_results(list(client.place_gangs(calls())))
        assert client.submit_gang("d", 1, {GPU: 1}, ttl=30, confirm=True).state == muster.Submission.STATE_CONFIRMED


def test_many_calls_share_a_stream_of_the_asynchronous_client(musterd: Musterd) -> None:
    async def run() -> List[muster.PlacementResult]:
        async def each() -> AsyncIterator[Union[muster.PlacementCall, List[muster.PlacementCall]]]:
            for some in calls():
                yield some

        async with muster.AsyncClient(musterd.address) as client:
            return [result async for result in client.place_gangs(each())]

    with muster.Client(musterd.address) as client:
        two_nodes(client)
    check_results(asyncio.run(run()))


def test_an_error_of_the_calls_iterator_reaches_the_caller(musterd: Musterd) -> None:
    def broken() -> Iterator[muster.PlacementCall]:
        yield muster.PlacementCall(get=muster.GetSubmissionRequest(id="unknown"))
        raise ValueError("no more")

    async def run() -> None:
        async def each() -> AsyncIterator[muster.PlacementCall]:
            for call in broken():
                yield call

        async with muster.AsyncClient(musterd.address) as client:
            async for _ in client.place_gangs(each()):
                pass

    with muster.Client(musterd.address) as client, pytest.raises(ValueError, match="no more"):
        list(client.place_gangs(broken()))
    with pytest.raises(ValueError, match="no more"):
        asyncio.run(run())


def test_queues_are_watched(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        two_nodes(client)
        synced = False
        for event in client.watch_queues():
            if event.synced:
                synced = True
                client.submit_gang(muster.GangSpec(name="g", min_member=2, queue="team"), 2, {GPU: 1}, ttl=30)
            elif synced:
                assert event.upserted.name == "team"
                if event.upserted.running_gangs == 1:
                    break


def test_the_version_is_told(musterd: Musterd) -> None:
    with muster.Client(musterd.address) as client:
        version = client.get_version()
        assert version.api_version == "muster.v1" and version.server_version.count(".") == 2
        assert abs(version.start_time.ToSeconds() - time.time()) < 600


def test_every_call_is_offered() -> None:
    from muster.v1 import decision_pb2, event_pb2, facts_pb2, gang_pb2, node_pb2, placement_pb2, queue_pb2, trace_pb2, \
        version_pb2, what_if_pb2
    renamed = {"get_facts_status": "facts_status"}
    for module in (decision_pb2, event_pb2, facts_pb2, gang_pb2, node_pb2, placement_pb2, queue_pb2, trace_pb2,
                   version_pb2, what_if_pb2):
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                name = re.sub(r"(?<!^)(?=[A-Z])", "_", method.name).lower()
                for client in (muster.Client, muster.AsyncClient):
                    assert hasattr(client, renamed.get(name, name)), method.full_name
