"""Docstrings begin with what a thing is or does, not with a label."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LABEL = "Why:"


def docstrings(text: str) -> list[ast.Constant]:
    """Every string that stands alone in a module: docstrings, and the texts below constants and fields."""
    alone = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    return [value for value in alone if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def test_no_docstring_begins_with_why() -> None:
    labelled = []
    for folder in ("corral", "tests", "bench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            if LABEL in text:
                found = [each for each in docstrings(text) if str(each.value).lstrip().startswith(LABEL)]
                labelled += [f"{path.relative_to(ROOT)}:{each.lineno}" for each in found]
    assert not labelled, f"say what it is or does first, and the reason below it where it is not plain: {labelled}"
