"""Why: the server answers lists in pages; a command wants all of one, or its first so many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from corral.client.types import Page

Item = TypeVar("Item")
_LONGEST: Final = 1000
"""The longest page that the server gives."""


def items(ask: Callable[..., Page[Item]], limit: int | None = None, **query: Any) -> list[Item]:
    """The items of every page that `ask` gives for `query`, at most `limit` of them."""
    found: list[Item] = []
    after = ""
    while limit is None or len(found) < limit:
        size = _LONGEST if limit is None else min(_LONGEST, limit - len(found))
        page = ask(**query, limit=size, after=after)
        found += page["items"]
        after = page["next"] or ""
        if not after:
            break
    return found
