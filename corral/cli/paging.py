"""Read a paginated list whole, or up to a number of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from corral.client.types import Page

Item = TypeVar("Item")
_LONGEST: Final = 1000
"""The largest page size that the server accepts."""


def one_page(ask: Callable[..., Page[Item]], limit: int | None = None, **query: Any) -> Page[Item]:
    """Return the pages of `ask(**query)` as one page of at most `limit` items; `next` is None if there are no more."""
    found: Page[Item] = {"items": [], "next": ""}
    while found["next"] is not None and (limit is None or len(found["items"]) < limit):
        size = _LONGEST if limit is None else min(_LONGEST, limit - len(found["items"]))
        page = ask(**query, limit=size, after=found["next"])
        found = {"items": found["items"] + page["items"], "next": page["next"]}
    return found


def items(ask: Callable[..., Page[Item]], limit: int | None = None, **query: Any) -> list[Item]:
    """Return the items of all pages of `ask(**query)`, at most `limit` of them."""
    return one_page(ask, limit, **query)["items"]
