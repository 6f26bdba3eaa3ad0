"""Correct the interval of an estimate by how far earlier intervals missed.

Split conformal prediction in the form of conformalized quantile regression (Romano, Patterson, Candes: Conformalized
Quantile Regression, NeurIPS 2019), with a correction of each end of its own (their section 6): of the latest outcomes, the
distance by which the job started before P10 and after P90 is taken, on a logarithmic scale of waits, and each end is moved
by the distance that 90 % of them did not exceed. Ends move inwards, too. P50 is moved by the median distance.

Outcomes of all queues count together: what makes forecasts miss, such as a burst of jobs, moves the whole cluster.
The promise of 80 % holds for exchangeable waits. Waits come in episodes and are not, so coverage is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, log

import msgspec

LATEST = 50
"""Outcomes that count; more would remember another load."""
FEWEST = 10
"""Outcomes that correct anything."""
_MISSED = 0.1
"""The part of the outcomes that may lie beyond each end."""
_SOON = 600.0
"""Seconds that are added before logarithms are taken: differences far below it do not matter."""

Quantiles = tuple[float | None, float | None, float | None]
"""P10, P50 and P90 in seconds after an estimate; None: after the horizon."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What came true of the quantiles of courses."""

    waited: float
    """Seconds from the estimate to the start."""
    raw: Quantiles
    horizon: float
    """Seconds from the estimate to the horizon; an end after it counts as this."""


class Correction(msgspec.Struct, frozen=True):
    """By how much the ends move, as differences of logarithms."""

    lower: float = 0.0
    middle: float = 0.0
    upper: float = 0.0

    def applied(self, raw: Quantiles) -> Quantiles:
        """The corrected quantiles, in order; one after the horizon stays there.

        Quantiles that are equal are left alone: no course differs, so nothing in them is drawn.
        """
        if self == UNCORRECTED or raw[0] == raw[2]:
            return raw
        p10, p50, p90 = (
            None if each is None else max(0.0, (each + _SOON) * exp(by) - _SOON)
            for each, by in zip(raw, (self.lower, self.middle, self.upper), strict=True)
        )
        low = inf if p10 is None else p10
        middle = max(low, inf if p50 is None else p50)
        high = max(low, inf if p90 is None else p90)
        return p10, _known(min(middle, high)), _known(high)


UNCORRECTED = Correction()


def correction(outcomes: Sequence[Outcome]) -> Correction:
    """The correction that these outcomes, the latest last, ask for; none when they are few."""
    latest = outcomes[-LATEST:]
    if len(latest) < FEWEST:
        return UNCORRECTED
    early, middle, late = (sorted(_distance(each, position) for each in latest) for position in range(3))
    return Correction(
        lower=-_conformal([-each for each in reversed(early)]),
        middle=middle[(len(middle) - 1) // 2],
        upper=_conformal(late),
    )


def _distance(outcome: Outcome, position: int) -> float:
    """How much later the job started than one of its quantiles, as a difference of logarithms."""
    told = outcome.raw[position]
    return log(outcome.waited + _SOON) - log((outcome.horizon if told is None else told) + _SOON)


def _conformal(values: Sequence[float]) -> float:
    """The value that all but `_MISSED` of sorted ones do not exceed, and a further one neither."""
    return values[min(len(values), ceil((len(values) + 1) * (1 - _MISSED))) - 1]


def _known(seconds: float) -> float | None:
    return None if seconds == inf else seconds
