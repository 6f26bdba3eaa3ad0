"""Spare training programs PyTorch's compiler, which they do not use: its import takes 2.5 s of processor time.

Python loads this module at its start where its folder is on PYTHONPATH. An optimizer imports `torch._dynamo` on its first
use, only to keep itself from being compiled. It gets a module here that compiles nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Nothing:
    """Everything else of the compiler: it has every attribute, may be called, and is false."""

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *given: Any, **named: Any) -> Nothing:
        return self

    def __bool__(self) -> bool:
        return False


class Compiler(MetaPathFinder, Loader):
    """Finds `torch._dynamo`, and makes it a module whose `disable` returns the function that it is given."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name == "torch._dynamo" else None

    def exec_module(self, module: ModuleType) -> None:
        nothing = Nothing()
        module.__dict__["disable"] = disable
        module.__dict__["__getattr__"] = lambda name: getattr(nothing, name)


def disable(function: Callable[..., Any] | None = None, *given: Any, **named: Any) -> Callable[..., Any]:
    """Return the function as it is; without one, a decorator that does so."""
    return function if function is not None else disable


sys.meta_path.insert(0, Compiler())
