"""Names one candidate so that the name survives reformatting, and renames of locals: by its function, its kind, and its
number there or something that it uses. The lines of tools/planted_bugs.tsv are such names."""
import re
from collections import defaultdict

ANCHOR = re.compile(r"(?P<name>[^\s#]\S*)?\s*(?:#(?P<number>[1-9]\d*))?")


def edit_of(candidate):
    """The kind, and what becomes of the text where the kind alone does not say it: `comparison <=`, `integer +1`."""
    if candidate.kind == "comparison":
        return f"comparison {candidate.put}"
    if candidate.kind == "integer":
        return "integer " + candidate.put[-4:-1].replace(" ", "")
    return candidate.kind


class Places:
    """The candidates of a tree by function and edit, in the order of the text."""

    def __init__(self, candidates):
        self.functions = defaultdict(lambda: defaultdict(list))  # {signature: {file: [candidate]}}
        self.signatures = defaultdict(set)  # {Class::Function: {Class::Function(Parameter)}}
        for candidate in candidates:
            self.functions[candidate.function][candidate.file].append(candidate)
            self.signatures[candidate.function.split("(")[0]].add(candidate.function)

    def within(self, function):
        """{edit: [candidate]} of a function. The first parameter's type need not be given where there is one overload.
        Raises LookupError."""
        signatures = [function] if function in self.functions else sorted(self.signatures[function])
        if not signatures:
            raise LookupError(f"no function {function}, or nothing in it that can be changed")
        if len(signatures) > 1:
            raise LookupError(f"{function} is one of: {' '.join(signatures)}")
        files = self.functions[signatures[0]]
        if len(files) > 1:
            raise LookupError(f"{function} is in more than one file: {' '.join(sorted(files))}")
        by_edit = defaultdict(list)
        for candidate in sorted(next(iter(files.values())), key=lambda c: (c.edit_start, c.start)):
            by_edit[edit_of(candidate)].append(candidate)
        return by_edit

    def find(self, function, edit, anchor):
        """The one candidate. `anchor`: `#2` the second of this edit in the function; `Gangs::Touch` the one that uses it;
        `Gangs::Touch #2` the second that uses it. Raises LookupError."""
        parsed = ANCHOR.fullmatch(anchor)
        if not parsed or not anchor:
            raise LookupError(f"the anchor {anchor!r} is neither a number (#2), a name, nor a name and a number")
        by_edit = self.within(function)
        if edit not in by_edit:
            raise LookupError(f"no {edit} in {function}; there is: {', '.join(sorted(by_edit))}")
        found = [c for c in by_edit[edit] if not parsed["name"] or parsed["name"] in c.names.split()]
        if parsed["number"]:
            found = found[int(parsed["number"]) - 1:int(parsed["number"])]
        if len(found) != 1:
            raise LookupError(f"{len(found) or 'no'} places for {edit}, {anchor} in {function}")
        return found[0]
