"""Simulations that differ by their seed only are one group, of which a mean and its confidence interval are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from corral.sim.confidence import Estimate, estimate

SEED: Final = "seed"
MEASURES: Final = (
    "mean_jct", "median_jct", "p99_jct", "mean_queueing", "p99_queueing", "makespan", "utilisation", "interruptions",
    "lost_device_seconds", "worst_rho", "unfair", "fragmentation",
)  # fmt: skip
"""The figures of a result that have a mean over seeds."""


class Played(Protocol):
    """A simulation that was played: its policy, and what was assumed."""

    @property
    def policy(self) -> str:
        """The name of the policy."""

    @property
    def knobs(self) -> Mapping[str, float]:
        """What was assumed, with the seed."""


Each = TypeVar("Each", bound=Played)


@dataclass(frozen=True)
class Group(Generic[Each]):
    """The simulations of one policy and equal assumptions, each with a seed of its own."""

    policy: str
    knobs: Mapping[str, float]
    """The assumptions by which groups differ; a sweep's knobs."""
    members: tuple[Each, ...]
    """In the order in which they were given."""
    number: int = 1
    """Counts groups that are equal but for their members: the same simulation was given more than once."""

    @property
    def name(self) -> str:
        """Return the policy and what sets the group apart, for people."""
        parts = [self.policy, *(f"{knob} {value:g}" for knob, value in self.knobs.items())]
        return ", ".join(parts) + (f" ({self.number})" if self.number > 1 else "")

    @property
    def seeds(self) -> list[int]:
        """Return the seed of each member."""
        return [int(member.knobs.get(SEED, 0)) for member in self.members]


def grouped(played: Iterable[Each]) -> list[Group[Each]]:
    """Return the groups, in the order of their first members; a repeated seed begins another group."""
    found: dict[tuple[str, tuple[tuple[str, float], ...], int], dict[float, Each]] = {}
    for each in played:
        settings = tuple(sorted((knob, value) for knob, value in each.knobs.items() if knob != SEED))
        seed, number = each.knobs.get(SEED, 0), 1
        while seed in found.setdefault((each.policy, settings, number), {}):
            number += 1
        found[each.policy, settings, number][seed] = each
    varied = _varied([settings for _, settings, _ in found])
    return [
        Group(policy, {knob: value for knob, value in settings if knob in varied}, tuple(members.values()), number)
        for (policy, settings, number), members in found.items()
    ]


def estimates(figures: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return the mean and the interval of each measure that all have, from the figures of a group's members."""
    known = (name for name in MEASURES if all(name in each for each in figures))
    return {name: estimate([float(each[name]) for each in figures]) for name in known}


def record_of(group: Group[Each], figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a group as JSON, from the figures of its members; times in seconds."""
    found = {name: {"mean": each.mean, "half_width": each.half_width} for name, each in estimates(figures).items()}
    shown = {"policy": group.policy, "knobs": dict(group.knobs), "n": len(group.members), "seeds": group.seeds}
    return {**shown, "estimates": found, "runs": list(figures)}


def _varied(settings: Sequence[tuple[tuple[str, float], ...]]) -> set[str]:
    """Return the knobs that do not have the same value everywhere."""
    values: dict[str, set[float | None]] = {}
    for knob in {knob for each in settings for knob, _ in each}:
        values[knob] = {dict(each).get(knob) for each in settings}
    return {knob for knob, found in values.items() if len(found) > 1}
