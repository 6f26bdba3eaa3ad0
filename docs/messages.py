"""List the messages of the code that users read: refusals, events, reasons, receipts and the notes of commands.

`collect` reads the source of `corral/`. A message is a text after a code (`Conflict("job-over", "…")`,
`Fact("job.retried", …)`), a text that is given to one of `CARRIERS`, or any other complete sentence that is neither
documentation nor a log line.
Placeholders are shown by name: `{job.name}`. `[…]` is a part that may be missing, and `(a / b)` stands for one of both.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1] / "corral"
FOREIGN: Final = re.compile(r"compat/|openpai|hived|frameworkcontroller|frameworklauncher|alnair|yarn|runtime/")
"""Paths whose texts follow another program's, or that print to a task's log and not to a user of the API."""
SILENT: Final = re.compile(
    r"client/schema\.py|cli/command_table\.py|model/metrics/|frameworks/(?!registry)|spec/crd\.py|spec/schema\.py"
    r"|monitor/series/database\.py"
)
"""Modules whose texts are on other reference pages, or are command lines of tasks or SQL."""
CODE: Final = re.compile(r"[a-z][a-z0-9]*([-.][a-z0-9]+)*")
CARRIERS: Final = {
    "BadParameter",
    "Change",
    "ClickException",
    "Condition",
    "DependencyFailed",
    "Eviction",
    "InvalidInput",
    "NothingToDo",
    "PreemptionTerms",
    "Problem",
    "SpecError",
    "UsageError",
    "classify",
    "echo",
    "never_ran",
    "note",
    "problem",
    "refusal",
    "refuse",
    "say",
    "tell",
    "warn_user",
}
_UNSEEN: Final = {
    "AssertionError",
    "Field",
    "Path",
    "Query",
    "Rule",
    "RuntimeError",
    "TypeError",
    "ValueError",
    "argument",
    "command",
    "Popen",
    "ask",
    "check_output",
    "compile",
    "critical",
    "debug",
    "error",
    "exception",
    "execute",
    "info",
    "log",
    "open",
    "option",
    "run",
    "scalar",
    "text",
    "warn",
    "warning",
}
"""Callees whose texts are documentation, log lines, SQL or faults of the program itself."""
_KEYS: Final = {"content-security-policy", "description", "permissions-policy"}
"""Keys of mappings that look like codes."""
_WRAPPERS: Final = {
    "join",
    "sorted",
    "str",
    "repr",
    "shorten",
    "describe",
    "len",
    "spoken",
    "sentence",
    "plain",
    "round",
}
_WORD: Final = re.compile(r"[A-Za-z][a-z']+")


class Message(NamedTuple):
    """One message: the module that holds it, its code ("" where it has none) and its text."""

    module: str
    code: str
    text: str

    @property
    def package(self) -> str:
        """The package or module directly below `corral/`."""
        return self.module.partition("/")[0].removesuffix(".py")


@functools.cache
def of_the_code() -> list[Message]:
    """Every message of `corral/`: reading it takes seconds, so it is read once."""
    return collect(ROOT)


def collect(root: Path) -> list[Message]:
    """Every message below `root`, without duplicates, by package, code and text."""
    found: set[Message] = set()
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root).as_posix()
        if not FOREIGN.search(module) and not SILENT.match(module):
            found.update(_Module(module, ast.parse(path.read_text())).messages())
    return sorted(found, key=lambda each: (each.package, each.code == "", each.code, each.text, each.module))


class _Module:
    """The texts of one module."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        self.inlined: set[ast.AST] = set()
        """Texts that are shown as a part of another one."""

    def messages(self) -> list[Message]:
        """The messages of this module, without those that are parts of others."""
        found = [(node, message) for node in ast.walk(self.tree) for message in self._read(node)]
        return [message for node, message in found if node not in self.inlined]

    def _read(self, node: ast.AST) -> Iterator[Message]:
        if not _is_text(node) or self._is_part(node) or self._is_documentation(node):
            return
        carrier, code = self._context(node)
        if carrier in _UNSEEN or code in _KEYS:
            return
        text = " ".join(self._shown(node).split())
        if len(_WORD.findall(re.sub(r"\{[^{}]*\}", "", text))) < 2 or not re.search(r"[ {]", text):
            return
        if (carrier and code) or carrier in CARRIERS or _is_sentence(text) or (code and text.count(" ") > 3):
            yield Message(self.name, code, text)

    def _is_part(self, node: ast.AST) -> bool:
        """Whether the text belongs to a larger one: a formatted string or a sum of strings."""
        above = self.parents.get(node)
        while isinstance(above, ast.FormattedValue | ast.IfExp | ast.BinOp | ast.JoinedStr):
            if isinstance(above, ast.JoinedStr) or (isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add)):
                return True
            above = self.parents.get(above)
        return False

    def _is_documentation(self, node: ast.AST) -> bool:
        above = self.parents.get(node)
        if isinstance(above, ast.Expr):
            return True
        if isinstance(above, ast.Assign | ast.AnnAssign | ast.Dict) and isinstance(self._scope(node), ast.Module):
            return self.name.startswith("api/")
        return isinstance(above, ast.keyword) and above.arg in (
            "description",
            "help",
            "epilog",
            "summary",
            "media_type",
        )

    def _context(self, node: ast.AST) -> tuple[str, str]:
        """The callee that takes the text, and the code before it; "" where there is none."""
        below, above = node, self.parents.get(node)
        while isinstance(above, ast.IfExp | ast.BinOp | ast.keyword | ast.Starred):
            below, above = above, self.parents.get(above)
        if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
            return self._use(above, above.targets[0].id)
        if isinstance(above, ast.Call) and below is not above.func:
            return _callee(above), self._code(above.args, below)
        if isinstance(above, ast.Tuple):
            return "", self._code(above.elts, below)
        if isinstance(above, ast.Dict):
            keys = [key for key, value in zip(above.keys, above.values, strict=True) if value is below and key]
            return "", self._code([*keys], node)
        return "", ""

    def _use(self, assignment: ast.Assign, name: str) -> tuple[str, str]:
        """The callee and the code with which a variable is used after its assignment."""
        for node in ast.walk(self._scope(assignment)):
            if isinstance(node, ast.Call):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                found = next((each for each in given if isinstance(each, ast.Name) and each.id == name), None)
                if found is not None and node.lineno >= assignment.lineno:
                    return _callee(node), self._code(node.args, found)
        return "", ""

    def _code(self, before: list[ast.expr], text: ast.AST) -> str:
        """The code that is given before a text."""
        for each in before:
            if each is text:
                return ""
            value = each.value if isinstance(each, ast.Constant) else None
            if isinstance(each, ast.Name):
                value = self.constants.get(each.id, each.id.lower().replace("_", "-") if each.id.isupper() else None)
            if isinstance(value, str) and CODE.fullmatch(value):
                return value
        return ""

    def _scope(self, node: ast.AST) -> ast.AST:
        while node in self.parents and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node = self.parents[node]
        return node

    def _shown(self, node: ast.AST) -> str:
        """A text with its placeholders by name."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.JoinedStr):
            return "".join(
                self._placeholder(part.value) if isinstance(part, ast.FormattedValue) else str(part.value)
                for part in node.values
                if isinstance(part, ast.FormattedValue | ast.Constant)
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._shown(node.left) + self._shown(node.right)
        if isinstance(node, ast.IfExp):
            return _choice(self._shown(node.body), self._shown(node.orelse))
        return self._placeholder(node)

    def _placeholder(self, node: ast.AST) -> str:
        if isinstance(node, ast.IfExp) and (_is_text(node.body) or _is_text(node.orelse)):
            return self._shown(node)
        if _is_text(node):
            return self._shown(node)
        if isinstance(node, ast.Call) and _callee(node) == "counted" and len(node.args) > 1:
            return f"{{{_name(node.args[0])}}} {self._shown(node.args[1])}s"
        if isinstance(node, ast.Name):
            fragment = self._fragment(node)
            if fragment is not None:
                self.inlined.update(ast.walk(fragment))
                return self._shown(fragment)
        return f"{{{_name(node)}}}"

    def _fragment(self, name: ast.Name) -> ast.AST | None:
        """The text that a variable of the function holds, if it is set once and is no part of itself."""
        scope = self._scope(name)
        if isinstance(scope, ast.Module):
            return None
        values = [
            node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
        ]
        added = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name.id
        ]
        if len(values) != 1 or added:
            return None
        value = values[0]
        texts = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
        if not any(_is_text(each) for each in texts) or name in set(ast.walk(value)):
            return None
        return value


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (_is_text(node.left) or _is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_sentence(text: str) -> bool:
    return bool(re.match(r"[A-Z{(\[]", text)) and text.endswith((".", "?", ".)", ".]")) and len(text.split()) > 2


def _callee(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _choice(one: str, other: str) -> str:
    if not one or not other:
        return f"[{one or other}]" if one or other else ""
    return f"({one} / {other})"


def _name(node: ast.AST) -> str:
    """A short name for the value of a placeholder."""
    if isinstance(node, ast.Name):
        return node.id.strip("_").lower() or "value"
    if isinstance(node, ast.Attribute):
        inner = _name(node.value)
        return node.attr.strip("_") if inner in ("self", "cls") else f"{inner.rpartition('.')[2]}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    if isinstance(node, ast.Call):
        named = [each for each in node.args if not isinstance(each, ast.Constant)]
        if _callee(node) in _WRAPPERS and named:
            return _name(named[0])
        if named:
            return _name(named[0])
        return _name(node.func.value) if isinstance(node.func, ast.Attribute) else _callee(node)
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return _name(node.generators[0].iter)
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.expr) and not isinstance(below, ast.Constant):
            return _name(below)
    return "…"


def page(note: str) -> str:
    """The reference page: one table a package, by code and text."""
    lines = [
        f"# Messages\n\n{note}\n",
        "What users read in refusals, events, reasons, receipts and the notes of commands, by package and code.",
        "A placeholder such as `{job.name}` stands for a value, `[…]` for a part that may be missing, and `(a / b)` for",
        "one of both. The scheduler's texts have ids of jobs, which names replace before anybody reads them. Texts of the",
        "compatibility layers are left out, as they follow the programs that they stand in for.",
    ]
    package = ""
    for each in of_the_code():
        if each.package != package:
            package = each.package
            lines += [f"\n## {package}\n", "| code | message | module |", "|---|---|---|"]
        code = f"`{each.code}`" if each.code else ""
        text = each.text.replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {code} | {text} | `{each.module}` |")
    return "\n".join(lines) + "\n"
