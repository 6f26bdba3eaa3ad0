"""The combinations of a sweep: policies, values of assumptions, and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput

MOST_COMBINATIONS: Final = 10_000
"""The most simulations of one sweep."""


class Combination(NamedTuple):
    """One simulation of a sweep."""

    policy: str
    knobs: tuple[tuple[str, float], ...]
    """The value of each knob."""
    seed: int

    @property
    def file_name(self) -> str:
        """Return the name of its result's file, without the ending."""
        return "_".join([self.policy, *(f"{knob}={value:.10g}" for knob, value in self.knobs), f"seed={self.seed}"])


def combinations(
    policies: Sequence[str], knobs: Mapping[str, Sequence[float]], seeds: Sequence[int]
) -> list[Combination]:
    """Return every combination, the seeds of one policy and setting beside each other.

    Raises InvalidInput if they are more than `MOST_COMBINATIONS`.
    """
    count = len(policies) * prod(len(values) for values in knobs.values()) * len(seeds)
    if count > MOST_COMBINATIONS:
        raise InvalidInput(
            "too-many-combinations", f"The sweep has {count} combinations, and {MOST_COMBINATIONS} are the most."
        )
    settings = [tuple(zip(knobs, values, strict=True)) for values in product(*knobs.values())]
    return [Combination(*each) for each in product(policies, settings, seeds)]
