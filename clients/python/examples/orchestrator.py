"""A complete orchestrator: announces its nodes, submits three gangs, and starts what Muster placed."""
import os

import muster


def start(pod: str, node: str) -> None:
    print("start", pod, "on", node)  # a real orchestrator starts its process here


with muster.Client(os.environ.get("MUSTER_SERVER", "127.0.0.1:9091")) as client:
    nodes = [muster.node(name, {"cpu": "64", "nvidia.com/gpu": 8}) for name in ("gpu-a", "gpu-b", "gpu-c")]
    client.send_snapshot("python-example", 1, nodes)
    for name, members in {"train": 8, "serve": 4, "sweep": 10}.items():
        gang = client.submit_gang(name, members, {"nvidia.com/gpu": 1}, ttl=30)
        gang = client.wait_planned(gang.id, timeout=60)
        gang = client.confirm_gang(gang)
        for place in gang.placements:
            start(place.pod_name, place.node)
        print(name, muster.Submission.State.Name(gang.state), len(gang.placements), "pods")
