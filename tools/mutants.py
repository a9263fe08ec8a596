#!/usr/bin/env python3
"""Draws mutants of the core and the engine at random and checks whether the tests kill each: make mutants

A mutant that survives names a test that is missing, or code that nothing needs. Everything that can be mutated is compiled
once, into one copy of the tree (build/mutants), each mutant behind a switch that an environment variable turns on
(tools/mutation/switch.h): a mutant costs a run of the test cases that reach it. The first build takes minutes; another
draw from the same tree needs none. The tree itself is never touched.

  mutants.py                    300 mutants, drawn with a new seed
  mutants.py --seed 7           the same ones again, while the tree is the same
  mutants.py --files 'state/p*' only of these files
  mutants.py --only 17,40       only these
  mutants.py --list             what would be drawn; nothing is compiled or run
  mutants.py --thorough         what survives is run again with simulations as long as in `make test` (minutes for each)

To look into one: MUSTER_MUTANT=17 build/mutants/out/tests/scenario_test. An id names the same mutant as long as the tree is
the same. Some survivors of a draw change nothing that a test could see: a bound on a search, a cache. The reader of the
output judges them. Lines that only save time say so (`// short cut`) and are not mutated.
"""
import argparse
import collections
import itertools
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch

from mutation import build, trial
from mutation.build import say

SCOPE = ("state/", "service/engine/")
IDS_OF_A_FILE = 1024
# Tests that are too slow for what they add here: real processes that are killed, and scripts. And one that measures time.
LEFT_OUT = ("store_process_test", "security_test", "longest_step_test")
# Tests that are cut short at first, and what one of them may take in full.
SIMULATIONS = ("path_test", "random_commands_test", "small_worlds_test")
SIMULATION_LIMIT_S = 1_800


def with_ids(found):
    """{id: candidate}. Ids are numbered within a file, so that a change of one file leaves the ids of others alone."""
    candidates = {}
    for number, (file, group) in enumerate(itertools.groupby(found, key=lambda c: c.file)):
        for within, candidate in enumerate(group, 1):
            if within >= IDS_OF_A_FILE or (number + 1) * IDS_OF_A_FILE > trial.SWITCH_BYTES:
                sys.exit(f"{file}: more mutants than there are ids for; see IDS_OF_A_FILE")
            candidates[number * IDS_OF_A_FILE + within] = candidate
    return candidates


class Refused:
    """The mutants that did not compile before, by (file, line, mutated line): the next tree has most of them again."""

    def __init__(self, copy, candidates):
        self.file = copy.home / "refused.json"
        self.names = {id: (c.file, *c.before_and_after(copy.texts[c.file])) for id, c in candidates.items()}
        self.known = {tuple(name) for name in json.loads(self.file.read_text())} if self.file.exists() else set()

    def ids(self):
        return {id for id, name in self.names.items() if name in self.known}

    def add(self, ids):
        self.known |= {self.names[id] for id in ids}
        self.file.write_text(json.dumps(sorted(self.known), indent=0))


def describe(id, mutant, texts):
    text = texts[mutant.file]
    before, after = (line if len(line) < 300 else line[:297] + "..." for line in mutant.before_and_after(text))
    return f"{mutant.file}:{mutant.line(text)}: {mutant.kind}, id {id}\n    - {before}\n    + {after}"


def try_all(mutants, runner, cases, at_once, texts):
    """Runs each mutant; prints those that survive as they are found. Returns {id: how it was killed, or None}."""
    reached = frozenset().union(*(case.reaches for case in cases))
    results = {}
    reported = time.monotonic()
    pool = ThreadPoolExecutor(at_once)
    jobs = {pool.submit(runner.killed_by, id, cases): id for id in mutants}
    try:
        for job in as_completed(jobs):
            id = jobs[job]
            results[id] = job.result()
            if results[id] is None:
                why = "survives" if id in reached else "survives: not reached by any test"
                print(f"{describe(id, mutants[id], texts)}\n    {why}", flush=True)
            if time.monotonic() - reported > 15 or len(results) == len(mutants):
                reported = time.monotonic()
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
    parser.add_argument("--thorough", action="store_true", help="give survivors the simulations at full length")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the compiler (one for each core)")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that run at the same time (2)")
    chosen = parser.parse_args()
    if chosen.seed is None:
        chosen.seed = random.SystemRandom().randrange(1, 1_000_000)
    chosen.only = [int(id) for id in chosen.only.split(",")] if chosen.only else []
    return chosen


def drawn(chosen, candidates, usable):
    """The ids to run, in the order of the draw."""
    ids = sorted(id for id in usable if fnmatch(candidates[id].file, chosen.files))
    say(f"{len(ids)} mutants to draw from, seed {chosen.seed}")
    random.Random(chosen.seed).shuffle(ids)
    for id in set(chosen.only) - usable:
        say(f"{id}: no mutant of this tree, or one that does not compile")
    return [id for id in chosen.only if id in usable] if chosen.only else ids[:chosen.count]


def main():
    chosen = options()
    copy = build.Copy("mutants", SCOPE)
    copy.configure(chosen.jobs)
    candidates = with_ids(copy.candidates(chosen.jobs))
    refused = Refused(copy, candidates)
    usable = candidates.keys() - refused.ids()
    if chosen.list:
        for id in drawn(chosen, candidates, usable):
            print(describe(id, candidates[id], copy.texts))
        return 0
    tests = {name: test for name, test in trial.tests_of(copy.out).items() if test.gtest and name not in LEFT_OUT}
    say(f"compiling {len(usable)} mutants; {len(candidates) - len(usable)} are known not to compile")
    targets = sorted({target for test in tests.values() for target in test.targets})
    broken = copy.compile_all({id: candidates[id] for id in sorted(usable)}, targets, chosen.jobs)
    refused.add(broken)
    usable -= broken.keys()
    draw = drawn(chosen, candidates, usable)
    say("running every test without a mutant")
    runner = trial.Trial(copy.out, tests)
    cases, failed = runner.record_all(chosen.at_once)
    for case, result in failed:
        print(f"{case.test}: {case.name} {result.how} without any mutant\n{result.output[-2000:]}")
    if failed:
        return 1
    say(f"{len(cases)} test cases pass in {sum(case.seconds for case in cases):.0f} s; running {len(draw)} mutants")
    results = try_all({id: candidates[id] for id in draw}, runner, cases, chosen.at_once, copy.texts)
    if chosen.thorough:
        longer = [case for case in cases if case.test in SIMULATIONS]
        left = {id: candidates[id] for id, how in results.items() if how is None and any(id in case.reaches for case in longer)}
        say(f"{len(left)} of the survivors are reached by simulations, which run at full length now")
        full = trial.Trial(copy.out, tests, trial.LONG, SIMULATION_LIMIT_S)
        results |= try_all(left, full, longer, chosen.at_once, copy.texts)
    killers = collections.Counter(" ".join(how) for how in results.values() if how)
    say("killed by: " + ", ".join(f"{name} {times}" for name, times in killers.most_common()))
    killed = sum(killers.values())
    print(f"{killed} of {len(results)} mutants were killed ({100 * killed / max(1, len(results)):.0f}%), seed {chosen.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
