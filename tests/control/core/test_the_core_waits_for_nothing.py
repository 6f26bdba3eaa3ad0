"""No module of the core awaits anything, and loading it loads neither an event loop nor a log."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

CORE = Path(__file__).parents[3] / "corral" / "control" / "core"


def test_no_module_of_the_core_awaits() -> None:
    waiting = [
        f"{path.name}:{node.lineno}"
        for path in sorted(CORE.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith))
    ]
    assert not waiting


def test_the_core_loads_without_asyncio() -> None:
    modules = ["corral.control.core", *(f"corral.control.core.{path.stem}" for path in CORE.glob("[a-z]*.py"))]
    program = f"import sys, {', '.join(modules)}; print([m for m in {_FORBIDDEN!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


_FORBIDDEN = ("asyncio", "concurrent.futures", "logging", "sqlalchemy", "sqlite3", "ssl", "structlog", "uvicorn")
