#!/usr/bin/env python3
"""Runs a test, unless the same program passed with the same data and settings before.

  once.py STATE INPUT... -- COMMAND...
  once.py --self-test

STATE is a file in the build folder: the hash of what passed last. INPUTs are files or folders that the command reads;
the hash covers them, the command and every MUSTER_* and GTEST_* variable. A test that is not run again says so.
MUSTER_ONCE=0 runs it whatever passed before.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def hash_of(inputs, command):
    digest = hashlib.sha256()
    for name in sorted(k for k in os.environ if k.startswith(("MUSTER_", "GTEST_", "ASAN_", "UBSAN_", "TSAN_")) and k != "MUSTER_ONCE"):
        digest.update(f"{name}={os.environ[name]}\0".encode())
    digest.update("\0".join(command).encode())
    for given in inputs:
        path = Path(given)
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
            digest.update(str(file).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def self_test():
    """A changed input, command or setting, and a failure, each make the test run again; nothing else does."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        data, runs = work / "data", work / "runs"
        data.mkdir()

        def times_run(what, expected, code=0, word="run", **settings):
            runs.write_text("")
            (work / "code").write_text(str(code))
            script = f"echo {word} >>{runs}; exit $(cat {work / 'code'})"
            command = [sys.executable, __file__, str(work / "state"), str(data), "--", "sh", "-c", script]
            environment = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")} | settings
            status = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode
            ran = len(runs.read_text().split())
            if ran != expected or status != (code if ran else 0):
                sys.exit(f"self-test: {what}: run {ran} times with status {status}; expected {expected}")

        times_run("the first time", 1)
        times_run("nothing changed", 0)
        (data / "a").write_text("1")
        times_run("a new input", 1)
        (data / "a").write_text("2")
        times_run("a changed input", 1)
        times_run("another command", 1, word="again")
        times_run("the first command", 1)
        times_run("a changed setting", 1, MUSTER_SEEDS="3")
        times_run("asked for", 1, MUSTER_SEEDS="3", MUSTER_ONCE="0")
        times_run("a failure", 1, code=1, MUSTER_SEEDS="3", MUSTER_ONCE="0")
        times_run("after a failure", 1, MUSTER_SEEDS="3")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    split = sys.argv.index("--")
    state, inputs, command = Path(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
    now = hash_of(inputs, command)
    if os.environ.get("MUSTER_ONCE") != "0" and state.exists() and state.read_text() == now:
        print(f"not run again: program, data and settings are those that passed before ({state.name})")
        return 0
    status = subprocess.run(command).returncode
    if status == 0:
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(now)
    else:
        state.unlink(missing_ok=True)
    return status if status >= 0 else 128 - status


sys.exit(main())
