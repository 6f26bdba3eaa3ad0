"""Types of the client's answers that are no schema of their own; all others are in `corral.client.schema`.

Answers are plain dictionaries, for a quick start.
"""

from __future__ import annotations

from typing import Any, Generic, TypedDict, TypeVar

Item = TypeVar("Item")
Record = dict[str, Any]
"""An object without fixed fields."""


class Page(TypedDict, Generic[Item]):
    """Items of a longer list; `next` is the `after` of the next page."""

    items: list[Item]
    next: str | None
