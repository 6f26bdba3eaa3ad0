"""Why: people read a change of configuration as lines that went and lines that came, in the form they write it in."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Final

import yaml

_AMOUNTS: Final = frozenset(
    {"guaranteed", "deserved", "limit", "borrowingLimit", "lendingLimit", "userLimit", "groupLimit"}
)


def as_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML, its fields in their order."""
    return yaml.dump(_plain(document), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with whole amounts as numbers, as people write them: `devices: 4`, not `devices: '4'`."""
    return {
        name: {resource: _number(amount) for resource, amount in value.items()} if name in _AMOUNTS else value
        for name, value in document.items()
    }


def _number(amount: Any) -> Any:
    return int(amount) if isinstance(amount, str) and amount.isascii() and amount.isdigit() else amount


def compare(before: str, after: str, before_name: str, after_name: str) -> str:
    """A unified diff of two texts; "" when they are equal."""
    lines = unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm="")
    return "".join(f"{line}\n" for line in lines)
