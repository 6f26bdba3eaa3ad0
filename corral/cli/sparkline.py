"""Draw numbers as a line of bars, one character each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

BARS: Final = "▁▂▃▄▅▆▇█"
_NOTHING: Final = " "


def sparkline(values: Sequence[float | None], width: int, scale: tuple[float, float] | None = None) -> str:
    """Return a line of at most `width` bars between the least and the greatest value; a blank is no value.

    With `scale` the bars stand between these two values, so that lines can be compared. Where there are more values than
    `width`, a bar is the mean of those that share its place.
    """
    shown = squeezed(values, width)
    known = [each for each in shown if each is not None]
    if not known:
        return _NOTHING * len(shown)
    low, high = (min(known), max(known)) if scale is None else scale
    size = high - low
    return "".join(_NOTHING if each is None else _bar((each - low) / size if size else 0.0) for each in shown)


def squeezed(values: Sequence[float | None], width: int) -> list[float | None]:
    """Return the means of at most `width` parts of about equal length; None is a part without a value."""
    count = min(width, len(values))
    parts = (values[at * len(values) // count : (at + 1) * len(values) // count] for at in range(count))
    return [_mean([each for each in part if each is not None]) for part in parts]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _bar(height: float) -> str:
    return BARS[max(0, min(len(BARS) - 1, int(height * len(BARS))))]
