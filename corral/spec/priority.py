"""Why: priority classes are words to people and integers to the scheduler; one table joins them."""

from __future__ import annotations

import re
from typing import Any, Final

from corral.spec.base import refusal
from corral.spec.errors import describe, did_you_mean
from corral.spec.scalars import written

PRIORITY_CLASSES: Final = {"crit": 120, "prod": 100, "test": 10, "oppo": -1}
"""Named priorities; below 0 is opportunistic: it runs on what is left and yields to everyone."""
DEFAULT_CLASS: Final = "test"
_INTEGER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)


def priority_number(priority: str) -> int:
    """The number behind a class name, an integer in text, or "" (test); assumes it was validated."""
    return PRIORITY_CLASSES[priority or DEFAULT_CLASS] if priority in ("", *PRIORITY_CLASSES) else int(priority)


def check_priority(value: Any) -> Any:
    """The validator of the priority field: text it returns is one that `priority_number` understands."""
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
