"""The retry policy of the canonical document, which every dialect writes by the same rule."""

from __future__ import annotations

from typing import Any, Final

ALWAYS: Final = -2
"""Retried after every end, also after success."""
UNBOUNDED: Final = -1
"""Retried after every failure."""
MOST_RETRIES: Final = 10_000


def retry_policy(most: int, *, fancy: bool | None = None) -> dict[str, Any]:
    """Return a `retryPolicy` of at most `most` counted retries.

    If a dialect does not say whether exit classes decide (`fancy`), they do, unless every end is retried.
    """
    return {"fancy": most != ALWAYS if fancy is None else fancy, "maxRetries": most}
