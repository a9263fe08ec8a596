"""The copy of the tree that carries the mutants: written, compiled once, and rid of mutants that do not compile."""
import os
import re
import subprocess
import sys
import time

from .candidate import rewritten
from .find import ROOT, SCOPE

HOME = ROOT / "build/mutants"
COPY = HOME / "tree"
OUT = HOME / "out"
MAX_BUILDS = 60
ERROR = re.compile(r"^(\S+?):(\d+):(\d+): (?:fatal )?error: ", re.M)
# The line of a template that was instantiated, or what a note points at.
CONTEXT = re.compile(r"^(\S+?):(\d+):(\d+): ", re.M)


def write(path, text):
    """Only what differs: what is as it was is not compiled again."""
    if not path.exists() or path.read_text("latin-1") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "latin-1")


def sources():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listing.stdout.splitlines() if (ROOT / name).is_file())


def copy_tree(mutants):
    """The tree as it stands, with {id: candidate} written into it; returns what was put in, {file: [inserted]}. None: what
    can be mutated is left as it was, if it is there at all, so that the same mutants need not be compiled again."""
    keep = mutants is None
    inserted = {}
    mutants = mutants or {}
    by_file = {}
    for id, mutant in mutants.items():
        by_file.setdefault(mutant.file, {})[id] = mutant
    names = sources()
    for name in names:
        if keep and name.startswith(SCOPE) and name.endswith((".h", ".cc")) and (COPY / name).exists():
            continue
        text = (ROOT / name).read_text("latin-1")
        if name in by_file:
            text, inserted[name] = rewritten(text, by_file[name])
        write(COPY / name, text)
        os.chmod(COPY / name, (ROOT / name).stat().st_mode)
    for path in {path for path in COPY.rglob("*") if path.is_file()} - {COPY / name for name in names}:
        path.unlink()
    return inserted


def configure(jobs):
    """Also makes the headers that are generated: without them nothing can be parsed."""
    # A build type of its own: the settings of the others do not apply. A mutant may leave something unused: no warnings.
    run_or_exit(["cmake", "-G", "Ninja", "-S", COPY, "-B", OUT, "-DCMAKE_BUILD_TYPE=Mutants",
                 "-DCMAKE_CXX_FLAGS_MUTANTS=-O1 -w -Wno-narrowing -fdiagnostics-column-unit=byte", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
    listing = subprocess.run(["ninja", "-C", OUT, "-t", "targets", "all"], capture_output=True, text=True, check=True)
    headers = re.findall(r"^(gen/\S+\.h): CUSTOM_COMMAND", listing.stdout, re.M)
    run_or_exit(["ninja", "-C", OUT, "-j", str(jobs), *headers])


def run_or_exit(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")


def broken_by(output, mutants, inserted):
    """The ids of the mutants that the compiler complains of: whose text it points at, or that stand on such a line, or on
    one that a complaint came from."""
    texts = {}
    for pattern in (ERROR, CONTEXT):
        pointed_at, near = set(), set()
        for file, line, column in set(pattern.findall(output)):
            path = (OUT / file).resolve()  # ccache may have made it relative
            if not path.is_relative_to(COPY) or str(path.relative_to(COPY)) not in inserted:
                continue
            file, line, column = str(path.relative_to(COPY)), int(line), int(column)
            at = {id for l, first, last, id in inserted[file] if l == line and first <= column < last}
            pointed_at |= at
            if not at:
                text = texts.setdefault(file, (ROOT / file).read_text("latin-1"))
                spanning = {id for id, m in mutants.items() if m.file == file and m.spans_line(line, text)}
                # A statement that is dropped hardly ever fails, and may be long.
                near |= {id for id in spanning if mutants[id].form != "statement"} or spanning
        if pointed_at or near:
            return (pointed_at or near) & mutants.keys()
    return set()


def run_build(targets, jobs, say):
    """(did it build, what it printed)"""
    command = ["cmake", "--build", OUT, "-j", str(jobs), "--target", *targets, "--", "-k", "0"]
    lines, told = [], time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as ninja:
        for line in ninja.stdout:
            lines.append(line)
            if line.startswith("[") and time.monotonic() - told > 30:
                told = time.monotonic()
                say("compiling " + line.split("]")[0] + "]")
    return ninja.returncode == 0, "".join(lines)


def compile_all(mutants, targets, jobs, say):
    """Compiles all of {id: candidate} that compile; returns those that do not."""
    mutants, refused = dict(mutants), {}
    for _ in range(MAX_BUILDS):
        inserted = copy_tree(mutants)
        built, output = run_build(targets, jobs, say)
        if built:
            return refused
        broken = broken_by(output, mutants, inserted)
        if not broken:
            sys.exit("the tree does not build, and no mutant seems to be why:\n" + output[-6000:])
        for id in broken:
            refused[id] = mutants.pop(id)
        say(f"{len(broken)} mutants do not compile: left out")
    sys.exit(f"after {MAX_BUILDS} builds there are still mutants that do not compile")
