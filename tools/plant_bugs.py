#!/usr/bin/env python3
"""Plants bugs, one at a time, in a copy of the tree and sees whether the tests catch each: make plant-bugs

A bug that survives names a test that is missing. Works in build/bugs, never in the tree itself. A test is built only when
it is its turn, and the first that catches the bug ends the search: the test that caught it last time has the first turn.
What was compiled stays for the next run. The bugs are in planted_bugs.py.

  plant_bugs.py                     every bug
  plant_bugs.py NAME...             only these
  plant_bugs.py --files 'state/*'   only those in files that match, and those named
  plant_bugs.py --check             plants nothing: does each still find what it would change?
"""
import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

from planted_bugs import BUGS

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build/bugs"
COPY = HOME / "tree"
OUT = HOME / "out"
CAUGHT = HOME / "caught.json"  # which test caught which bug last
# In this order: the quick ones that see most come first.
TESTS = ["machine_room_test", "starts_room_test", "drivers_room_test", "base_room_test", "model_room_test", "placement_room_test", "backlog_room_test", "gangs_room_test", "records_room_test",
         "scenario_test", "simulate_test", "recording_test", "what_if_test", "path_test", "random_commands_test", "unit_test", "engine_test", "extender_http_test", "informer_test", "rpc_test", "store_test",
         "actuator_test"]
# With the programs that ship, last: what they are built from, and how they are run.
SCRIPTS = {
    "queues": (["musterd", "musterctl"], ["tests/programs/queues_test.sh", OUT / "musterd", OUT / "musterctl", COPY / "docs/queues.md"]),
    "store_commands": (["musterd", "musterctl", "orchestrator_example"],
                       ["tests/programs/store_commands_test.sh", OUT / "musterd", OUT / "musterctl", OUT / "clients/orchestrator_example"]),
    "security_test": (["security_test", "musterd"], [OUT / "tests/security_test"]),
    "store_process": (["store_process_test", "musterd", "musterctl"], ["tests/programs/with_mounts.sh", OUT / "tests/store_process_test"]),
}
LIMIT_S = 120
# How the tests run: few steps of the random one, and no case after the first that fails.
ENVIRONMENT = {**os.environ, "MUSTER_STEPS": "3000", "MUSTER_SEEDS": "39", "GTEST_FAIL_FAST": "1"}


def write(path, text):
    """Only what differs: what is as it was is not compiled again. Of one that ran before, a bug may still be there."""
    if not path.exists() or path.read_text("latin-1") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "latin-1")


def copy_tree():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name for name in listing.stdout.splitlines() if (ROOT / name).is_file()}
    for name in sorted(names):
        write(COPY / name, (ROOT / name).read_text("latin-1"))
        os.chmod(COPY / name, (ROOT / name).stat().st_mode)
    for path in {path for path in COPY.rglob("*") if path.is_file()} - {COPY / name for name in names}:
        path.unlink()


def configure():
    # A build type of its own, quick to compile. A bug may leave a variable unused: that is not what should catch it.
    command = ["cmake", "-G", "Ninja", "-S", COPY, "-B", OUT, "-DCMAKE_BUILD_TYPE=Bugs", "-DCMAKE_CXX_FLAGS_BUGS=-O1 -w"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stdout[-2000:] + result.stderr[-2000:])


class Refused(Exception):
    """The compiler's words."""


class Bug:
    """Planted and pulled out as it is asked for."""

    def __init__(self, name):
        file, before, after = BUGS[name]
        self.path = COPY / file
        self.text = self.path.read_text("latin-1")
        if self.text.count(before) != 1:
            sys.exit(f"{name}: {file} has the text to change {self.text.count(before)} times; expected once")
        self.planted = self.text.replace(before, after)
        self.since = None  # when it was planted; None: it is not

    def plant(self):
        if self.since is None:
            self.since = time.time()
            write(self.path, self.planted)

    def pull_out(self):
        self.since = None
        write(self.path, self.text)


class Trial:
    def __init__(self, jobs):
        self.jobs = jobs
        self.passed = set()  # tests that pass without a bug

    def build(self, test):
        targets = SCRIPTS[test][0] if test in SCRIPTS else [test]
        command = ["cmake", "--build", OUT, "-j", str(self.jobs), "--target", *targets]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if result.returncode != 0:
            raise Refused(result.stdout[-3000:])
        return targets

    def has(self, bug, test):
        """Builds what the test runs; whether the bug is in it."""
        products = [OUT / folder / target for target in self.build(test) for folder in ("", "tests", "clients")]
        return any(path.is_file() and path.stat().st_mtime >= bug.since for path in products)

    @staticmethod
    def run(test):
        """What went wrong: "" nothing, or words. Processes that the test started are ended with it."""
        command = SCRIPTS[test][1] if test in SCRIPTS else [OUT / "tests" / test]
        child = subprocess.Popen(command, cwd=COPY if test in SCRIPTS else OUT, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return test if child.wait(LIMIT_S) != 0 else ""
        except subprocess.TimeoutExpired:
            return f"{test} (hangs)"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()

    def prove(self, test):
        """REQUIRES: no bug is planted."""
        try:
            self.build(test)
        except Refused as refused:
            sys.exit(f"the tree itself does not build:\n{refused}")
        if self.run(test):
            sys.exit(f"{test} fails on the tree itself: plant nothing")
        self.passed.add(test)

    def caught_by(self, bug, last):
        """What catches the bug; "" nothing does. Raises Refused."""
        for test in sorted([*TESTS, *SCRIPTS], key=lambda test: test != last):
            if test not in self.passed:
                bug.pull_out()
                self.prove(test)
            bug.plant()
            if self.has(bug, test) and (how := self.run(test)):
                return how
        return ""


def check():
    found = 0
    for name, (file, before, _) in BUGS.items():
        path = ROOT / file
        times = path.read_text().count(before) if path.exists() else None
        if times != 1:
            print(f"{name}: {file} {'is not there' if times is None else f'has the text to change {times} times; expected once'}")
            found += 1
    print(f"{len(BUGS)} bugs, {found} cannot be planted")
    return 1 if found else 0


def try_all(names, jobs):
    """Returns those that survive."""
    trial = Trial(jobs)
    caught = json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}
    survivors = []
    for name in names:
        start = time.monotonic()
        bug = Bug(name)
        try:
            how = trial.caught_by(bug, caught.get(name))
            said = f"caught by {how}" if how else "SURVIVES"
        except Refused as refused:
            how, said = "", f"does not compile\n{refused}"
        finally:
            bug.pull_out()
        print(f"{name}: {said} ({time.monotonic() - start:.0f} s)", flush=True)
        if how:
            caught[name] = how.split()[0]
            CAUGHT.write_text(json.dumps(caught, indent=0, sort_keys=True))
        else:
            survivors.append(name)
    return survivors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a bug")
    parser.add_argument("--files", metavar="GLOB", help="those in files that match")
    parser.add_argument("--check", action="store_true", help="plant nothing")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count(), help="of the compiler (as many as there are cores)")
    chosen = parser.parse_args()
    if chosen.check:
        return check()
    if unknown := [name for name in chosen.names if name not in BUGS]:
        sys.exit(f"no such bug: {', '.join(unknown)}")
    names = list(BUGS)
    if chosen.names or chosen.files:
        names = [name for name in BUGS if name in chosen.names or (chosen.files and fnmatch(BUGS[name][0], chosen.files))]
    names.sort(key=lambda name: BUGS[name][0].endswith(".h"))  # half the core is compiled for these: last
    HOME.mkdir(parents=True, exist_ok=True)
    lock = open(HOME / "lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    copy_tree()
    configure()
    survivors = try_all(names, chosen.jobs)
    print(f"{len(names) - len(survivors)} of {len(names)} planted bugs were caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
