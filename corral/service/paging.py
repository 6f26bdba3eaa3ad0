"""Why: lists that are made anew for each page are paged by position, and say what they refuse alike."""

from __future__ import annotations

from corral.kernel.errors import InvalidInput


def page_start(after: str, length: int) -> int:
    """Where a page begins.

    Raises InvalidInput for what no list has given.
    """
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise InvalidInput("bad-cursor", "The value of `after` was not given by this list; begin without it.")
    return min(int(after or 0), length)
