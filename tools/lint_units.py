#!/usr/bin/env python3
"""The input of clang-tidy: every source of the product, one path per line. A batch is listed by the file that includes it.

  lint_units.py BUILD         the folder with compile_commands.json
  lint_units.py BUILD SINCE   only those that have changed since this commit, and for each header that has, one that
                              includes it; all of them, if the repository's history does not reach so far

Fails if a source that git tracks is missing.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("state/", "service/", "k8s-extender/", "clients/")


def changed_files(since):
    """Sources and headers that changed; None: every source is to be read."""
    known = subprocess.run(["git", "diff", "--name-only", "--diff-filter=d", since], cwd=ROOT, capture_output=True, text=True)
    if known.returncode != 0:
        print(f"the history does not reach {since}: every source is read", file=sys.stderr)
        return None
    files = known.stdout.split()
    return None if ".clang-tidy" in files else {file for file in files if file.endswith((".cc", ".h"))}


def takes(sources, changed):
    """Whether one of a batch's sources has changed or includes a changed header that no batch before it does."""
    read, ahead = set(), set(sources)
    while ahead:
        read |= ahead
        texts = [(ROOT / file).read_text() for file in ahead if (ROOT / file).exists()]
        ahead = {file for text in texts for file in re.findall(r'#include "([^"]+)"', text)} - read
    read &= changed
    changed -= read
    return bool(read)


def main():
    build = Path(sys.argv[1]).resolve()
    listing = subprocess.run(["git", "ls-files", "--", *(part + "*.cc" for part in PARTS)], cwd=ROOT, capture_output=True, text=True, check=True)
    missing = set(listing.stdout.split())
    changed = changed_files(sys.argv[2]) if len(sys.argv) > 2 else None
    units = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        if not file.is_relative_to(ROOT):
            continue
        batch = file.is_relative_to(build)
        inside = re.findall(r'#include "([^"]+\.cc)"', file.read_text()) if batch and file.exists() else []
        sources = {str(Path(path).relative_to(ROOT)) for path in inside} if batch else {str(file.relative_to(ROOT))}
        if sources & missing:
            if changed is None or takes(sources, changed):
                units.append(str(file))
            missing -= sources
    if missing:
        sys.exit("not compiled, so that nothing reads it: " + ", ".join(sorted(missing)))
    print("\n".join(units))


if __name__ == "__main__":
    main()
