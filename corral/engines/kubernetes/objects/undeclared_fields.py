"""Leave out fields that the cluster's CustomResourceDefinition lacks, so that an older one does not block every apply.

A cluster refuses the whole apply for one unknown field. The refusal names the fields (`.status.retries: field not
declared in schema`). They are left out only for a while, so that they return soon after the definition was updated.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

_NAMED: Final = re.compile(r"((?:\.[\w-]+|\[[^\]]*\])+): field not declared in schema")
_STEP: Final = re.compile(r"\.([\w-]+)|(\[)[^\]]*\]")
_EACH: Final = "[]"
Path = tuple[str, ...]


class Undeclared:
    """The fields, by kind, that a cluster does not know."""

    def __init__(self, *, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        """Learned fields are forgotten after `seconds`."""
        self._seconds, self._now = seconds, now
        self._fields: dict[str, dict[Path, float]] = {}

    def learn(self, kind: str, message: str) -> bool:
        """Learn from a refusal. Return whether it named a field that was not left out already."""
        fields = self._fields.setdefault(kind, {})
        named = {_path(found) for found in _NAMED.findall(message)}
        new = {path for path in named if fields.get(path, 0.0) <= self._now()}
        fields |= dict.fromkeys(named, self._now() + self._seconds)
        return bool(new)

    def without(self, kind: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields without those that the cluster does not know."""
        for path, until in self._fields.get(kind, {}).items():
            if until > self._now():
                fields = _without(fields, path)
        return fields


def _path(text: str) -> Path:
    return tuple(name or _EACH for name, _ in _STEP.findall(text))


def _without(value: Any, path: Path) -> Any:
    first, *rest = path
    if first == _EACH:
        return [_without(inner, tuple(rest)) for inner in value] if rest and isinstance(value, list) else value
    if not isinstance(value, dict) or first not in value:
        return value
    kept = {name: inner for name, inner in value.items() if name != first}
    return {**kept, first: _without(value[first], tuple(rest))} if rest else kept
