"""Runs the tests: once in full, to learn which case reaches which mutant, and then as few as may kill a mutant."""
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .build import OUT

SWITCH_BYTES = 1 << 18  # kBytes of switch.h
STEPS = "2000"  # of the random test, per seed
QUICK_S = 0.5  # cases that take less are run together
LIMIT_S, LIMIT_TIMES = 20, 10
MEMORY_BYTES = 16 << 30  # a mutant may loop and allocate
FAILED_CASE = re.compile(r"^\[  FAILED  \] ([^\s,]+)", re.M)


class Case(NamedTuple):
    binary: str
    name: str
    seconds: float
    reaches: frozenset


class Result(NamedTuple):
    seconds: float
    how: str  # "" passed, or: failed, crashed, hangs
    output: str

    def failed_case(self):
        found = FAILED_CASE.search(self.output)
        return found[1] if found else None


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run(binary, names, switch, limit_s):
    """One process with these cases. What it started is ended with it."""
    environment = {**os.environ, "MUSTER_MUTANT": switch, "MUSTER_STEPS": STEPS, "GTEST_FAIL_FAST": "1", "GTEST_COLOR": "no"}
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen([OUT / "tests" / binary, "--gtest_filter=" + ":".join(names)], cwd=OUT, env=environment,
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=limits)
        try:
            code = child.wait(limit_s)
            how = "" if code == 0 else "crashed" if code < 0 else "failed"
        except subprocess.TimeoutExpired:
            how = "hangs"
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        log.seek(0)
        return Result(time.monotonic() - start, how, log.read().decode("utf-8", "replace"))


def cases_of(binary):
    listing = subprocess.run([OUT / "tests" / binary, "--gtest_list_tests"], capture_output=True, text=True, check=True)
    suite = ""
    for line in listing.stdout.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  "):
            yield suite + name
        elif name.endswith("."):
            suite = name


def record(binary, name):
    """Runs a case with no mutant turned on. Twice where it fails: some wait for real time on a busy machine."""
    with tempfile.NamedTemporaryFile() as reached:
        reached.truncate(SWITCH_BYTES)
        for _ in range(2):
            result = run(binary, [name], f"record:{reached.name}", 300)
            if not result.how:
                break
        ids = frozenset(found.start() for found in re.finditer(rb"[^\0]", Path(reached.name).read_bytes()))
    return Case(binary, name, result.seconds, ids), result


def record_all(binaries, at_once):
    """Every case, and the (case, result) of those that fail without any mutant."""
    with ThreadPoolExecutor(at_once) as pool:
        jobs = [pool.submit(record, binary, name) for binary in binaries for name in cases_of(binary)]
        done = [job.result() for job in jobs]
    return [case for case, _ in done], [(case, result) for case, result in done if result.how]


def runs_for(id, cases):
    """Lists of cases to run in one process each, cheapest first: the quick ones of a binary together."""
    quick, slow = {}, []
    for case in cases:
        if id in case.reaches:
            if case.seconds < QUICK_S:
                quick.setdefault(case.binary, []).append(case)
            else:
                slow.append([case])
    return sorted([*quick.values(), *slow], key=lambda run: sum(case.seconds for case in run))


def killed_by(id, cases):
    """How mutant `id` was killed, or None: it lives."""
    for together in runs_for(id, cases):
        binary = together[0].binary
        names = [case.name for case in together]
        limit_s = max(LIMIT_S, LIMIT_TIMES * sum(case.seconds for case in together))
        result = run(binary, names, str(id), limit_s)
        if result.how == "failed" and result.failed_case():
            # Seen twice: a case that waits for real time may also fail on a busy machine.
            again = run(binary, [result.failed_case()], str(id), limit_s)
            if not again.how:
                result = run(binary, names, str(id), limit_s)
        if result.how:
            return binary, result.how
    return None
