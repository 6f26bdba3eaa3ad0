"""The retry policy of the canonical document: the one rule, to which every dialect maps its own words."""

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


def task_retry_policy(most: int = 0, *, gang: bool) -> dict[str, Any]:
    """Return the `retryPolicy` of a role in a dialect whose gangs restart as a whole: their tasks alone never do."""
    return retry_policy(0 if gang else most, fancy=not gang)
