"""Number of examples that each property is tested with: all in `make test`, a tenth in `make check`."""

from __future__ import annotations

from hypothesis import settings

SMALL = "small"
"""The Hypothesis profile of `make check` (`--hypothesis-profile=small`)."""


def examples(count: int) -> int:
    """`count`, or a tenth of it and at least three under the small profile."""
    return max(3, count // 10) if settings.get_current_profile_name() == SMALL else count
