"""The copy of the tree that carries the mutants: written, compiled once, and rid of mutants that do not compile."""
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from . import find
from .candidate import Candidate, rewritten
from .find import ROOT

MAX_BUILDS = 60
ERROR = re.compile(r"^(\S+?):(\d+):(\d+): (?:fatal )?error: ", re.M)
# The line of a template that was instantiated, or what a note points at.
CONTEXT = re.compile(r"^(\S+?):(\d+):(\d+): ", re.M)
STARTED = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", flush=True)


def write(path, text):
    """Writes only what differs: an unchanged file is not compiled again."""
    if not path.exists() or path.read_text("latin-1") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "latin-1")


def sources():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listing.stdout.splitlines() if (ROOT / name).is_file())


def run_or_exit(command):
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")


class Texts(dict):
    """The files of the tree, read when they are asked for."""

    def __missing__(self, file):
        self[file] = (ROOT / file).read_text("latin-1")
        return self[file]


class Copy:
    """build/NAME: the copy (tree/) and what is built of it (out/), for one process at a time. `scope`: the folders that are
    searched for mutants."""

    def __init__(self, name, scope):
        self.home = ROOT / "build" / name
        self.tree = self.home / "tree"
        self.out = self.home / "out"
        self.scope = tuple(scope)
        self.texts = Texts()
        self.home.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.home / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def write_tree(self, mutants):
        """Writes the tree with {id: candidate} in it; returns the insertions, {file: [inserted]}. None: files that can have
        mutants stay as they are, if they exist, so that the same mutants need not be compiled again."""
        keep = mutants is None
        inserted, by_file = {}, {}
        for id, mutant in (mutants or {}).items():
            by_file.setdefault(mutant.file, {})[id] = mutant
        names = sources()
        for name in names:
            if keep and name.startswith(self.scope) and name.endswith((".h", ".cc")) and (self.tree / name).exists():
                continue
            text = (ROOT / name).read_text("latin-1")
            if name in by_file:
                text, inserted[name] = rewritten(text, by_file[name])
            write(self.tree / name, text)
            os.chmod(self.tree / name, (ROOT / name).stat().st_mode)
        for path in {path for path in self.tree.rglob("*") if path.is_file()} - {self.tree / name for name in names}:
            path.unlink()
        return inserted

    def configure(self, jobs):
        """Writes the tree, and makes the headers that are generated: nothing can be parsed without them."""
        self.write_tree(None)
        # A build type of its own: the settings of the others do not apply. A mutant may leave something unused: no warnings.
        run_or_exit(["cmake", "-G", "Ninja", "-S", self.tree, "-B", self.out, "-DCMAKE_BUILD_TYPE=Mutants",
                     "-DCMAKE_CXX_FLAGS_MUTANTS=-O1 -w -Wno-narrowing -fdiagnostics-column-unit=byte",
                     "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
        run_or_exit(["cmake", "--build", self.out, "-j", str(jobs), "--target", "generated_headers"])

    def candidates(self, jobs):
        """Every candidate of the tree; found once for a tree. REQUIRES: configured."""
        code = [ROOT / name for name in sources() if name.endswith((".h", ".cc", ".proto"))]
        tool = [Path(find.__file__), Path(find.__file__).with_name("candidate.py")]
        key = hashlib.sha256(b"\0".join(path.read_bytes() for path in tool + code)).hexdigest()
        file = self.home / "candidates.json"
        known = json.loads(file.read_text()) if file.exists() else {"key": None}
        if known["key"] != key:
            say("reading the tree with libclang")
            known = {"key": key, "candidates": find.find(self.out, self.tree, self.scope, jobs)}
            file.write_text(json.dumps(known))
        return [Candidate(*fields) for fields in known["candidates"]]

    def compile_all(self, mutants, targets, jobs):
        """Compiles all of {id: candidate} that compile; returns those that do not."""
        mutants, refused = dict(mutants), {}
        for _ in range(MAX_BUILDS):
            inserted = self.write_tree(mutants)
            built, output = self.run_build(targets, jobs)
            if built:
                return refused
            broken = self.broken_by(output, mutants, inserted)
            if not broken:
                sys.exit("the tree does not build, and no mutant seems to be why:\n" + output[-6000:])
            for id in broken:
                refused[id] = mutants.pop(id)
            say(f"{len(broken)} mutants do not compile: left out")
        sys.exit(f"after {MAX_BUILDS} builds there are still mutants that do not compile")

    def run_build(self, targets, jobs):
        """(did it build, what it printed)"""
        command = ["cmake", "--build", self.out, "-j", str(jobs), "--target", *targets, "--", "-k", "0"]
        lines, reported = [], time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as ninja:
            for line in ninja.stdout:
                lines.append(line)
                if line.startswith("[") and time.monotonic() - reported > 30:
                    reported = time.monotonic()
                    say("compiling " + line.split("]")[0] + "]")
        return ninja.returncode == 0, "".join(lines)

    def broken_by(self, output, mutants, inserted):
        """The ids of the mutants that the compiler complains about: the complaint points at their text, at their line, or
        at a line that led to the complaint."""
        for pattern in (ERROR, CONTEXT):
            pointed_at, near = set(), set()
            for file, line, column in set(pattern.findall(output)):
                path = (self.out / file).resolve()  # ccache may have made it relative
                if not path.is_relative_to(self.tree) or str(path.relative_to(self.tree)) not in inserted:
                    continue
                file, line, column = str(path.relative_to(self.tree)), int(line), int(column)
                at = {id for l, first, last, id in inserted[file] if l == line and first <= column < last}
                pointed_at |= at
                if not at:
                    spanning = {id for id, m in mutants.items() if m.file == file and m.spans_line(line, self.texts[file])}
                    # A statement that is removed hardly ever fails, and may be long.
                    near |= {id for id in spanning if mutants[id].form != "statement"} or spanning
            if pointed_at or near:
                return (pointed_at or near) & mutants.keys()
        return set()
