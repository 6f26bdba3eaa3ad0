"""Why: the server answers lists in pages; a command wants all of one, or its first so many."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from corral.client.types import Page

Item = TypeVar("Item")
_LONGEST: Final = 1000
"""The longest page that the server gives."""


def one_page(ask: Callable[..., Page[Item]], limit: int | None = None, **query: Any) -> Page[Item]:
    """The pages that `ask` gives for `query` as one, of at most `limit` items; `next` says whether there are more."""
    found: Page[Item] = {"items": [], "next": ""}
    while found["next"] is not None and (limit is None or len(found["items"]) < limit):
        size = _LONGEST if limit is None else min(_LONGEST, limit - len(found["items"]))
        page = ask(**query, limit=size, after=found["next"])
        found = {"items": found["items"] + page["items"], "next": page["next"]}
    return found


def items(ask: Callable[..., Page[Item]], limit: int | None = None, **query: Any) -> list[Item]:
    """The items of every page that `ask` gives for `query`, at most `limit` of them."""
    return one_page(ask, limit, **query)["items"]
