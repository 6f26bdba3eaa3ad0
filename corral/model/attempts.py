"""The attempts of one task in the order in which they ran, as far as its log needs them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from corral.kernel.ids import AttemptId


class AttemptNumber(NamedTuple):
    """Which attempt of a task it is, written `1.0`: the attempt of the job, and in it that of the task."""

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
    """None: it has not ended, or nothing is known of how."""
    phrase: str = ""


class AttemptChain(msgspec.Struct, frozen=True):
    """Some of a task's attempts, the oldest first, and whether no other will follow."""

    steps: tuple[AttemptStep, ...]
    over: bool
    """The job is over, or this task of it."""
