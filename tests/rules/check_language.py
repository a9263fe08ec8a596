#!/usr/bin/env python3
"""The language of the tree: comments, documents, identifiers, test names and commit subjects (docs/glossary.md).

  check_language.py ROOT [FOLDER...]  print every violation (below FOLDER only); exit 1 if there is one
  check_language.py --subject FILE    check the commit message in FILE (tools/hooks/commit-msg)
  check_language.py --self-test       prove that each rule catches what it is for

Things are not people: pronouns for persons and words that stand for a noun of the glossary are refused in comments and
documents, and the same words in identifiers. A sentence has at most MAX_WORDS words. A test is called
Subject_Condition_Result. A commit's subject is `area: imperative summary` of at most 72 characters.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MAX_WORDS = 35
# Subjects of later commits are checked; older ones stay as they are.
LAST_UNCHECKED = "91848b9"

# (pattern, what to write instead). In comments and documents, whatever the case.
PROSE = [
    (r"\b(no|some|every|any)body\b|\b(some|every)one\b|\banyone\b|\bno one\b", "a noun: the pod, the caller, the gang"),
    (r"\bwho(ever|m)?\b", "a noun and `that` or `which`"),
    (r"\b(he|she|him|his|himself|herself)\b", "a noun, or `it`"),
    (r"\banew\b", "again"),
    (r"\b(for|as|so) so (long|many|much)\b|\bso so\b|\bnot so (many|long)\b|\bfor so long\b", "the quantity by its name"),
    (r"\b(is|are|was|were|be|been|being) (told|said to)\b|\btells? (of|apart|them|it|us|the)\b", "receives, reports, notifies, distinguishes"),
    (r"\b(to|who|that) come\b(?= (are|is|was|were|count|have|has|keep|wait)\b)|\bmembers? to come\b", "future member"),
    (r"\bhalf[- ]bound\b", "partially bound"),
    (r"\bneighbou?rs?\b", "pod affinity"),
    (r"\bgives? (it |them )?back\b|\bgiven back\b", "release"),
    (r"\bmakes? sure\b", "ensures, checks"),
    (r"\bstands? (for|in|on|at|by|still)?\s*(there|here)\b", "is, exists"),
]
# In identifiers, as one of the words that an identifier consists of.
IDENTIFIERS = re.compile(r"(?<![a-z])(Nobody|Somebody|Everybody|Anybody|Who|Whoever|Whom|Whose|Anew|Told|He|Him|His|Neighbou?rs?|ToCome)(?![a-z])"
                         r"|\b(nobody|somebody|everybody|whoever|whose|anew|told|neighbou?rs?|to_come)_?\b|_(nobody|somebody|told|anew|to_come)_?\b")
# Words that the rules above refuse and that are right here: (file or folder, text).
ALLOWED = [
    ("docs/project/decisions/", "neighbour"),
]
NOT_OURS = ("clients/python/src/muster/v1/", "clients/go/musterv1/", "proto/google/", "tests/e2e/crds/", "docs/reference/api.md",
            "docs/reference/go-client.md", "docs/reference/python-client.md", "tests/rules/check_language.py", "LICENSE")
CODE = {".h": "//", ".cc": "//", ".go": "//", ".proto": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".txt": "#"}


def comments(path, text):
    """(line number, text) of each block of comment lines, joined, and of each comment behind code."""
    mark = CODE.get(path.suffix)
    if path.name == "CMakeLists.txt" or path.name == "Makefile":
        mark = "#"
    elif path.suffix == ".txt":  # scenario: prose stands in comment lines
        mark = "#"
    block, start = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith(mark) and not stripped.startswith("#!"):
            if not block:
                start = number
            block.append(stripped.lstrip("/#").strip())
            continue
        if block:
            yield start, "\n".join(block)
            block = []
        at = line.find(" " + mark + " ")
        if at > 0 and line.count('"', 0, at) % 2 == 0 and line.count("'", 0, at) % 2 == 0:
            yield number, line[at + 2 + len(mark):]
    if block:
        yield start, "\n".join(block)


def paragraphs(text):
    """(line number, text) of each paragraph of a Markdown document, without code, tables and headings."""
    block, start, fenced = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        if fenced or line.startswith("    ") or line.lstrip().startswith(("|", "#", "<")):
            line = ""
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if (not line.strip() or item) and block:
            yield start, "\n".join(block)
            block = []
        if line.strip():
            if not block:
                start = number
            block.append(line[item.end():] if item else line.strip())


def sentences(text):
    text = re.sub(r"`[^`]*`|\[([^\]]*)\]\([^)]*\)", lambda m: m.group(1) or "x", text.replace("\n", " "))
    return re.split(r"(?<=[.!?:;])\s+", text)


def prose_violations(path, number, text):
    plain = re.sub(r"`[^`]*`", "x", text)
    for pattern, instead in PROSE:
        found = re.search(pattern, plain, re.I)
        if found and not any(str(path).startswith(where) and word in found.group(0).lower() for where, word in ALLOWED):
            yield f"{path}:{number + plain.count(chr(10), 0, found.start())}: \"{found.group(0)}\": write {instead}"
    for sentence in sentences(text):
        words = re.findall(r"[A-Za-z][\w'/-]*", sentence)
        if len(words) > MAX_WORDS:
            yield f"{path}:{number}: a sentence of {len(words)} words; at most {MAX_WORDS}: \"{' '.join(words[:8])} ...\""


def violations(root, files):
    for path in files:
        if str(path).startswith(NOT_OURS):
            continue
        code = path.suffix in CODE or path.name in ("CMakeLists.txt", "Makefile")
        if not code and path.suffix != ".md":
            continue
        text = (root / path).read_text(errors="replace")
        for number, block in comments(path, text) if code else paragraphs(text):
            yield from prose_violations(path, number, block)
        if path.suffix not in (".h", ".cc"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line.split("//")[0])
            if bare.startswith("#"):
                continue
            for word in re.findall(r"[A-Za-z_]\w*", bare):
                if IDENTIFIERS.search(word):
                    yield f"{path}:{number}: {word}: name the thing (docs/glossary.md)"
            test = re.match(r"(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\w+, (\w+)\)", line)
            if test and not re.fullmatch(r"[A-Z0-9][A-Za-z0-9]*(_[A-Z0-9][A-Za-z0-9]*)+", test.group(2)):
                yield f"{path}:{number}: test {test.group(2)}: call it Condition_Result or Subject_Condition_Result"


def commit_violations(subjects):
    for subject in subjects:
        if len(subject) > 72:
            yield f"commit \"{subject}\": {len(subject)} characters; at most 72"
        if not re.match(r"[a-z0-9][a-z0-9_./-]*: [a-z]", subject):
            yield f"commit \"{subject}\": write `area: imperative summary`"


def subjects_of(root):
    """The subjects to check; none, and why, where the history does not reach back."""
    known = subprocess.run(["git", "-C", root, "cat-file", "-e", LAST_UNCHECKED + "^{commit}"], capture_output=True)
    if known.returncode != 0:
        print(f"skipped: commit subjects: {LAST_UNCHECKED} is not in this clone")
        return []
    return subprocess.run(["git", "-C", root, "log", "--format=%s", LAST_UNCHECKED + "..HEAD"], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def self_test():
    refused = [
        ("a.h", "// Nobody waits.\n", "Nobody"), ("b.cc", "int a;  // who holds it\n", "who"), ("c.md", "He waits.\n", "He"),
        ("d.h", "int WhoHolds();\n", "WhoHolds"), ("e.cc", "int members_to_come = 0;\n", "members_to_come"),
        ("f.cc", "TEST(Watch, StartsOver) {\n", "StartsOver"), ("g.md", "word " * (MAX_WORDS + 1) + "\n", "sentence of"),
        ("h.h", "// half bound\n", "partially"), ("i.py", "# built anew\n", "again"),
    ]
    fine = [
        ("a.h", "// The pod waits. `nobody` is quoted.\nint held = 0;\n"), ("b.cc", "TEST(Watch, SlowReader_ReceivesResync) {\n"),
        ("c.md", "```\nwho am i\n```\n\n| who |\n"), ("d.cc", "const char* text = \"nobody\";\n"), ("e.cc", "int Whole = 0;\n"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for cases, expect in ((refused, 1), (fine, 0)):
            for name, text, *part in cases:
                (root / name).write_text(text)
                found = list(violations(root, [Path(name)]))
                if len(found) != expect or (part and part[0] not in found[0]):
                    print(f"self-test: {name}: {text[:50]!r}: found {found}")
                    return 1
    for subject, expect in (("state: add a plan", 0), ("Add a plan", 1), ("state: " + "a" * 80, 1), ("What a review found", 1)):
        if len(list(commit_violations([subject]))) != expect:
            print(f"self-test: {subject!r}")
            return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:2] == ["--subject"]:
        found = list(commit_violations(Path(sys.argv[2]).read_text().splitlines()[:1]))
        print("\n".join(found))
        return 1 if found else 0
    root, folders = Path(sys.argv[1]), tuple(sys.argv[2:])
    listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = [Path(f) for f in listing.stdout.splitlines() if f.startswith(folders or ("",)) and (root / f).is_file()]
    if not files:
        print("no file was found: nothing was checked")
        return 1
    found = list(violations(root, files))
    if not folders:
        found += commit_violations(subjects_of(root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
