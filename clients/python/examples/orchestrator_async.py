"""The same orchestrator for asyncio: the three gangs are placed at the same time."""
import asyncio
import os

import muster


async def run(client: muster.AsyncClient, name: str, members: int) -> None:
    gang = await client.submit_gang(name, members, {"nvidia.com/gpu": 1}, ttl=30)
    gang = await client.wait_planned(gang.id, timeout=60)
    gang = await client.confirm_gang(gang)
    for place in gang.placements:
        print("start", place.pod_name, "on", place.node)  # a real orchestrator starts its process here
    print(name, muster.Submission.State.Name(gang.state), len(gang.placements), "pods")


async def main() -> None:
    async with muster.AsyncClient(os.environ.get("MUSTER_SERVER", "127.0.0.1:9091")) as client:
        nodes = [muster.node(name, {"cpu": "64", "nvidia.com/gpu": 8}) for name in ("gpu-a", "gpu-b", "gpu-c")]
        await client.send_snapshot("python-example", 1, nodes)
        await asyncio.gather(*(run(client, *gang) for gang in (("train", 8), ("serve", 4), ("sweep", 10))))


asyncio.run(main())
