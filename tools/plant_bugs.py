#!/usr/bin/env python3
"""Plants bugs in a copy of the tree and checks that a test catches each: make plant-bugs

A bug that survives names a test that is missing. tools/planted_bugs.tsv has at least one bug for each rule of
docs/project/specification.md. All are compiled once, into one copy of the tree (build/bugs), each behind a switch that an
environment variable turns on (tools/mutation/switch.h); then each is run with the test cases that reach it, cheapest
first, until one fails. The tree itself is never touched.

  plant_bugs.py                  every bug
  plant_bugs.py G-4 K-3          only the bugs of these rules
  plant_bugs.py --check          compiles nothing: every line of the list names exactly one place, and every rule has a line
  plant_bugs.py --rules          only: every rule has a line
  plant_bugs.py --list FUNCTION  the lines that can be written for a function, as Class::Function

To look into one, by its number in the output: MUSTER_MUTANT=17 build/bugs/out/tests/scenario_test.
"""
import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from mutation import build, find, trial
from mutation.build import say
from mutation.place import Places

LIST = find.ROOT / "tools/planted_bugs.tsv"
SPECIFICATION = find.ROOT / "docs/project/specification.md"
LINT = find.ROOT / "build/lint"  # whose compile_commands.json says how the tree is read
SCOPE = ("state/", "support/", "service/", "k8s-extender/")
DEFINITION = re.compile(r'<a id="([a-z]-\d+)"></a>')  # of a rule, in the specification
OPEN = re.compile(r"^\| ([A-Z]-\d+) \| open \|", re.M)  # its table of rules that are not built
NO_BUG = "none"  # in the second column


class Bug(NamedTuple):
    line: int
    rules: tuple
    function: str
    edit: str
    anchor: str
    breaks: str

    def __str__(self):
        return f"{' '.join(self.rules)} {self.function}, {self.edit}, {self.anchor}: {self.breaks}"


def read_list():
    """(bugs, {rule: why it has none}, problems)"""
    bugs, without, problems = [], {}, []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        rules, *rest = [part.strip() for part in line.split("\t")]
        if len(rest) == 2 and rest[0] == NO_BUG:
            without.update({rule: rest[1] for rule in rules.split()})
        elif len(rest) == 4 and all(rest):
            bugs.append(Bug(number, tuple(rules.split()), *rest))
        else:
            problems.append(f"{LIST.name}:{number}: expected RULE, function, edit, anchor, what it breaks; or RULE, {NO_BUG}, reason")
    return bugs, without, problems


def check_rules(bugs, without):
    """What is wrong between the list and the specification."""
    if not SPECIFICATION.exists():
        return [f"{SPECIFICATION.relative_to(find.ROOT)} does not exist"]
    text = SPECIFICATION.read_text()
    defined = {id.upper() for id in DEFINITION.findall(text)}
    listed = {rule for bug in bugs for rule in bug.rules}
    wrong = {"no planted bug, and no reason why there is none": defined - set(OPEN.findall(text)) - listed - without.keys(),
             "has a planted bug, and a reason why there is none": listed & without.keys(),
             "is listed, and open in the specification": (listed | without.keys()) & set(OPEN.findall(text)),
             "the specification has no such rule": (listed | without.keys()) - defined}
    return [f"{rule}: {what}" for what, rules in wrong.items() for rule in sorted(rules)]


def resolve(bugs, places):
    """({bug: candidate}, problems)"""
    found, problems = {}, []
    for bug in bugs:
        try:
            found[bug] = places.find(bug.function, bug.edit, bug.anchor)
        except LookupError as error:
            problems.append(f"{LIST.name}:{bug.line}: {error.args[0]}")
    taken = {}
    for bug, candidate in found.items():
        if taken.setdefault(candidate, bug) != bug:
            problems.append(f"{LIST.name}:{bug.line}: the same bug as line {taken[candidate].line}")
    return found, problems


def likely_sources(name, texts):
    """The sources that define Class::Function, or that read a header which may define it."""
    owner, _, function = name.rpartition("::")
    call = rf"{re.escape(function)}\s*\("
    outside = re.compile(rf"(?<![\w:]){re.escape(owner + '::' if owner else '')}{call}")
    inside = re.compile(rf"\b{re.escape(owner.split('::')[-1])}\b(?s:.*)\b{call}")
    return [file for file, text in texts.items() if outside.search(text)] or [file for file, text in texts.items() if inside.search(text)]


def places_of(functions, jobs):
    """The candidates of these functions, and others, in the tree itself."""
    if not (LINT / "build.ninja").exists():
        build.run_or_exit(["cmake", "--preset", "lint"])
    build.run_or_exit(["cmake", "--build", LINT, "--target", "generated_headers"])
    texts = build.Texts()
    texts = {str(find.ROOT / file): texts[file] for file in build.sources() if file.startswith(SCOPE) and file.endswith(".cc")}
    names = {function.split("(")[0] for function in functions}
    likely = {file for name in names for file in likely_sources(name, texts)}
    places = Places(find.find(LINT, find.ROOT, SCOPE, jobs, likely))
    return places if names <= places.signatures.keys() else Places(find.find(LINT, find.ROOT, SCOPE, jobs))


def show(function, jobs):
    try:
        by_edit = places_of([function], jobs).within(function)
    except LookupError as error:
        sys.exit(error.args[0])
    texts = build.Texts()
    lines = [(c.edit_start, edit, number, c) for edit, found in by_edit.items() for number, c in enumerate(found, 1)]
    for _, edit, number, candidate in sorted(lines):
        text = texts[candidate.file]
        print(f"{candidate.file}:{candidate.line(text)}\t{edit}\t#{number}\t{candidate.names}")
        print("    - {}\n    + {}".format(*candidate.before_and_after(text)))
    return 0


def plant(bugs, rules, jobs, at_once):
    """Compiles all bugs, so that the next run need not, and runs those of `rules`; without any, all."""
    copy = build.Copy("bugs", SCOPE)
    copy.configure(jobs)
    found, problems = resolve(bugs, Places(copy.candidates(jobs)))
    if problems:
        sys.exit("\n".join(problems))
    mutants = {bug.line: candidate for bug, candidate in found.items()}
    tests = trial.tests_of(copy.out)
    say(f"compiling {len(mutants)} bugs")
    refused = copy.compile_all(mutants, sorted({target for test in tests.values() for target in test.targets}), jobs)
    say("running every test without a bug")
    runner = trial.Trial(copy.out, tests)
    cases, failed = runner.record_all(at_once)
    for case, result in failed:
        print(f"{case.test} {case.name} {result.how} without any bug\n{result.output[-2000:]}")
    if failed:
        return 1
    say(f"{len(cases)} test cases pass")
    bugs = [bug for bug in bugs if not rules or set(rules) & set(bug.rules)]
    survivors = 0
    with ThreadPoolExecutor(at_once) as pool:
        how = lambda bug: "does not compile" if bug.line in refused else runner.killed_by(bug.line, cases)
        for bug, killed in zip(bugs, pool.map(how, bugs)):
            survivors += not isinstance(killed, tuple)
            unreached = all(bug.line not in case.reaches for case in cases)
            said = f"caught by {killed[0]} ({killed[1]})" if isinstance(killed, tuple) else killed
            said = said or ("SURVIVES: no test reaches it" if unreached else "SURVIVES")
            print(f"{bug.line}: {said}: {bug}", flush=True)
    say(f"{len(bugs) - survivors} of {len(bugs)} planted bugs were caught")
    return 1 if survivors else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="plant only the bugs of these rules")
    parser.add_argument("--check", action="store_true", help="check the list against the tree and the specification")
    parser.add_argument("--rules", dest="only_rules", action="store_true", help="check the list against the specification")
    parser.add_argument("--list", metavar="FUNCTION", help="show what can be planted in a function")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count(), help="of the compiler (one for each core)")
    parser.add_argument("--at-once", type=int, default=2, help="tests that run at the same time (2)")
    chosen = parser.parse_args()
    if chosen.list:
        return show(chosen.list, chosen.jobs)
    bugs, without, problems = read_list()
    if chosen.check or chosen.only_rules:
        problems += check_rules(bugs, without)
        if chosen.check:
            problems += resolve(bugs, places_of([bug.function for bug in bugs], chosen.jobs))[1]
        print("\n".join([*problems, f"{len(bugs)} planted bugs, {len(problems)} problems"]))
        return 1 if problems else 0
    if problems:
        sys.exit("\n".join(problems))
    if unknown := set(chosen.rules) - {rule for bug in bugs for rule in bug.rules}:
        sys.exit(f"no bug of {' '.join(sorted(unknown))}")
    return plant(bugs, chosen.rules, chosen.jobs, chosen.at_once)


if __name__ == "__main__":
    sys.exit(main())
