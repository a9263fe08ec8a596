"""Finds what could be mutated, by libclang: only in bodies of functions, never what the compiler evaluates.

Left alone: constexpr functions and variables, `if constexpr`, static_assert, template arguments, case labels, what
stands in a macro's call (MUSTER_CHECK: a weaker check proves nothing), the increment of a for loop (it would only hang),
functions that do not return (they only report), calls that reserve memory, whether `a != b ? a < b : ...` has < or <=,
and lines with the comment `// short cut`, or functions that begin with it: without what stands there, everything takes
longer or needs more memory, and nothing else changes.
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
COMPARISONS = {"<": ["<=", ">"], ">": [">=", "<"], "<=": ["<", ">="], ">=": [">", "<="], "==": ["!="], "!=": ["=="]}
SAME_IF_DIFFERENT = ({"<", "<="}, {">", ">="})  # for operands that were just found to differ
ARITHMETIC = {"+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="]}
LOGIC = {"&&": "||", "||": "&&"}
STEPS = {"++": "--", "--": "++"}
NEGATED = "condition negated"
CHANGE_NOTHING = {"reserve", "shrink_to_fit"}
SHORT_CUT = "// short cut"
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

    def __init__(self, unit, cindex, scope):
        self.scope = scope
        self.kinds = cindex.CursorKind
        self.named_kinds = {self.kinds.FUNCTION_DECL, self.kinds.CXX_METHOD, self.kinds.FUNCTION_TEMPLATE,
                            self.kinds.CONSTRUCTOR, self.kinds.FIELD_DECL, self.kinds.ENUM_CONSTANT_DECL, self.kinds.VAR_DECL}
        self.class_kinds = {self.kinds.CLASS_DECL, self.kinds.STRUCT_DECL, self.kinds.CLASS_TEMPLATE, self.kinds.ENUM_DECL,
                            self.kinds.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION}
        self.number_kinds = {k for k in vars(cindex.TypeKind).values() if isinstance(k, cindex.TypeKind)
                             and cindex.TypeKind.CHAR_U.value <= k.value <= cindex.TypeKind.LONGDOUBLE.value}
        self.bool_kind = cindex.TypeKind.BOOL
        self.indirect_kinds = {cindex.TypeKind.POINTER, cindex.TypeKind.LVALUEREFERENCE, cindex.TypeKind.RVALUEREFERENCE}
        self.found = set()
        self.texts = {}
        self.files = {}
        self.names = {}
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
        if file.name not in self.files:
            name = str(Path(file.name).resolve().relative_to(ROOT))
            self.files[file.name] = name if name.startswith(self.scope) else None
        return self.files[file.name]

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

    def qualified(self, cursor):
        """Class::Name; classes only, no namespaces: a function that moves to another one keeps its name."""
        name, parent = cursor.spelling, cursor.semantic_parent
        while parent is not None and parent.kind in self.class_kinds:  # a lambda's class has no name
            name = f"{parent.spelling}::{name}" if parent.spelling else name
            parent = parent.semantic_parent
        return name

    def signature(self, cursor):
        """Class::Name(FirstParameter): the first parameter's type, without const, & and *, tells overloads apart."""
        first = next((c for c in cursor.get_children() if c.kind == self.kinds.PARM_DECL), None)
        type_name = ""
        if first is not None:
            type = first.type
            while type.kind in self.indirect_kinds:
                type = type.get_pointee()
            declared = type.get_declaration()
            type_name = self.qualified(declared) if declared.spelling else re.sub(r"\bconst\b|<.*>|\s", "", type.spelling)
        return re.sub(r"<.*>", "", self.qualified(cursor)) + f"({type_name})"

    def names_in(self, cursor):
        """What the node uses: functions, fields and constants, locals left out."""
        key = (self.file, *self.extent(cursor))
        if key not in self.names:
            found = set()
            for node in cursor.walk_preorder():
                if node.kind in (self.kinds.MEMBER_REF_EXPR, self.kinds.DECL_REF_EXPR, self.kinds.OVERLOADED_DECL_REF):
                    used = node.referenced
                    if used is None or used.kind not in self.named_kinds:
                        found.add(node.spelling if used is None or used.kind == self.kinds.OVERLOADED_DECL_REF else "")
                    elif used.kind != self.kinds.VAR_DECL or not self.is_local(used):
                        found.add(self.qualified(used))
            self.names[key] = " ".join(sorted(found - {""}))
        return self.names[key]

    def is_local(self, variable):
        parent = variable.semantic_parent
        return parent is not None and parent.kind in (self.kinds.FUNCTION_DECL, self.kinds.CXX_METHOD, self.kinds.CONSTRUCTOR,
                                                      self.kinds.DESTRUCTOR, self.kinds.FUNCTION_TEMPLATE)

    def add(self, kind, span, edit, put, node, form="expression"):
        """`node` says which names the candidate goes by."""
        # A statement ends behind its macro, with a semicolon.
        if any(start <= span[0] and span[1] - (form == "statement") <= end for start, end in self.macros.get(self.file, [])):
            return
        line_end = self.text.find("\n", edit[0])
        if SHORT_CUT in self.text[self.text.rfind("\n", 0, edit[0]) + 1:line_end]:
            return
        self.found.add(Candidate(self.file, *span, *edit, put, kind, form, self.function, self.names_in(node)))

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
            first_line = self.source(body).split("\n", 1)[0]
            if not re.search(r"\b(constexpr|consteval|noreturn)\b", head) and SHORT_CUT not in first_line:
                self.function = self.signature(cursor)
                self.visit(body, None)

    # Statements and expressions; `whole` is the outermost expression around the cursor.
    def visit(self, cursor, whole):
        kinds, kind = self.kinds, cursor.kind
        whole = (whole or cursor) if kind.is_expression() else None
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
            self.add("boolean literal", span, span, "false" if self.source(cursor) == "true" else "true", whole)
        elif kind == kinds.INTEGER_LITERAL:
            self.integer(cursor, whole)
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
            self.visit(child, whole)

    def operator(self, cursor, children):
        if len(children) < 2:
            return
        left, right = self.extent(children[0]), self.extent(children[-1])
        between = self.text[left[1]:right[0]]
        sign = between.strip()
        span = self.extent(cursor)
        # Only where the operands surround the operator and there is nothing else (no comment, no macro).
        if not sign or left[0] != span[0] or right[1] != span[1]:
            return
        at = left[1] + between.index(sign)
        edit = (at, at + len(sign))
        if sign in LOGIC:  # what bound tighter must not come apart
            sides = [f"({side})" if "&&" in side or "||" in side else side
                     for side in (self.text[left[0]:left[1]], self.text[right[0]:right[1]])]
            self.add("logic", span, span, "({0} {2} {1})".format(*sides, LOGIC[sign]), cursor)
            return
        # Text and pointers have only one of the two.
        numbers = all(c.type.get_canonical().kind in self.number_kinds for c in (children[0], children[-1]))
        differ = f"{self.text[left[0]:left[1]]} != {self.text[right[0]:right[1]]}"
        known_to_differ = self.before(cursor).endswith((f"{differ} ?", f"if ({differ}) return"))
        for put in COMPARISONS.get(sign, []):
            if not (known_to_differ and {sign, put} in SAME_IF_DIFFERENT):
                self.add("comparison", span, edit, put, cursor)
        for put in ARITHMETIC.get(sign, []) if numbers else []:
            self.add("arithmetic", span, edit, put, cursor)

    def step(self, cursor):
        span, source = self.extent(cursor), self.source(cursor)
        if cursor.type.get_canonical().kind not in self.number_kinds:
            return
        for sign, put in STEPS.items():
            if source.startswith(sign):
                self.add("arithmetic", span, (span[0], span[0] + 2), put, cursor)
            elif source.endswith(sign):
                self.add("arithmetic", span, (span[1] - 2, span[1]), put, cursor)

    def min_max(self, cursor):
        span = self.extent(cursor)
        name = "std::" + cursor.spelling
        if self.source(cursor).startswith(name):
            self.add("min/max", span, (span[0], span[0] + len(name)), "std::max" if name == "std::min" else "std::min", cursor)

    def integer(self, cursor, whole):
        span, source = self.extent(cursor), self.source(cursor)
        if INTEGER.fullmatch(source) and not re.match(r"\w", self.text[span[1]:span[1] + 1]):
            for sign in "+-":
                self.add("integer", span, span, f"({source} {sign} 1)", whole)

    def negated(self, condition):
        span = self.extent(condition)
        self.add(NEGATED, span, span, f"!({self.source(condition)})", condition, "condition")

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
        self.add("statement removed", span, span, "", expression, "statement")

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
            condition = next(c for c in parts if c.kind.is_expression())
            self.add("early exit removed", span, span, "", condition, "statement")


def found_in(job):
    """The candidates of one entry of compile_commands.json, and what libclang could not read."""
    file, text, arguments, scope = job
    cindex = clang()
    options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    unit = cindex.Index.create().parse(file, args=arguments, unsaved_files=[(file, text)], options=options)
    errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    return Finder(unit, cindex, scope).found, errors


def jobs_of(commands, copy, scope, wanted):
    """Parses the tree itself, as its copy is compiled: file by file, or in the batches that CMake makes of them."""
    resources = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True).stdout.strip()
    for entry in commands:
        file = Path(str(Path(entry["file"]).resolve()).replace(f"{copy}/", f"{ROOT}/"))
        if not file.exists():
            continue  # generated, and not yet
        text = file.read_text("latin-1").replace(f"{copy}/", f"{ROOT}/")
        sources = re.findall(r'^#include "([^"]+\.cc)"', text, re.M) or [str(file)]
        folders = tuple(f"{ROOT}/{folder}" for folder in scope)
        if not any(source.startswith(folders) and (wanted is None or source in wanted) for source in sources):
            continue
        words = shlex.split(entry["command"])[1:]
        kept = [w for w in words if re.match(r"-(I|D|std=)", w)]
        system = [f"-isystem{after}" for word, after in zip(words, words[1:]) if word == "-isystem"]
        arguments = [w.replace(f"-I{copy}", f"-I{ROOT}") if w == f"-I{copy}" else w for w in kept]
        yield str(file), text, arguments + system + ["-w", "-resource-dir", resources], scope


def find(out, copy, scope, processes, wanted=None):
    """Every candidate in the folders `scope`, sorted. With `wanted`, paths of sources: only of these and of what is read
    together with them. `out` has the compile_commands.json of `copy`."""
    clang()
    jobs = sorted(jobs_of(json.loads((out / "compile_commands.json").read_text()), copy, scope, wanted))
    found = {}
    with multiprocessing.Pool(processes) as pool:
        for candidates, errors in pool.imap_unordered(found_in, jobs):
            if errors:
                sys.exit("libclang cannot read the tree:\n" + "\n".join(errors[:5]))
            # A header is read by many, a template with other names each time: one of them.
            for c in candidates:
                key = c._replace(names="")
                found[key] = min(found.get(key, c), c)
    # To negate what is turned anyway would be the same mutant twice.
    turned = {(c.file, c.start, c.end) for c in found if c.put in ("==", "!=", "true", "false")}
    return without_crossing(sorted(c for key, c in found.items() if c.kind != NEGATED or (c.file, c.start, c.end) not in turned))
