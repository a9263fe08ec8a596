#!/usr/bin/env python3
"""Rule numbers of docs/project/specification.md and the tree agree.

  check_spec_numbers.py ROOT   print every violation; exit 1 if there is one
  check_spec_numbers.py --self-test

Every number that code, tests and documents cite is defined in the specification. Every number that is built, which is
every one that the table "Open numbers" does not list as open, is named by a test. "G-8 to G-11" names what lies between.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBER = r"\b([DGPQYKS])-(\d{1,2})\b"
ENDINGS = (".cc", ".h", ".go", ".py", ".sh", ".txt", ".md", ".proto")
# Other numbers of the same form: conformance cases (C-101) are none; these files quote other systems' names.
NOT_RULES = ("docs/project/decisions/", "tests/rules/check_spec_numbers.py", "tests/e2e/crds/")


def numbers(text):
    found = {f"{letter}-{number}" for letter, number in re.findall(NUMBER, text)}
    for letter, first, last in re.findall(r"\b([DGPQYKS])-(\d{1,2}) (?:to|-) (?:\1-)?(\d{1,2})\b", text):
        found |= {f"{letter}-{n}" for n in range(int(first), int(last) + 1)}
    return found


def violations(root, files):
    specification = (root / "docs/project/specification.md").read_text()
    defined = {f"{letter}-{number}" for letter, number in re.findall(r"\*\*([DGPQYKS])-(\d{1,2})\b", specification)}
    state = dict(re.findall(r"^\| ([DGPQYKS]-\d{1,2}) \| (open|partial) \|", specification, re.M))
    for number in sorted(state.keys() - defined):
        yield f"docs/project/specification.md: the table of open numbers names {number}, which is not defined"
    tested = set()
    for path in files:
        if path.suffix not in ENDINGS or str(path).startswith(NOT_RULES):
            continue
        cited = numbers((root / path).read_text(errors="replace"))
        for number in sorted(cited - defined):
            yield f"{path}: {number} is not defined in docs/project/specification.md"
        if str(path).startswith(("tests/", "clients/python/tests/")) or path.name.endswith("_test.go"):
            tested |= cited
    for number in sorted(defined - tested, key=lambda n: (n[0], int(n[2:]))):
        if state.get(number) != "open":
            yield f"{number} is named by no test, and is not listed as open in docs/project/specification.md"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in (("docs/project/specification.md", "**G-1** a **G-2** b **G-3** c\n| G-3 | open | x |\n"),
                           ("tests/a_test.cc", "// G-1\n"), ("state/a.h", "// G-2, G-9\n")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = list(violations(root, [Path("tests/a_test.cc"), Path("state/a.h")]))
    expected = ["state/a.h: G-9 is not defined", "G-2 is named by no test"]
    if len(found) != 2 or not all(part in line for part, line in zip(expected, found)):
        print("self-test:", found)
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = Path(sys.argv[1])
    listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    found = list(violations(root, [Path(f) for f in listing.stdout.splitlines() if (root / f).is_file()]))
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
