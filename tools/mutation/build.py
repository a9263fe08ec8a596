"""The copy of the tree that carries the mutants: written, compiled once, and rid of mutants that do not compile."""
import os
import re
import subprocess
import sys
from pathlib import Path

from .candidate import crossing, rewritten
from .find import ROOT, SCOPE

HOME = ROOT / "build/mutants"
COPY = HOME / "tree"
OUT = HOME / "out"
MAX_BUILDS = 12
ERROR = re.compile(r"^(\S+?):(\d+):\d+: (?:fatal )?error: ", re.M)
# The line of a template that was instantiated, or what a note points at.
CONTEXT = re.compile(r"^(\S+?):(\d+):\d+: ", re.M)


def write(path, text):
    """Only what differs: what is as it was is not compiled again."""
    if not path.exists() or path.read_text("latin-1") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "latin-1")


def sources():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listing.stdout.splitlines() if (ROOT / name).is_file())


def copy_tree(mutants):
    """The tree as it stands, with {id: candidate} written into it. None: what can be mutated is left as it was, if it is
    there at all, so that the same mutants need not be compiled again."""
    keep = mutants is None
    mutants = mutants or {}
    by_file = {}
    for id, mutant in mutants.items():
        by_file.setdefault(mutant.file, {})[id] = mutant
    names = sources()
    for name in names:
        if keep and name.startswith(SCOPE) and name.endswith((".h", ".cc")) and (COPY / name).exists():
            continue
        text = (ROOT / name).read_text("latin-1")
        write(COPY / name, rewritten(text, by_file[name]) if name in by_file else text)
        os.chmod(COPY / name, (ROOT / name).stat().st_mode)
    for path in list(COPY.rglob("*")):
        if path.is_file() and str(path.relative_to(COPY)) not in set(names):
            path.unlink()


def configure(jobs):
    """Also makes the headers that are generated: without them nothing can be parsed."""
    # A build type of its own: the settings of the others do not apply. A mutant may leave something unused: no warnings.
    run_or_exit(["cmake", "-G", "Ninja", "-S", COPY, "-B", OUT, "-DCMAKE_BUILD_TYPE=Mutants",
                 "-DCMAKE_CXX_FLAGS_MUTANTS=-O1 -w -Wno-narrowing", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
    listing = subprocess.run(["ninja", "-C", OUT, "-t", "targets", "all"], capture_output=True, text=True, check=True)
    headers = re.findall(r"^(gen/\S+\.h): CUSTOM_COMMAND", listing.stdout, re.M)
    run_or_exit(["ninja", "-C", OUT, "-j", str(jobs), *headers])


def run_or_exit(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")


def places(pattern, output):
    """(file of the tree, line) of everything in `output` that `pattern` finds; ccache may have made paths relative."""
    for file, line in pattern.findall(output):
        path = (OUT / file).resolve()
        if path.is_relative_to(COPY):
            yield str(path.relative_to(COPY)), int(line)


def broken_by(output, mutants):
    """The ids of the mutants that stand where the compiler complains, or where it says that it came from."""
    spans = {}
    for id, mutant in mutants.items():
        text = (ROOT / mutant.file).read_text("latin-1")
        spans[id] = (mutant.file, text.count("\n", 0, mutant.start) + 1, mutant.last_line(text))
    for pattern in (ERROR, CONTEXT):
        at = set(places(pattern, output))
        found = {id for id, (file, first, last) in spans.items() if any(file == f and first <= line <= last for f, line in at)}
        # A statement that is dropped hardly ever fails, and may be long.
        expressions = {id for id in found if mutants[id].form != "statement"}
        if found:
            return expressions or found
    return set()


def compile_drawn(draw, count, targets, jobs, say):
    """Compiles the first `count` of `draw` (an iterator over (id, candidate)) that compile together; returns {id: candidate}
    and those that did not compile."""
    mutants, refused = {}, {}

    def fill():
        for id, candidate in draw:
            if not any(crossing(candidate, other) for other in mutants.values() if other.file == candidate.file):
                mutants[id] = candidate
            if len(mutants) >= count:
                return

    fill()
    for attempt in range(MAX_BUILDS):
        copy_tree(mutants)
        say(f"compiling {len(mutants)} mutants" + (f" ({len(refused)} did not compile)" if refused else ""))
        result = subprocess.run(["cmake", "--build", OUT, "-j", str(jobs), "--target", *targets, "--", "-k", "0"],
                                capture_output=True, text=True)
        if result.returncode == 0:
            return mutants, refused
        output = result.stdout + result.stderr
        broken = broken_by(output, mutants)
        if not broken:
            sys.exit("the tree does not build, and no mutant seems to be why:\n" + output[-6000:])
        for id in broken:
            refused[id] = mutants.pop(id)
        if attempt < MAX_BUILDS // 2:  # in the end without new ones
            fill()
    sys.exit(f"after {MAX_BUILDS} builds there are still mutants that do not compile")
