"""How high somebody's priorities may be, as options have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import click

PRIORITY: Final = click.IntRange(-999_999_999, 999_999_999)
NONE: Final = "none"


class _Ceiling(click.ParamType[int | str]):
    """A number, or `none`."""

    name = "n|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal[""]:
        """The number; "" for `none`."""
        if value == NONE:
            return ""
        number: int = PRIORITY.convert(value, param, ctx)
        return number


def max_priority_option(of: str, unsaid: str) -> Callable[..., Any]:
    """The option --max-priority: the highest priority of somebody's jobs, and what `none` does."""
    return click.option(
        "--max-priority", type=_Ceiling(), default=None, help=f"The highest priority of {of}; {NONE} {unsaid}."
    )
