"""Read an attempt as callers write it: by its id, by its two numbers, or as `latest`."""

from __future__ import annotations

import re
from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.ids import AttemptId, AttemptKey, JobId, attempt_id, parse_attempt_id
from corral.model.store_writes import JobRecord

_NUMBER: Final = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)
"""A task's attempt, written as the job's attempt and the task's own (`1.0`)."""


def parsed_attempt(attempt: str, job: str) -> AttemptKey:
    """Read the id of an attempt of this job.

    Raises InvalidInput `bad-attempt`, NotFound for an attempt of another job.
    """
    try:
        key = parse_attempt_id(attempt)
    except ValueError:
        message = f"{attempt[:100]!r} is not an attempt; write its numbers (such as 1.0), its id, or latest."
        raise InvalidInput("bad-attempt", message) from None
    if key.job != job:
        raise NotFound("attempt-not-found", "The attempt belongs to another job.")
    return key


def named_attempt(attempt: str, record: JobRecord, role: str, index: int, latest: AttemptId) -> AttemptId:
    """Resolve an attempt given by id, by its two numbers (`1.0`), or as `latest`.

    Raises NotFound for an attempt of another task or one that does not exist, InvalidInput for anything else.
    """
    if attempt == "latest":
        return latest
    known = parse_attempt_id(latest)
    if match := _NUMBER.fullmatch(attempt):
        asked = int(match[1]), int(match[2])
    else:
        key = parsed_attempt(attempt, record.id)
        if (key.role, key.index) != (role, index):
            raise NotFound("attempt-not-found", f"Task {role}-{index} has no attempt {attempt[:100]}.")
        asked = key.job_attempt, key.task_attempt
    if asked > (known.job_attempt, known.task_attempt):
        message = f"Task {role}-{index} has no attempt {attempt[:100]}; `corral attempts` lists them."
        raise NotFound("attempt-not-found", message)
    return attempt_id(JobId(record.id), asked[0], role, index, asked[1])
