#!/usr/bin/env python3
"""The input of clang-tidy: every source of the product, one path per line. A batch is listed by the file that includes it.

  lint_units.py BUILD   the folder with compile_commands.json

Fails if a source that git tracks is missing.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("state/", "service/", "k8s-extender/", "clients/")


def main():
    build = Path(sys.argv[1]).resolve()
    listing = subprocess.run(["git", "ls-files", "--", *(part + "*.cc" for part in PARTS)], cwd=ROOT, capture_output=True, text=True, check=True)
    missing = set(listing.stdout.split())
    units = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        if not file.is_relative_to(ROOT):
            continue
        batch = file.is_relative_to(build)
        inside = re.findall(r'#include "([^"]+\.cc)"', file.read_text()) if batch and file.exists() else []
        sources = {str(Path(path).relative_to(ROOT)) for path in inside} if batch else {str(file.relative_to(ROOT))}
        if sources & missing:
            units.append(str(file))
            missing -= sources
    if missing:
        sys.exit("not compiled, so that nothing reads it: " + ", ".join(sorted(missing)))
    print("\n".join(units))


if __name__ == "__main__":
    main()
