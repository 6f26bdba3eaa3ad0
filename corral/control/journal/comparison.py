"""Compare two journals of the same inputs, as two versions of the scheduler wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from corral.control.journal.records import COMMANDS, Decision, Step, decoded


@dataclass(frozen=True)
class Compared:
    """What two versions made of the same inputs."""

    steps: int
    """The steps that were compared."""
    good: Step | None = None
    """The first step that decided otherwise, as the one version has it; None if all decided the same."""
    bad: Step | None = None
    """The same step of the other version; None too if it has no such step."""
    stored_from: int = 0
    """The first step that stores something else, whatever it decides; 0 if there is none."""

    @property
    def equal(self) -> bool:
        """Whether all that was decided and stored is the same."""
        return self.good is None and self.bad is None and not self.stored_from


def compare(good: Iterable[bytes], bad: Iterable[bytes]) -> Compared:
    """Find the first step that started or stopped something else.

    Raises InvalidInput for a record that cannot be read.
    """
    stored_from = count = 0
    for one, other in zip_longest(_steps(good), _steps(bad)):
        count += 1
        if one is None or other is None or _commands(one) != _commands(other):
            return Compared(count, one, other, stored_from or count)
        if one.digest != other.digest and not stored_from:
            stored_from = one.number
    return Compared(count, stored_from=stored_from)


def _steps(records: Iterable[bytes]) -> Iterator[Step]:
    for data in records:
        record = decoded(data)
        if isinstance(record, Step):
            yield record


def _commands(step: Step) -> list[Decision]:
    return [each for each in step.decisions if each.verb in COMMANDS]
