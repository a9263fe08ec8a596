#!/usr/bin/env python3
"""The picture of the libraries in docs/project/architecture.md, drawn from the dependencies of the build.

  architecture.py               print the picture
  architecture.py --check FILE  fail if the picture in FILE differs, or if FILE names what the tree does not have
  architecture.py --write FILE  put the current picture into FILE
"""
import functools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["clients", "service", "k8s-extender", "state", "support"]
BEGIN, END = "<!-- picture: tools/architecture.py -->", "<!-- end of picture -->"
WIDTH = 118
CALL = re.compile(r"\b(muster_library|muster_room|add_library|add_executable|target_link_libraries)\((\w+)\s*([^)]*)\)")


def read_libraries():
    """{library: (folder, subfolders of its sources, what it links, whether it is a program)}"""
    out = {}
    for folder in FOLDERS:
        text = re.sub(r"#.*", "", (ROOT / folder / "CMakeLists.txt").read_text())
        for kind, library, rest in CALL.findall(text):
            _, parts, links, _ = out.setdefault(library, (folder, set(), set(), kind == "add_executable"))
            sources, _, deps = ("", "", rest) if kind == "target_link_libraries" else rest.partition("DEPS")
            parts.update(path.split("/")[0] + "/" for path in sources.split() if "/" in path)
            links.update(deps.split())
    return out


def draw(libraries):
    links = {library: entry[2] & libraries.keys() for library, entry in libraries.items()}
    below = functools.cache(lambda of: links[of].union(*map(below, links[of])))  # also what they link
    layer = functools.cache(lambda of: 1 + max(map(layer, links[of]), default=-1))

    def name(library):
        return f"[{library}]" if libraries[library][3] else library.removeprefix("muster_")

    def cell(library):
        parts = sorted(libraries[library][1])
        where = "" if libraries[library][3] or parts in ([], [name(library) + "/"]) else f" ({' '.join(parts)})"
        implied = set().union(*map(below, links[library]))
        direct = sorted(map(name, links[library] - implied))
        return name(library) + where + (" -> " + " ".join(direct) if direct else "")

    lines = []
    for folder in FOLDERS:
        lines.append(f"---- {folder}/ ".ljust(WIDTH, "-"))
        own = sorted((library for library in libraries if libraries[library][0] == folder), key=name)
        for number in sorted(set(map(layer, own)), reverse=True):
            lines.append(f"{number:3}  " + "   ".join(cell(library) for library in own if layer(library) == number))
        parts = {path.parent for path in (ROOT / folder).glob("*/*.h")}
        headers = {part.name + "/" for part in parts if not any(part.glob("*.cc"))}
        lines += [f"     headers only: {' '.join(sorted(headers))}"] if headers else []
    return "\n".join(lines)


def missing_names(text):
    """What the page names and the tree does not have: `folder/file.cc::Name` and `Class::Name`."""
    sources = {path: path.read_text() for folder in [*FOLDERS, "tests"] for path in sorted((ROOT / folder).rglob("*"))
               if path.suffix in (".h", ".cc")}
    out = []
    for path, name in re.findall(r"`((?:[\w-]+/)+\w+\.(?:cc|h))(?:::(\w+))?", text):
        found = [body for file, body in sources.items() if file in (ROOT / path, ROOT / "state" / path)]
        if not found:
            out.append(f"there is no {path}")
        elif name and not re.search(rf"\b{name}\b", found[0]):
            out.append(f"{path} has no {name}")
    for owner, name in re.findall(r"`(\w+)::(\w+)", text):
        if not any(re.search(rf"\b{owner}\b", body) and re.search(rf"\b{name}\b", body) for body in sources.values()):
            out.append(f"no file has {owner}::{name}")
    return sorted(set(out))


def main():
    picture = draw(read_libraries())
    if len(sys.argv) == 1:
        print(picture)
        return 0
    path = Path(sys.argv[2])
    text = path.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    current = f"{before}{BEGIN}\n```text\n{picture}\n```\n{END}{after}"
    if not begin or not end:
        print(f"{path}: there is no block from \"{BEGIN}\" to \"{END}\"")
        return 1
    if sys.argv[1] == "--write":
        path.write_text(current)
        return 0
    if current != text:
        print(f"{path}: the picture differs from the build; run tools/architecture.py --write {path}")
        return 1
    problems = missing_names(text)
    for problem in problems:
        print(f"{path}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
