"""What people can be told of a job, and which stored event means which of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from corral.model.exits import ATTEMPT_COMPLETED, STOP_REQUESTED


class Happening(StrEnum):
    """Something that people can be told of a job."""

    STARTED = "started"
    """The first attempt runs."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """The job is over, and it is not tried again."""
    STOPPED = "stopped"
    """A person or a policy ended the job."""
    RETRIED = "retried"
    PREEMPTED = "preempted"
    """All of the job, or a part of it, made room for others, or a used-up budget holds it."""
    IDLE = "idle"
    """The job leaves its devices idle, and its owner is warned."""
    HUNG = "hung"
    """The job shows no progress any more."""
    WAITING = "waiting"
    """The job has waited longer than a person or the job's file allows; asked for by that time, not by this word."""


ENDED: Final = (Happening.SUCCEEDED, Happening.FAILED, Happening.STOPPED)
"""What the word `ended` stands for."""
WORDS: Final = (*(str(each) for each in Happening if each is not Happening.WAITING), "ended")
"""The words that people may write."""
KINDS: Final = (
    "job.started",
    "job.retried",
    "job.completed",
    "job.preempted",
    "job.shrunk",
    "job.held",
    "job.idle-warned",
    "job.hung",
)
"""The kinds of stored events that may mean something."""
_SIMPLE: Final = {
    "job.retried": Happening.RETRIED,
    "job.preempted": Happening.PREEMPTED,
    "job.shrunk": Happening.PREEMPTED,
    "job.held": Happening.PREEMPTED,
    "job.idle-warned": Happening.IDLE,
    "job.hung": Happening.HUNG,
}
_STOPS: Final = frozenset({STOP_REQUESTED, ATTEMPT_COMPLETED})
_STOPPED: Final = "the job was stopped"


def happening_of(kind: str, message: str, data: Mapping[str, Any]) -> Happening | None:
    """What a stored event means; None if nobody is told of it.

    A later attempt of a job starts without a message: its retry or preemption was told.
    """
    if kind == "job.started":
        return None if data.get("attempt") else Happening.STARTED
    if kind == "job.completed":
        code = data.get("code")
        if message == _STOPPED or code in _STOPS:
            return Happening.STOPPED
        return Happening.SUCCEEDED if code == 0 else Happening.FAILED
    return _SIMPLE.get(kind)


def expanded(words: Iterable[str]) -> tuple[Happening, ...]:
    """The happenings that words stand for, each once, in the order of `Happening`.

    Raises ValueError naming the first word that is none.
    """
    found: set[str] = set()
    for word in words:
        if word not in WORDS:
            raise ValueError(f"{word[:50]!r} is none of {', '.join(WORDS)}")
        found.update(ENDED if word == "ended" else (word,))
    return tuple(each for each in Happening if each in found)


def abbreviated(events: Collection[str]) -> tuple[str, ...]:
    """The shortest words for some happenings, as lists show them."""
    if not set(ENDED) <= set(events):
        return tuple(events)
    return (*(each for each in events if each not in ENDED), "ended")
