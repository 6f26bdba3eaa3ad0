"""Show changes of the configuration as unified diffs of YAML, the form in which people write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Final

import yaml

_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]{1,3})?", re.ASCII)
_AMOUNTS: Final = frozenset(
    {"guaranteed", "deserved", "limit", "borrowingLimit", "lendingLimit", "userLimit", "groupLimit"}
)


def as_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML, with its fields in their given order."""
    return yaml.dump(_plain(document), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)


def _plain(value: Any, amounts: bool = False) -> Any:
    """The value with numbers as people write them: `devices: 4`, not `devices: '4'`, and `weight: 2`, not `2.0`."""
    if isinstance(value, Mapping):
        return {name: _plain(each, name in _AMOUNTS or amounts) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if amounts and isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value


def compare(before: str, after: str, before_name: str, after_name: str) -> str:
    """A unified diff of two texts; "" when they are equal."""
    lines = unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm="")
    return "".join(f"{line}\n" for line in lines)
