"""Runs the tests: once in full, to learn which case reaches which mutant, and then as few as may kill a mutant."""
import os
import re
import resource
import shlex
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SWITCH_BYTES = 1 << 18  # kBytes of switch.h
# No search for a shorter failure, and no case after the first that fails. QUICK: fewer steps and seeds of the random tests
# as well, and less depth of the small worlds; LONG: as many as in `make test`.
LONG = {"MUSTER_SHORTEN_S": "0", "GTEST_FAIL_FAST": "1", "GTEST_COLOR": "no"}
QUICK = {**LONG, "MUSTER_STEPS": "3000", "MUSTER_SEEDS": "39", "MUSTER_DEPTH": "3"}
QUICK_S = 0.5  # cases that take less are run together
LIMIT_S, LIMIT_TIMES = 20, 10
MEMORY_BYTES = 16 << 30  # a mutant may loop and allocate
FAILED_CASE = re.compile(r"^\[  FAILED  \] ([^\s,]+)", re.M)
# One test of CTestTestfile.cmake: its name and its command.
CTEST = re.compile(r'^add_test\((?:\[=\[(.+?)\]=\]|(\S+)) (".*")\)$', re.M)
# Tests of the build rather than of what it does.
LEFT_OUT = re.compile(r"link_|demo$")


class Test(NamedTuple):
    """A test as CTest runs it, and the targets that it needs. `gtest`: it has cases, and runs those that are asked for."""
    command: list
    targets: list
    gtest: bool


class Case(NamedTuple):
    test: str
    name: str  # "" the whole test, which is no Google Test
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


def tests_of(out):
    """{name: Test}: every test of the build folder that runs what is built there. REQUIRES: configured."""
    tests = {}
    for file in sorted(out.rglob("CTestTestfile.cmake")):
        for bracketed, plain, words in CTEST.findall(file.read_text()):
            name, command = bracketed or plain, shlex.split(words)
            if "--" in command:  # behind tools/once.py, which would not run it again
                command = command[command.index("--") + 1:]
            programs = [word for word in command if word.startswith(f"{out}/")]
            if programs and not LEFT_OUT.match(name):
                gtest = command[-1] == programs[-1] and programs[-1].endswith("_test")
                # A test that is run by a script starts these programs too.
                started = {"musterd", "musterctl"} if len(command) > 1 else set()
                tests[name] = Test(command, sorted({Path(program).name for program in programs} | started), gtest)
    return tests


class Trial:
    """`tests` of `out`, the folder that they were built in, with these settings. `limit_s`: a run that takes longer, and
    much longer than without a mutant, hangs."""

    def __init__(self, out, tests, environment=QUICK, limit_s=LIMIT_S):
        self.out = out
        self.tests = tests
        self.environment = environment
        self.limit_s = limit_s

    def run(self, test, names, switch, limit_s):
        """One process with these cases. What it started is ended with it."""
        environment = {**os.environ, **self.environment, "MUSTER_MUTANT": switch}
        command = self.tests[test].command + (["--gtest_filter=" + ":".join(names)] if self.tests[test].gtest else [])
        start = time.monotonic()
        with tempfile.TemporaryFile() as log:
            child = subprocess.Popen(command, cwd=self.out, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True, preexec_fn=limits)
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

    def cases_of(self, test):
        if not self.tests[test].gtest:
            yield ""
            return
        listing = subprocess.run([*self.tests[test].command, "--gtest_list_tests"], cwd=self.out, capture_output=True, text=True, check=True)
        suite = ""
        for line in listing.stdout.splitlines():
            name = line.split("#")[0].strip()
            if line.startswith("  "):
                yield suite + name
            elif name.endswith("."):
                suite = name

    def record(self, test, name):
        """Runs a case with no mutant turned on. Twice where it fails: some wait for real time on a busy machine."""
        with tempfile.NamedTemporaryFile() as reached:
            reached.truncate(SWITCH_BYTES)
            for _ in range(2):
                result = self.run(test, [name], f"record:{reached.name}", 300)
                if not result.how:
                    break
            ids = frozenset(found.start() for found in re.finditer(rb"[^\0]", Path(reached.name).read_bytes()))
        return Case(test, name, result.seconds, ids), result

    def record_all(self, at_once):
        """Every case, and the (case, result) of those that fail without any mutant."""
        with ThreadPoolExecutor(at_once) as pool:
            jobs = [pool.submit(self.record, test, name) for test in self.tests for name in self.cases_of(test)]
            done = [job.result() for job in jobs]
        return [case for case, _ in done], [(case, result) for case, result in done if result.how]

    def killed_by(self, id, cases):
        """(test, how) of the test that killed mutant `id`, or None: it survives."""
        for together in runs_for(id, cases):
            test = together[0].test
            names = [case.name for case in together]
            limit_s = max(self.limit_s, LIMIT_TIMES * sum(case.seconds for case in together))
            result = self.run(test, names, str(id), limit_s)
            if result.how == "failed":
                # Seen twice: a case that waits for real time may also fail on a busy machine.
                failed = result.failed_case()
                again = self.run(test, [failed] if failed else names, str(id), limit_s)
                if not again.how:
                    result = self.run(test, names, str(id), limit_s)
            if result.how:
                return test, result.how
        return None


def runs_for(id, cases):
    """Lists of cases to run in one process each, cheapest first: the quick ones of a test together."""
    quick, slow = {}, []
    for case in cases:
        if id in case.reaches:
            if case.seconds < QUICK_S:
                quick.setdefault(case.test, []).append(case)
            else:
                slow.append([case])
    return sorted([*quick.values(), *slow], key=lambda run: sum(case.seconds for case in run))
