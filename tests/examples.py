"""How much each property is tested: with all examples in `make test`, with a tenth of them in `make check`."""

from __future__ import annotations

from hypothesis import settings

SMALL = "small"
"""The Hypothesis profile of `make check` (`--hypothesis-profile=small`)."""


def examples(count: int) -> int:
    """`count`, or a tenth of it and at least three under the small profile."""
    return at_least(3, count)


def at_least(few: int, count: int) -> int:
    """`count`, or a tenth of it and at least `few` under the small profile: steps, seeds or clusters that need so many."""
    return max(few, count // 10) if settings.get_current_profile_name() == SMALL else count
