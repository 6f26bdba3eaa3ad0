"""Why: people read a change of configuration as lines that went and lines that came, in the form they write it in."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any

import yaml


def as_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML, its fields in their order."""
    return yaml.dump(dict(document), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)


def compare(before: str, after: str, before_name: str, after_name: str) -> str:
    """A unified diff of two texts; "" when they are equal."""
    lines = unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm="")
    return "".join(f"{line}\n" for line in lines)
