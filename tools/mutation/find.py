"""Finds what could be mutated, by libclang: only in bodies of functions, never what the compiler evaluates.

Left alone: constexpr functions and variables, `if constexpr`, static_assert, template arguments, case labels, what
stands in a macro's call (MUSTER_CHECK: a weaker check proves nothing), the increment of a for loop (it would only hang),
functions that do not return (they only report), and calls that reserve memory.
"""
import json
import multiprocessing
import re
import shlex
import subprocess
import sys
from pathlib import Path

from .candidate import Candidate, without_crossing

ROOT = Path(__file__).resolve().parent.parent.parent
SCOPE = ("state/", "service/engine/")

COMPARISONS = {"<": ["<=", ">"], ">": [">=", "<"], "<=": ["<", ">="], ">=": [">", "<="], "==": ["!="], "!=": ["=="]}
ARITHMETIC = {"+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="]}
LOGIC = {"&&": "||", "||": "&&"}
STEPS = {"++": "--", "--": "++"}
CHANGE_NOTHING = {"reserve", "shrink_to_fit"}
INTEGER = re.compile(r"(0[xX][0-9a-fA-F']+|[0-9][0-9']*)[uUlLzZ]*")


def clang():
    """libclang's bindings; Debian's are pure Python and serve any interpreter."""
    debian = "/usr/lib/python3/dist-packages"
    if debian not in sys.path:
        sys.path.append(debian)
    try:
        import clang.cindex
    except ImportError:
        subprocess.run([ROOT / "tools/install-deps.sh", "--mutants"], check=True)
        import clang.cindex
    return clang.cindex


class Finder:
    """Walks one translation unit."""

    def __init__(self, unit, cindex):
        self.kinds = cindex.CursorKind
        self.number_kinds = {k for k in vars(cindex.TypeKind).values() if isinstance(k, cindex.TypeKind)
                             and cindex.TypeKind.CHAR_U.value <= k.value <= cindex.TypeKind.LONGDOUBLE.value}
        self.bool_kind = cindex.TypeKind.BOOL
        self.found = set()
        self.texts = {}
        self.macros = {}
        tops = [(cursor, self.file_of(cursor)) for cursor in unit.cursor.get_children()]
        tops = [(cursor, file) for cursor, file in tops if file is not None]
        for cursor, file in tops:
            if cursor.kind == self.kinds.MACRO_INSTANTIATION:
                self.macros.setdefault(file, []).append(self.extent(cursor))
        for cursor, file in tops:
            if not cursor.kind.is_preprocessing():
                self.file, self.text = file, self.text_of(file)
                self.visit_declaration(cursor)

    def file_of(self, cursor):
        file = cursor.location.file
        if file is None or not file.name.startswith(str(ROOT)):
            return None
        name = str(Path(file.name).resolve().relative_to(ROOT))
        return name if name.startswith(SCOPE) else None

    def text_of(self, file):
        if file not in self.texts:
            self.texts[file] = (ROOT / file).read_text("latin-1")
        return self.texts[file]

    @staticmethod
    def extent(cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def source(self, cursor):
        start, end = self.extent(cursor)
        return self.text[start:end]

    def before(self, cursor):
        start = self.extent(cursor)[0]
        return self.text[max(0, start - 200):start].rstrip()

    def after(self, cursor):
        end = self.extent(cursor)[1]
        return self.text[end:end + 200].lstrip()

    def add(self, kind, span, edit, put, form="expression"):
        if any(start <= span[0] and span[1] <= end for start, end in self.macros.get(self.file, [])):
            return
        self.found.add(Candidate(self.file, *span, *edit, put, kind, form))

    # Declarations, down to the bodies of functions.
    def visit_declaration(self, cursor):
        body = None
        for child in cursor.get_children():
            if child.kind == self.kinds.COMPOUND_STMT:
                body = child
            elif child.kind.is_declaration():
                self.visit_declaration(child)
        if body is not None and self.source(body).startswith("{"):  # not `= default`
            head = self.text[self.extent(cursor)[0]:self.extent(body)[0]]
            if not re.search(r"\b(constexpr|consteval|noreturn)\b", head):
                self.visit(body)

    # Statements and expressions.
    def visit(self, cursor):
        kinds, kind = self.kinds, cursor.kind
        children = list(cursor.get_children())
        if kind in (kinds.STATIC_ASSERT, kinds.TYPE_REF, kinds.TEMPLATE_REF, kinds.DECL_REF_EXPR, kinds.OVERLOADED_DECL_REF):
            return  # what is below is arguments of templates
        if kind == kinds.DECL_STMT and re.match(r"(static\s+)?constexpr\b", self.source(cursor)):
            return
        if kind == kinds.MEMBER_REF_EXPR:
            children = [c for c in children if self.extent(c)[0] < cursor.location.offset]
        elif kind == kinds.CASE_STMT:
            children = children[1:]
        elif kind == kinds.FOR_STMT:
            children = [c for c in children if not (self.before(c).endswith(";") and self.after(c).startswith(")"))]
        elif kind == kinds.VAR_DECL:
            children = [c for c in children if not self.before(c).endswith("[") and not self.before(c).endswith("<")]
        elif kind in (kinds.BINARY_OPERATOR, kinds.COMPOUND_ASSIGNMENT_OPERATOR) or (
                kind == kinds.CALL_EXPR and cursor.spelling.startswith("operator")):
            self.operator(cursor, children)
        elif kind == kinds.UNARY_OPERATOR:
            self.step(cursor)
        elif kind == kinds.CALL_EXPR and cursor.spelling in ("min", "max"):
            self.min_max(cursor)
        elif kind == kinds.CXX_BOOL_LITERAL_EXPR and self.source(cursor) in ("true", "false"):
            span = self.extent(cursor)
            self.add("boolean literal", span, span, "false" if self.source(cursor) == "true" else "true")
        elif kind == kinds.INTEGER_LITERAL:
            self.integer(cursor)
        elif kind in (kinds.IF_STMT, kinds.WHILE_STMT):
            head = self.text[self.extent(cursor)[0]:self.extent(cursor)[0] + 20]
            condition = next((c for c in children if c.kind.is_expression() and self.after(c).startswith(")")
                              and self.before(c).endswith(("(", ";"))), None)
            if re.match(r"if\s+constexpr\b", head):
                children = [c for c in children if c != condition]
            elif condition is not None:
                self.negated(condition)
        elif kind == kinds.CONDITIONAL_OPERATOR and self.after(children[0]).startswith("?"):
            self.negated(children[0])
        elif kind == kinds.RETURN_STMT and children and children[0].type.get_canonical().kind == self.bool_kind:
            self.negated(children[0])
        if kind == kinds.COMPOUND_STMT:
            for child, following in zip(children, children[1:]):
                self.early_exit(child)
        in_body = kind in (kinds.COMPOUND_STMT, kinds.IF_STMT, kinds.WHILE_STMT, kinds.FOR_STMT, kinds.CXX_FOR_RANGE_STMT,
                           kinds.CASE_STMT, kinds.DEFAULT_STMT)
        for child in children:
            if in_body and child.kind.is_expression() and (
                    kind == kinds.COMPOUND_STMT or re.search(r"(\)|\belse|:)$", self.before(child))):
                self.statement(child)
            self.visit(child)

    def operator(self, cursor, children):
        if len(children) < 2:
            return
        left, right = self.extent(children[0]), self.extent(children[-1])
        between = self.text[left[1]:right[0]]
        sign = between.strip()
        span = self.extent(cursor)
        # Only where the operands surround the operator and nothing else stands there (no comment, no macro).
        if not sign or left[0] != span[0] or right[1] != span[1]:
            return
        at = left[1] + between.index(sign)
        edit = (at, at + len(sign))
        if sign in LOGIC:  # what bound tighter must not come apart
            sides = [f"({side})" if "&&" in side or "||" in side else side
                     for side in (self.text[left[0]:left[1]], self.text[right[0]:right[1]])]
            self.add("logic", span, span, "({0} {2} {1})".format(*sides, LOGIC[sign]))
            return
        # Text and pointers have only one of the two.
        numbers = all(c.type.get_canonical().kind in self.number_kinds for c in (children[0], children[-1]))
        for put in COMPARISONS.get(sign, []):
            self.add("comparison", span, edit, put)
        for put in ARITHMETIC.get(sign, []) if numbers else []:
            self.add("arithmetic", span, edit, put)

    def step(self, cursor):
        span, source = self.extent(cursor), self.source(cursor)
        if cursor.type.get_canonical().kind not in self.number_kinds:
            return
        for sign, put in STEPS.items():
            if source.startswith(sign):
                self.add("arithmetic", span, (span[0], span[0] + 2), put)
            elif source.endswith(sign):
                self.add("arithmetic", span, (span[1] - 2, span[1]), put)

    def min_max(self, cursor):
        span = self.extent(cursor)
        name = "std::" + cursor.spelling
        if self.source(cursor).startswith(name):
            self.add("min/max", span, (span[0], span[0] + len(name)), "std::max" if name == "std::min" else "std::min")

    def integer(self, cursor):
        span, source = self.extent(cursor), self.source(cursor)
        if INTEGER.fullmatch(source) and not re.match(r"\w", self.text[span[1]:span[1] + 1]):
            for sign in "+-":
                self.add("integer", span, span, f"({source} {sign} 1)")

    def negated(self, condition):
        span = self.extent(condition)
        self.add("condition", span, span, f"!({self.source(condition)})", "condition")

    def statement(self, expression):
        inner = expression
        while inner.kind == self.kinds.UNEXPOSED_EXPR:
            nested = list(inner.get_children())
            if len(nested) != 1:
                break
            inner = nested[0]
        start, end = self.extent(expression)
        to_void = re.match(r"static_cast<void>|\(void\)", self.source(expression))
        if to_void or inner.spelling in CHANGE_NOTHING or not self.after(expression).startswith(";"):
            return
        span = (start, self.text.index(";", end) + 1)
        self.add("statement", span, span, "", "statement")

    def early_exit(self, statement):
        """`if (...) return x;` before other statements: the exit is skipped."""
        parts = list(statement.get_children())
        if statement.kind != self.kinds.IF_STMT or self.before(parts[-1]).endswith("else"):
            return
        last = parts[-1]
        if last.kind == self.kinds.COMPOUND_STMT:
            last = next(reversed(list(last.get_children())), last)
        if last.kind in (self.kinds.RETURN_STMT, self.kinds.CONTINUE_STMT) and self.after(last).startswith(";"):
            span = (self.extent(last)[0], self.text.index(";", self.extent(last)[1]) + 1)
            self.add("exit", span, span, "", "statement")


def found_in(job):
    """The candidates of one entry of compile_commands.json, and what libclang could not read."""
    file, arguments = job
    cindex = clang()
    options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    unit = cindex.Index.create().parse(file, args=arguments, options=options)
    errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    return Finder(unit, cindex).found, errors


def jobs_of(commands, copy):
    """Parses the tree itself, as its copy is compiled."""
    resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True).stdout.strip()
    for entry in commands:
        file = Path(entry["file"]).resolve()
        if not file.is_relative_to(copy) or not str(file.relative_to(copy)).startswith(SCOPE):
            continue
        words = shlex.split(entry["command"])[1:]
        kept = [w for w in words if re.match(r"-(I|D|std=)", w)]
        system = [f"-isystem{after}" for word, after in zip(words, words[1:]) if word == "-isystem"]
        arguments = [w.replace(str(copy), str(ROOT)) for w in kept] + system + ["-w", "-resource-dir", resources]
        yield str(ROOT / file.relative_to(copy)), arguments


def find(out, copy, processes):
    """Every candidate of the tree, sorted. `out` has the compile_commands.json of `copy`."""
    clang()
    jobs = sorted(jobs_of(json.loads((out / "compile_commands.json").read_text()), copy))
    found = set()
    with multiprocessing.Pool(processes) as pool:
        for candidates, errors in pool.imap_unordered(found_in, jobs):
            if errors:
                sys.exit("libclang cannot read the tree:\n" + "\n".join(errors[:5]))
            found |= candidates
    # To negate what is turned anyway would be the same mutant twice.
    turned = {(c.file, c.start, c.end) for c in found if c.put in ("==", "!=", "true", "false")}
    return without_crossing(sorted(c for c in found if c.kind != "condition" or (c.file, c.start, c.end) not in turned))
