"""Option types for the highest priority of an account's or a group's jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import click

PRIORITY: Final = click.IntRange(-999_999_999, 999_999_999)
NONE: Final = "none"


class _Ceiling(click.ParamType[int | str]):
    """A priority, or `none`."""

    name = "n|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal[""]:
        """Return the number; "" for `none`."""
        if value == NONE:
            return ""
        number: int = PRIORITY.convert(value, param, ctx)
        return number


def max_priority_option(of: str, unsaid: str) -> Callable[..., Any]:
    """Return the option --max-priority of a change; `unsaid` completes its help with the effect of `none`."""
    return click.option(
        "--max-priority", type=_Ceiling(), default=None, help=f"The highest priority of {of}; {NONE} {unsaid}."
    )
