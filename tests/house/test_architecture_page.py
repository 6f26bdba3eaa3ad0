"""Every file and symbol that `docs/architecture.md` names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "corral"
PAGE = ROOT / "docs" / "architecture.md"
SECTIONS = ("The way of one job", "The control core", "Where a rule lives")
"""The sections whose symbols are checked; paths are checked on the whole page."""
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]+\.py")
FOLDER = re.compile(r"\w[\w./-]*/")
SYMBOL = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")


class Named(NamedTuple):
    """A symbol on the page, and the last file named before it in its item."""

    line: int
    symbol: str
    file: str


def items(text: str) -> Iterator[tuple[int, str, str]]:
    """The section, first line number and text of each list item, table row or paragraph outside code blocks."""
    section, begin, fenced = "", 0, False
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fenced ^= line.startswith("```")
        if lines and (not line.strip() or re.match(r"#|[|]|- |\d+\. |```", line)):
            yield begin, section, " ".join(lines)
            lines = []
        if found := re.match(r"## (.+)", line):
            section = found[1]
        elif line.strip() and not fenced:
            begin = begin if lines else number
            lines.append(line.strip())


def symbols(text: str) -> Iterator[Named]:
    """The symbols of the checked sections; the first cell of a table row only describes a rule."""
    for line, section, item in items(text):
        if section not in SECTIONS:
            continue
        file = ""
        for code in CODE.findall(item.split("|", 2)[-1] if item.startswith("|") else item):
            if FILE.fullmatch(code):
                file = code
            elif SYMBOL.fullmatch(code):
                yield Named(line, code, file)


def paths(text: str) -> Iterator[tuple[int, str]]:
    """Every file and folder that the page names."""
    for line, _, item in items(text):
        yield from ((line, code) for code in CODE.findall(item) if FILE.fullmatch(code) or FOLDER.fullmatch(code))


def located(path: str) -> Path:
    """A path of the page: below the package, or else below the repository."""
    return PACKAGE / path if (PACKAGE / path).exists() else ROOT / path


def missing_symbols(text: str) -> list[str]:
    """One line for each symbol of the page that its file does not define."""
    found = []
    for line, symbol, file in symbols(text):
        if not file:
            found.append(f"line {line}: `{symbol}` stands after no file; name the file that defines it")
        elif located(file).is_file() and symbol not in defined(located(file)):
            near = _hint("similar there:", get_close_matches(symbol, defined(located(file)), 3, 0.5))
            found.append(f"line {line}: {file} defines no `{symbol}`{_hint('it is in', defining(symbol))}{near}")
    return found


def missing_paths(text: str) -> list[str]:
    """One line for each file or folder of the page that does not exist."""
    found = []
    for line, path in paths(text):
        if not located(path).exists() or located(path).is_dir() != path.endswith("/"):
            name = Path(path).name
            now = [each.relative_to(PACKAGE).as_posix() for each in sorted(PACKAGE.rglob(name))][:3]
            found.append(f"line {line}: there is no {path}{_hint('there is', now)}")
    return found


def _hint(words: str, names: list[str]) -> str:
    return f"; {words} {', '.join(names)}" if names else ""


def defining(symbol: str) -> list[str]:
    """The first modules of the package that define a symbol; only those that contain its name are parsed."""
    word = re.compile(rf"\b{symbol.rpartition('.')[2]}\b")
    having = (path for path in sorted(PACKAGE.rglob("*.py")) if word.search(path.read_text()))
    return [path.relative_to(PACKAGE).as_posix() for path in having if symbol in defined(path)][:3]


@cache
def defined(path: Path) -> frozenset[str]:
    """The functions, classes and constants of a module, and the methods and fields of its classes as Class.name."""
    body = ast.parse(path.read_text()).body
    found = set(_names(body))
    for node in body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for name in _names(node.body)}
    return frozenset(found)


def _names(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def test_every_file_and_folder_of_the_page_exists() -> None:
    missing = missing_paths(PAGE.read_text())
    assert not missing, "docs/architecture.md\n" + "\n".join(missing)


def test_every_symbol_of_the_page_is_defined_in_its_file() -> None:
    missing = missing_symbols(PAGE.read_text())
    assert not missing, "docs/architecture.md\n" + "\n".join(missing)


def test_the_page_names_files_and_symbols_in_each_section() -> None:
    text = PAGE.read_text()
    lines = {line: section for line, section, _ in items(text)}
    for section in SECTIONS:
        assert sum(lines[line] == section for line, _ in paths(text)) >= 5, section
        assert sum(lines[each.line] == section for each in symbols(text)) >= 5, section


def test_what_is_missing_is_named_with_its_line() -> None:
    page = (
        "## The way of one job\n\n1. `control/core/core.py`: `Core.stepp` and `Core`.\n2. `Core` of `control/loop.py`.\n\n"
        "## Where a rule lives\n\n| `maxSkew` | `control/loop.py`: `Core.step`; `gone.py`: `Gone`; `nowhere/` |\n"
        "| another | `control/core.py` |\n"
    )
    assert missing_paths(page) == [
        "line 8: there is no gone.py",
        "line 8: there is no nowhere/",
        "line 9: there is no control/core.py; there is control/core/core.py",
    ]
    first, second, third = missing_symbols(page)
    assert first.startswith("line 3: control/core/core.py defines no `Core.stepp`; similar there: Core.step")
    assert second == "line 4: `Core` stands after no file; name the file that defines it"
    assert third.startswith("line 8: control/loop.py defines no `Core.step`; it is in control/core/core.py")
