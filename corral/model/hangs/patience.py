"""How long a gang may be silent before it is looked at: learnt from its own pauses, within bounds that people set."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

LEAST_SECONDS: Final = 600.0
"""Nothing that was silent for less hangs, unless a queue or job says otherwise."""
MOST_SECONDS: Final = 86_400.0
_STEPS: Final = 20.0
"""What hangs has been silent for as long as so many of its steps took."""
_PAUSES: Final = 5.0
"""And for so many times its longest pause, which checkpoints and evaluations explain."""


class HangAction(StrEnum):
    """What is done about a gang that hangs."""

    WARN = "warn"
    RESTART = "restart"
    SUSPEND = "suspend"


class HangTerms(NamedTuple):
    """The terms of a job. Times are in seconds."""

    at_least: float = LEAST_SECONDS
    at_most: float = MOST_SECONDS
    action: HangAction = HangAction.WARN
    asked: bool = False
    """Whether a queue, the policy or the job asks for the watch; else only jobs that report steps are watched."""

    def within(self, most: float) -> HangTerms:
        """The terms of a job that sets its own bound."""
        return self._replace(at_least=min(self.at_least, most), at_most=most, asked=True)


def learnt(step_seconds: float, longest_pause: float) -> float:
    """Seconds of silence that a program's own steps and pauses explain."""
    return max(_STEPS * step_seconds, _PAUSES * longest_pause)


def patience(terms: HangTerms, learnt_seconds: float) -> float:
    """Seconds of silence after which a gang is looked at."""
    return min(max(terms.at_least, learnt_seconds), terms.at_most)


@dataclass(slots=True)
class Life:
    """The signs of life of one gang in one attempt: reported steps, growing logs, devices in use.

    Times are in seconds since 1970.
    """

    attempt: int
    since: float
    """When it began."""
    at: float
    """When the last sign came."""
    longest: float = 0.0
    """The longest pause between two signs so far."""
    signs: int = 0
    steps: bool = False
    """Whether steps are reported; then nothing else counts."""
    step_seconds: float = 0.0
    looked_at: float = 0.0
    """When its ranks were looked at last, in this silence."""
    told: bool = False
    """Whether this silence was told as a hang."""
    doubtful: bool = False
    """Whether it was told while a rank worked or could not be looked at; its ranks are looked at further."""

    def alive(self, at: float) -> None:
        """Take a sign of life."""
        if at <= self.at:
            return
        if self.signs:
            self.longest = max(self.longest, at - self.at)
        self.at, self.looked_at, self.told, self.doubtful = at, 0.0, False, False
        self.signs += 1

    def silent_for(self, now: float) -> float:
        """Seconds since the last sign."""
        return max(0.0, now - self.at)

    def due(self, terms: HangTerms, now: float) -> bool:
        """Whether its ranks are to be looked at now: once a silence is too long, and again after as long."""
        if self.told and not self.doubtful:
            return False
        wait = patience(terms, learnt(self.step_seconds, self.longest))
        if self.silent_for(now) <= wait:
            return False
        late = self.overdue(terms, now) and self.looked_at <= self.at + terms.at_most
        return not self.looked_at or late or now - self.looked_at > wait

    def overdue(self, terms: HangTerms, now: float) -> bool:
        """Whether it is silent for longer than the bound, whatever its ranks do."""
        return self.silent_for(now) > terms.at_most
