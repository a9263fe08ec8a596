#!/usr/bin/env python3
"""Runs a test, unless the same program passed with the same data and settings before.

  once.py STATE INPUT... -- COMMAND...

STATE is a file in the build folder: the hash of what passed last. INPUTs are files or folders that the command reads;
the hash covers them, the command and every MUSTER_* and GTEST_* variable. A test that is not run again says so.
MUSTER_ONCE=0 runs it whatever passed before.
"""
import hashlib
import os
import subprocess
import sys
from pathlib import Path


def hash_of(inputs, command):
    digest = hashlib.sha256()
    for name in sorted(k for k in os.environ if k.startswith(("MUSTER_", "GTEST_", "ASAN_", "UBSAN_", "TSAN_"))):
        digest.update(f"{name}={os.environ[name]}\0".encode())
    digest.update("\0".join(command).encode())
    for given in inputs:
        path = Path(given)
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
            digest.update(str(file).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def main():
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
