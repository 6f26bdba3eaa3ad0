"""The first decisions that only one of two schedulers made, or that both made at different times."""

from __future__ import annotations

from dataclasses import dataclass

from corral.control.shadow.decisions import Decision, Kind
from corral.control.shadow.pairing import Pair
from corral.kernel.ids import JobId
from corral.model.policy_shadow import Difference
from corral.model.records import rfc3339_or_none


@dataclass(slots=True)
class _Listed:
    """A difference whose other decision may still come."""

    first: Decision
    in_force: float | None
    candidate: float | None
    why: str


class Differences:
    """Lists the first `most` differences; of the others it keeps the count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._listed: list[_Listed] = []
        self._open: dict[tuple[bool, JobId, Kind], list[_Listed]] = {}
        self.left_out = 0

    def add(self, pair: Pair, why: str) -> None:
        """Take a decision that was made alone, in the order of their times.

        It completes one of the same kind about the same job that the other scheduler made before.
        """
        if self.complete(pair):
            return
        in_force, candidate = pair
        made = in_force or candidate
        assert made is not None
        if len(self._listed) < self._most:
            listed = _Listed(made, None if in_force is None else made.at, None if candidate is None else made.at, why)
            self._listed.append(listed)
            self._open.setdefault((in_force is None, made.job, made.kind), []).append(listed)
        else:
            self.left_out += 1

    def complete(self, pair: Pair) -> bool:
        """Complete the earliest difference of which a decision is the other half; returns whether there is one."""
        in_force, candidate = pair
        made = in_force or candidate
        assert made is not None
        waiting = self._open.get((in_force is not None, made.job, made.kind))
        if not waiting:
            return False
        listed = waiting.pop(0)
        if in_force is None:
            listed.candidate = made.at
        else:
            listed.in_force = made.at
        return True

    def told(self) -> tuple[Difference, ...]:
        """The listed ones, earliest first."""
        return tuple(
            Difference(
                str(each.first.kind), each.first.job, each.first.name, each.first.user, each.first.queue,
                rfc3339_or_none(each.in_force), rfc3339_or_none(each.candidate), each.why,
            )
            for each in self._listed
        )  # fmt: skip
