"""Ids of jobs, tasks and attempts; they sort by age and are safe in file names, URLs and Kubernetes names."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, NewType

JobId = NewType("JobId", str)
"""Identifies one job for ever: 13 characters, of which the first 9 are its creation time, so ids sort by age."""

AttemptId = NewType("AttemptId", str)
"""Identifies one run of one task for ever: `JOB.JOBATTEMPT.ROLE.INDEX.TASKATTEMPT`; engines are idempotent by it."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_DIGITS = 9
_RANDOM_DIGITS = 4
_RANDOM_BITS = 5 * _RANDOM_DIGITS
_STEP_BITS = 6


class TaskKey(NamedTuple):
    """Identifies a task within its job; it is not unique in the cluster."""

    role: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing here calls

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


class AttemptKey(NamedTuple):
    """The parts of an `AttemptId`."""

    job: JobId
    job_attempt: int
    role: str
    index: int  # type: ignore[assignment]  # as in TaskKey
    task_attempt: int

    @property
    def task(self) -> TaskKey:
        """The task that was run."""
        return TaskKey(self.role, self.index)


def job_id(milliseconds: int, random_bits: int) -> JobId:
    """Build a job id from the time in milliseconds since 1970 and at least 20 random bits."""
    return JobId(_digits(milliseconds, _TIME_DIGITS) + _digits(random_bits, _RANDOM_DIGITS))


class JobIds:
    """A generator of strictly increasing job ids, even within a millisecond or when the clock goes back.

    `random_bits(n)` gives an integer of n random bits. As in ULID's monotonic mode, an id of the same millisecond is
    the last one plus a random step.
    """

    def __init__(self, random_bits: Callable[[int], int]) -> None:
        self._random_bits = random_bits
        self._milliseconds = -1
        self._bits = 0

    def next(self, milliseconds: int) -> JobId:
        """The next id for a time in milliseconds since 1970."""
        if milliseconds > self._milliseconds:
            self._milliseconds, self._bits = milliseconds, self._random_bits(_RANDOM_BITS - 1)
        else:
            self._bits += 1 + self._random_bits(_STEP_BITS)
            if self._bits >= 1 << _RANDOM_BITS:
                self._milliseconds, self._bits = self._milliseconds + 1, self._random_bits(_RANDOM_BITS - 1)
        return job_id(self._milliseconds, self._bits)


def attempt_id(job: JobId, job_attempt: int, role: str, index: int, task_attempt: int) -> AttemptId:
    """Build the id of one run of one task; role names have no dot, so it parses back."""
    return AttemptId(f"{job}.{job_attempt}.{role}.{index}.{task_attempt}")


@lru_cache(1024)
def parse_attempt_id(text: str) -> AttemptKey:
    """Split an attempt id into its parts.

    A pure function whose answers are kept, because each event of an attempt is split in several places. Raises
    ValueError if `text` is not an attempt id.
    """
    parts = text.split(".")
    if len(parts) != 5 or not all(parts):
        raise ValueError(f"{text!r} is not an attempt id: JOB.JOBATTEMPT.ROLE.INDEX.TASKATTEMPT was expected")
    job, job_attempt, role, index, task_attempt = parts
    return AttemptKey(JobId(job), int(job_attempt), role, int(index), int(task_attempt))


def _digits(number: int, length: int) -> str:
    out = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        out.append(_ALPHABET[digit])
    return "".join(reversed(out))
