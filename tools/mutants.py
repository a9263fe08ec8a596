#!/usr/bin/env python3
"""Draws mutants of the core and the engine at random and sees whether the tests kill each: make mutants

A mutant that survives names a test that is missing, or code that nobody needs. Every mutant that is drawn is compiled into
one copy of the tree (build/mutants), behind a switch that an environment variable turns on (tools/mutation/switch.h): a
mutant costs a run of the test cases that reach it, and no compiling. The tree itself is never touched.

  mutants.py                    300 mutants, drawn with a new seed
  mutants.py --seed 7           the same ones again, while the tree is the same
  mutants.py --files 'state/p*' only of these files
  mutants.py --only 17,40       only these of the draw (give its --seed); others are compiled by themselves
  mutants.py --list             what would be drawn; nothing is run

Mutants that change nothing anybody could see are kept in tools/mutants_equivalent.txt; they are never drawn. An id names
the same mutant as long as the tree is the same.
"""
import argparse
import collections
import fcntl
import hashlib
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path

from mutation import build, find, trial
from mutation.candidate import Candidate, shown
from plant_bugs import TESTS

EQUIVALENT = find.ROOT / "tools/mutants_equivalent.txt"
BINARIES = [*TESTS, "conformance_test"]
STARTED = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", flush=True)


class Texts(dict):
    """The files of the tree, read when they are asked for."""

    def __missing__(self, file):
        self[file] = (find.ROOT / file).read_text("latin-1")
        return self[file]


def remembered(path, key, make):
    """What `make` returned for the same `key`, kept in a file."""
    if path.exists():
        kept = json.loads(path.read_text())
        if kept["key"] == key:
            return kept["value"]
    value = make()
    path.write_text(json.dumps({"key": key, "value": value}))
    return value


def all_candidates(jobs):
    """Candidates are found once for a tree; their places in the list are their ids, from 1."""
    build.copy_tree(None)
    build.configure(jobs)
    code = [name for name in build.sources() if name.endswith((".h", ".cc", ".proto"))]
    tool = [Path(find.__file__), Path(find.__file__).with_name("candidate.py")]
    key = hashlib.sha256(b"\0".join(p.read_bytes() for p in [*tool, *(find.ROOT / name for name in code)])).hexdigest()

    def make():
        say("reading the tree with libclang")
        return find.find(build.OUT, build.COPY, jobs)

    found = remembered(build.HOME / "candidates.json", key, make)
    return {id: Candidate(*fields) for id, fields in enumerate(found, 1)}


def known_equivalent():
    """{(file, line as it stands, line as it would be): reason}"""
    known = {}
    for number, line in enumerate(EQUIVALENT.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            parts = [part.strip() for part in line.split(" | ")]
            if len(parts) != 4:
                sys.exit(f"{EQUIVALENT.name}:{number}: expected: file | line | line with the mutant | reason")
            known[tuple(parts[:3])] = parts[3]
    return known


def without_equivalent(candidates, texts):
    known = known_equivalent()
    names = {id: (c.file, *c.before_and_after(texts[c.file])) for id, c in candidates.items()}
    equivalent = {id for id, name in names.items() if name in known}
    for file, before, after in known.keys() - {names[id] for id in equivalent}:
        say(f"{EQUIVALENT.name}: no such mutant any more: {file} | {before} | {after}")
    return {id: c for id, c in candidates.items() if id not in equivalent}, len(equivalent)


def describe(id, mutant, texts):
    text = texts[mutant.file]
    before, after = (line if len(line) < 300 else line[:297] + "..." for line in mutant.before_and_after(text))
    return f"{mutant.file}:{mutant.line(text)}: {mutant.kind}, id {id}\n    - {before}\n    + {after}"


def try_all(mutants, cases, at_once, texts):
    """Runs each mutant; prints those that survive as they are found. Returns {id: how it was killed, or None}."""
    reached = frozenset().union(*(case.reaches for case in cases))
    results = {}
    told = time.monotonic()
    pool = ThreadPoolExecutor(at_once)
    jobs = {pool.submit(trial.killed_by, id, cases): id for id in mutants}
    try:
        for job in as_completed(jobs):
            id = jobs[job]
            results[id] = job.result()
            if results[id] is None:
                why = "survives" if id in reached else "survives: not reached by any test"
                print(f"{describe(id, mutants[id], texts)}\n    {why}", flush=True)
            if time.monotonic() - told > 15 or len(results) == len(mutants):
                told = time.monotonic()
                killed = sum(how is not None for how in results.values())
                say(f"{len(results)} of {len(mutants)} run, {killed} killed")
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="of the draw; printed at the end")
    parser.add_argument("--count", type=int, default=300, help="how many are drawn (300)")
    parser.add_argument("--only", metavar="ID,...", help="run only these")
    parser.add_argument("--files", metavar="GLOB", default="*", help="draw only from files that match")
    parser.add_argument("--list", action="store_true", help="print what would be drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the compiler (as many as there are cores)")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that run at the same time (2)")
    chosen = parser.parse_args()
    if chosen.seed is None:
        chosen.seed = random.SystemRandom().randrange(1, 1_000_000)
    chosen.only = [int(id) for id in chosen.only.split(",")] if chosen.only else []
    return chosen


def drawn(chosen, candidates, texts):
    """(id, candidate) in the order of the draw."""
    fitting, equivalent = without_equivalent(candidates, texts)
    ids = [id for id in fitting if fnmatch(fitting[id].file, chosen.files)]
    random.Random(chosen.seed).shuffle(ids)
    say(f"{len(ids)} possible mutants, seed {chosen.seed}; {equivalent} more are known to be equivalent")
    if any(id not in ids[:chosen.count] for id in chosen.only):
        ids = [id for id in chosen.only if id in candidates]
    return [(id, candidates[id]) for id in ids]


def main():
    chosen = options()
    build.HOME.mkdir(parents=True, exist_ok=True)
    lock = open(build.HOME / "lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    texts = Texts()
    draw = drawn(chosen, all_candidates(chosen.jobs), texts)
    count = min(chosen.count, len(draw))
    if chosen.list:
        for id, candidate in draw[:count]:
            print(describe(id, candidate, texts))
        return 0
    mutants, refused = build.compile_drawn(iter(draw), count, BINARIES, chosen.jobs, say)
    if chosen.only:
        mutants = {id: mutants[id] for id in chosen.only if id in mutants}
    say(f"compiled; {len(refused)} mutants were replaced as they do not compile. Running every test without a mutant")
    cases, failed = trial.record_all(BINARIES, chosen.at_once)
    for case, result in failed:
        print(f"{case.binary}: {case.name} {result.how} without any mutant\n{result.output[-2000:]}")
    if failed:
        return 1
    say(f"{len(cases)} test cases pass in {sum(case.seconds for case in cases):.0f} s; running {len(mutants)} mutants")
    results = try_all(mutants, cases, chosen.at_once, texts)
    killers = collections.Counter(" ".join(how) for how in results.values() if how)
    say("killed by: " + ", ".join(f"{name} {times}" for name, times in killers.most_common()))
    killed = sum(killers.values())
    print(f"{killed} of {len(results)} mutants were killed ({100 * killed / max(1, len(results)):.0f}%), seed {chosen.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
