"""Priority classes of jobs: names in documents, integers in the scheduler."""

from __future__ import annotations

import re
from typing import Any, Final

from corral.spec.base import refusal
from corral.spec.errors import describe, did_you_mean
from corral.spec.yaml_scalars import written

PRIORITY_CLASSES: Final = {"crit": 120, "prod": 100, "test": 10, "oppo": -1}
"""Priority by class name. Below 0 is opportunistic: such jobs run on idle resources and can be preempted by all others.
"""
DEFAULT_CLASS: Final = "test"
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)


def priority_number(priority: str) -> int:
    """The integer of a validated priority: a class name, an integer as text, or "" for `test`."""
    return PRIORITY_CLASSES[priority or DEFAULT_CLASS] if priority in ("", *PRIORITY_CLASSES) else int(priority)


def check_priority(value: Any) -> Any:
    """Validate the priority field; returns text that `priority_number` accepts.

    Raises a pydantic error for text that is neither a class nor an integer of at most 9 digits.
    """
    text = written(value)
    if not isinstance(text, str):
        return value
    if text == "" or text in PRIORITY_CLASSES:
        return text
    if _INTEGER.fullmatch(text):
        return str(int(text))
    raise refusal(
        f"expected a priority class or an integer, got {describe(text)}{did_you_mean(text, PRIORITY_CLASSES)}"
    )
