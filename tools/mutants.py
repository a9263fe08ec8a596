#!/usr/bin/env python3
"""Draws mutants of the core and the engine at random and sees whether the tests kill each: make mutants

A mutant that survives names a test that is missing, or code that nobody needs. Everything that can be mutated is compiled
once, into one copy of the tree (build/mutants), each mutant behind a switch that an environment variable turns on
(tools/mutation/switch.h): a mutant costs a run of the test cases that reach it. The first build takes minutes; another
draw from the same tree needs none. The tree itself is never touched.

  mutants.py                    300 mutants, drawn with a new seed
  mutants.py --seed 7           the same ones again, while the tree is the same
  mutants.py --files 'state/p*' only of these files
  mutants.py --only 17,40       only these
  mutants.py --list             what would be drawn; nothing is compiled or run

To look into one: MUSTER_MUTANT=17 build/mutants/out/tests/scenario_test. Mutants that change nothing anybody could see are
kept in tools/mutants_equivalent.txt; they are never drawn. An id names the same mutant as long as the tree is the same.
"""
import argparse
import collections
import fcntl
import hashlib
import itertools
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path

from mutation import build, find, trial
from mutation.candidate import Candidate
from plant_bugs import TESTS

EQUIVALENT = find.ROOT / "tools/mutants_equivalent.txt"
CANDIDATES = build.HOME / "candidates.json"
REFUSED = build.HOME / "refused.json"
IDS_OF_A_FILE = 2048
BINARIES = [*TESTS, "conformance_test"]
STARTED = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", flush=True)


class Texts(dict):
    """The files of the tree, read when they are asked for."""

    def __missing__(self, file):
        self[file] = (find.ROOT / file).read_text("latin-1")
        return self[file]


def all_candidates(jobs):
    """{id: candidate}, found once for a tree. Ids are numbered within a file, so that changing one leaves the others alone."""
    build.copy_tree(None)
    build.configure(jobs)
    code = [find.ROOT / name for name in build.sources() if name.endswith((".h", ".cc", ".proto"))]
    tool = [Path(find.__file__), Path(find.__file__).with_name("candidate.py")]
    key = hashlib.sha256(b"\0".join(path.read_bytes() for path in tool + code)).hexdigest()
    kept = json.loads(CANDIDATES.read_text()) if CANDIDATES.exists() else {"key": None}
    if kept["key"] != key:
        say("reading the tree with libclang")
        kept = {"key": key, "candidates": find.find(build.OUT, build.COPY, jobs)}
        CANDIDATES.write_text(json.dumps(kept))
    candidates = {}
    of_file = itertools.groupby((Candidate(*fields) for fields in kept["candidates"]), key=lambda c: c.file)
    for number, (file, group) in enumerate(of_file):
        for within, candidate in enumerate(group, 1):
            if within >= IDS_OF_A_FILE or (number + 1) * IDS_OF_A_FILE > trial.SWITCH_BYTES:
                sys.exit(f"{file}: more mutants than there are ids for; see IDS_OF_A_FILE")
            candidates[number * IDS_OF_A_FILE + within] = candidate
    return candidates


class Names:
    """{id: (file, line as it stands, line as it would be)}: what a mutant is, wherever its line moves."""

    def __init__(self, candidates, texts):
        self.by_id = {id: (c.file, *c.before_and_after(texts[c.file])) for id, c in candidates.items()}

    def ids(self, names):
        return {id for id, name in self.by_id.items() if name in names}


def refused_before():
    return {tuple(name) for name in json.loads(REFUSED.read_text())} if REFUSED.exists() else set()


def compile_all(candidates, names, jobs):
    """Returns the ids that compiled. Those that do not are remembered: the next tree has most of them again."""
    known = refused_before()
    ids = candidates.keys() - names.ids(known)
    say(f"compiling {len(ids)} mutants; {len(candidates) - len(ids)} are known not to compile")
    refused = build.compile_all({id: candidates[id] for id in sorted(ids)}, BINARIES, jobs, say)
    REFUSED.write_text(json.dumps(sorted(known | {names.by_id[id] for id in refused}), indent=0))
    return ids - refused.keys()


def known_equivalent():
    """{(file, line as it stands, line as it would be): reason}"""
    known = {}
    for number, line in enumerate(EQUIVALENT.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            file, *lines, reason = [part.strip() for part in line.split(" | ")]
            half = len(lines) // 2  # a line of C++ may have " | " itself
            if half == 0 or len(lines) % 2 != 0:
                sys.exit(f"{EQUIVALENT.name}:{number}: expected: file | line | line with the mutant | reason")
            known[file, " | ".join(lines[:half]), " | ".join(lines[half:])] = reason
    return known


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


def drawn(chosen, candidates, usable, names):
    """The ids to run, in the order of the draw."""
    known = known_equivalent()
    equivalent = names.ids(known)
    for gone in sorted(known.keys() - {names.by_id[id] for id in equivalent}):
        say(f"{EQUIVALENT.name}: no such mutant any more: {' | '.join(gone)}")
    ids = sorted(id for id in usable - equivalent if fnmatch(candidates[id].file, chosen.files))
    say(f"{len(ids)} mutants to draw from, seed {chosen.seed}; {len(equivalent)} more are known to be equivalent")
    random.Random(chosen.seed).shuffle(ids)
    for id in set(chosen.only) - usable:
        say(f"{id}: no mutant of this tree, or one that does not compile")
    return [id for id in chosen.only if id in usable] if chosen.only else ids[:chosen.count]


def main():
    chosen = options()
    known_equivalent()  # what is wrong there is said before anything is compiled
    build.HOME.mkdir(parents=True, exist_ok=True)
    lock = open(build.HOME / "lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    texts = Texts()
    candidates = all_candidates(chosen.jobs)
    names = Names(candidates, texts)
    if chosen.list:
        for id in drawn(chosen, candidates, candidates.keys() - names.ids(refused_before()), names):
            print(describe(id, candidates[id], texts))
        return 0
    usable = compile_all(candidates, names, chosen.jobs)
    draw = drawn(chosen, candidates, usable, names)
    say("running every test without a mutant")
    cases, failed = trial.record_all(BINARIES, chosen.at_once)
    for case, result in failed:
        print(f"{case.binary}: {case.name} {result.how} without any mutant\n{result.output[-2000:]}")
    if failed:
        return 1
    say(f"{len(cases)} test cases pass in {sum(case.seconds for case in cases):.0f} s; running {len(draw)} mutants")
    results = try_all({id: candidates[id] for id in draw}, cases, chosen.at_once, texts)
    killers = collections.Counter(" ".join(how) for how in results.values() if how)
    say("killed by: " + ", ".join(f"{name} {times}" for name, times in killers.most_common()))
    killed = sum(killers.values())
    print(f"{killed} of {len(results)} mutants were killed ({100 * killed / max(1, len(results)):.0f}%), seed {chosen.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
