"""Types of the client's answers that are no schema of their own; all others are in `corral.client.schema`.

Answers are plain dictionaries, for a quick start.
"""

from __future__ import annotations

import warnings
from typing import Any, Generic, TypedDict, TypeVar

Item = TypeVar("Item")
Record = dict[str, Any]
"""An object without fixed fields."""


class Page(TypedDict, Generic[Item]):
    """Items of a longer list; `next` is the `after` of the next page."""

    items: list[Item]
    next: str | None


_FORMER = {
    "Job": "JobDetail",
    "Event": "EventRecord",
    "Exit": "ExitView",
    "Waiting": "WaitingView",
    "TaskCounts": "TaskCounts",
}
"""Former names of types, deprecated: their present names in `corral.client.schema`."""


def __getattr__(name: str) -> Any:
    """Give a type by its former name, with a DeprecationWarning."""
    if name not in _FORMER:
        raise AttributeError(name)
    from corral.client import schema

    warnings.warn(
        f"corral.client.types.{name} is deprecated; use corral.client.schema.{_FORMER[name]}.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(schema, _FORMER[name])
