#!/usr/bin/env python3
"""Each requirement that this version covers is named by a test: check_spec_numbers.py ROOT."""
import re
import sys
from pathlib import Path

IN_SCOPE = """D-1 D-2 D-3 D-6 D-8 D-9 D-10 D-11 D-12 D-13 D-14
G-1 G-2 G-3 G-4 G-5 G-6 G-7 G-8 G-9 G-10 G-11 G-13 G-14
P-1 P-2 P-3 P-4 P-6 P-9 P-10 P-11
K-1 K-2 K-3 K-4 K-5 K-6 K-7 K-8 K-9 K-10 K-11 K-13 K-14
S-1 S-2 S-3 S-4 S-5 S-6 S-7""".split()

root = Path(sys.argv[1]) / "tests"
text = "\n".join(p.read_text(errors="replace") for p in root.rglob("*")
                 if p.suffix in (".cc", ".h", ".txt", ".go", ".sh", ".py") and "out" not in p.parts)
missing = [n for n in IN_SCOPE if not re.search(r"\b" + re.escape(n) + r"\b", text)]
# "G-8 to G-11" names what lies between.
print("named by no test: " + " ".join(missing) if missing else f"{len(IN_SCOPE)} requirements are named by tests")
sys.exit(1 if missing else 0)
