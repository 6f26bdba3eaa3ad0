"""The attempts of one task, in the order in which they ran, as its log shows them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from corral.kernel.ids import AttemptId


class AttemptNumber(NamedTuple):
    """The number of a task attempt, written `1.0`: the job attempt, then the task attempt within it."""

    job_attempt: int
    task_attempt: int

    def __str__(self) -> str:
        return f"{self.job_attempt}.{self.task_attempt}"


BEFORE_ALL = AttemptNumber(-1, -1)
"""Sorts before every attempt."""


class AttemptStep(msgspec.Struct, frozen=True):
    """One attempt, and how it ended."""

    id: AttemptId
    number: AttemptNumber
    code: int | None = None
    """None: it has not ended, or its exit code is not known."""
    phrase: str = ""


class AttemptChain(msgspec.Struct, frozen=True):
    """Consecutive attempts of a task, oldest first."""

    steps: tuple[AttemptStep, ...]
    over: bool
    """No further attempt will follow: the job is over, or this task of it."""
