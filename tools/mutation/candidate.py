"""One possible mutant: what it changes, how it is shown, and how it is written behind its switch."""
import re
from typing import NamedTuple

# A comment, or a string or character literal, which may look like one.
COMMENT_OR_LITERAL = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
DROPPED = "(dropped)"


def on_one_line(text):
    """The code of `text` without its comments and line breaks: what is put in must not move the lines below."""
    code = COMMENT_OR_LITERAL.sub(lambda found: " " if found[0].startswith("/") else found[0], text)
    return re.sub(r"\s*\n\s*", " ", code).strip()


def shown(text):
    """Files are read as Latin-1, so that an offset is a byte; people read them as UTF-8."""
    return text.encode("latin-1").decode("utf-8", "replace")


class Candidate(NamedTuple):
    """The text [start, end) of `file` is a whole node of the syntax tree; in it, [edit_start, edit_end) would become
    `put`. `form` says how to switch between the two: an expression, a condition or a statement. `function` encloses it,
    as `Class::Function(FirstParameter)`; `names` are the functions, fields and constants that it uses, as `Class::Name`,
    separated by spaces."""
    file: str
    start: int
    end: int
    edit_start: int
    edit_end: int
    put: str
    kind: str
    form: str
    function: str
    names: str

    def line(self, text):
        return text.count("\n", 0, self.edit_start) + 1

    def spans_line(self, line, text):
        return text.count("\n", 0, self.start) + 1 <= line <= text.count("\n", 0, self.end) + 1

    def before_and_after(self, text):
        """The line as it stands and as it would be: how a mutant is shown, and recognised when lines move."""
        first = text.rfind("\n", 0, self.edit_start) + 1
        last = text.find("\n", self.edit_end)
        last = len(text) if last < 0 else last
        after = text[first:self.edit_start] + (self.put or DROPPED) + text[self.edit_end:last]
        return shown(on_one_line(text[first:last])), shown(on_one_line(after))

    def insertions(self, id, text):
        """What is written before and after the node; nodes nest, and so do these."""
        asked = f"muster_mutant({id})"
        if self.form == "statement":
            return f"{{ if (!{asked}) {{ ", " } }"
        mutated = on_one_line(text[self.start:self.edit_start] + self.put + text[self.edit_end:self.end])
        if self.form == "condition":
            return f"({asked} ? {mutated} : static_cast<bool>(", "))"
        return f"({asked} ? ({mutated}) : (", "))"


HEAD = '#include "tools/mutation/switch.h"\n#line 1\n'


def rewritten(text, mutants):
    """`text` with every one of {id: candidate} written behind its switch, lines where they were; and what was put in, as
    (line, first column, column behind it, id), for whoever has to say which mutant the compiler means."""
    places = []  # (offset, order among those of one offset, inserted)
    for id, mutant in mutants.items():
        before, after = mutant.insertions(id, text)
        length = mutant.end - mutant.start
        # Of those that end here the inner closes first; then, of those that start here, the outer opens first.
        places.append((mutant.end, 0, length, id, id, after))
        places.append((mutant.start, 1, -length, -id, id, before))
    out, inserted = [HEAD], []
    at, line, column = 0, 1, 1
    for offset, _, _, _, id, put in sorted(places):
        plain = text[at:offset]
        line += plain.count("\n")
        column = len(plain) - plain.rfind("\n") if "\n" in plain else column + len(plain)
        inserted.append((line, column, column + len(put), id))
        column += len(put)
        out += [plain, put]
        at = offset
    return "".join(out) + text[at:], inserted


def without_crossing(candidates):
    """Leaves out what is neither apart from another nor inside it: the two could not both be written."""
    kept, open_ends = [], []
    for each in sorted(candidates, key=lambda c: (c.file, c.start, -c.end)):
        while open_ends and open_ends[-1] <= (each.file, each.start):
            open_ends.pop()
        if not open_ends or (each.file, each.end) <= open_ends[-1]:
            kept.append(each)
            open_ends.append((each.file, each.end))
    return kept
