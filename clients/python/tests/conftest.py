"""A running musterd for each test: its path is in $MUSTERD."""
from __future__ import annotations

import os
import pathlib
import re
import signal
import socket
import subprocess
import time
from typing import Iterator

import pytest


class Musterd:
    def __init__(self, folder: pathlib.Path, port: int = 0) -> None:
        config = folder / "musterd.yaml"
        config.write_text("log: {format: text}\nkubernetes: {enabled: false}\nqueues: {tree: [{name: team, limit: {cpu: 2}, namespaces: ['*']}]}\n"
                          f"listen: {{admin: 127.0.0.1:0, grpc: '127.0.0.1:{port}', extender: 127.0.0.1:0, bind: 127.0.0.1:0}}\n")
        self._log = folder / "log"
        with open(self._log, "w") as log:
            self.process = subprocess.Popen([os.environ["MUSTERD"], "--config", str(config)], stdout=log, stderr=log,
                                            cwd=folder)
        for _ in range(500):
            found = re.search(r"gRPC (\d+)", self._log.read_text())
            if found:
                self.address = f"127.0.0.1:{found.group(1)}"
                return
            assert self.process.poll() is None, self._log.read_text()
            time.sleep(0.02)
        raise AssertionError("musterd does not come up: " + self._log.read_text())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture()
def musterd(tmp_path: pathlib.Path) -> Iterator[Musterd]:
    running = Musterd(tmp_path)
    yield running
    running.kill()


@pytest.fixture()
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
