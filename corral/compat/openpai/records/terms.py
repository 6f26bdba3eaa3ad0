"""Translate states, exit codes and times of jobs to OpenPAI's terms, for every version of its API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from corral.compat.openpai.records.exit_words import EXIT_WORDS
from corral.compat.openpai.records.views import ExitSpecView
from corral.model.exits import (
    ATTEMPT_COMPLETED,
    EXIT_SPECS,
    RESERVED_SPECS,
    STOP_REQUESTED,
    UNDEFINED_NEGATIVE,
    exit_spec,
)
from corral.model.outcome import Completion
from corral.runtime.error_block import container_code, told_code

STATES: Final = ("WAITING", "RUNNING", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED")
"""The states in which a job or a task is shown."""
STOPS: Final = (STOP_REQUESTED, ATTEMPT_COMPLETED)
"""The exit codes of requested ends."""
PRIORITIES: Final = ("crit", "prod", "test", "oppo")
"""OpenPAI's priority classes; a job without one has null."""
ORDERS: Final = (
    "jobName", "submissionTime", "username", "vc", "retries", "totalTaskNumber", "totalGpuNumber", "state",
    "completionTime", "jobPriority",
)  # fmt: skip
"""The sort fields of a job list."""

_SUB_STATES: Final = {
    "creation-pending": "AttemptCreationPending",
    "creation-requested": "AttemptCreationRequested",
    "preparing": "AttemptPreparing",
    "running": "AttemptRunning",
    "deletion-pending": "AttemptDeletionPending",
    "deleting": "AttemptDeleting",
    "attempt-completed": "AttemptCompleted",
    "completed": "Completed",
}
_WAITING: Final = frozenset({"creation-pending", "creation-requested", "preparing"})


class OpenPaiFilter(msgspec.Struct, frozen=True):
    """Filters, order and page of OpenPAI's job list; an empty field filters nothing."""

    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    keyword: str = ""
    """A substring of the name, the user or the virtual cluster."""
    name: str = ""
    """The exact name."""
    tags: tuple[str, ...] = ()
    """The job must have at least one of them."""
    without_tags: tuple[str, ...] = ()
    """The job must have none of them."""
    priorities: tuple[str | None, ...] = ()
    order: str = "submissionTime"
    descending: bool = True
    offset: int = 0
    limit: int = 5000
    count: bool = False
    """Whether to count all jobs that pass the filter."""


def framework_name(user: str, name: str) -> str:
    """OpenPAI's internal name of a job: the MD5 of `user~name`."""
    return hashlib.md5(f"{user}~{name}".encode(), usedforsecurity=False).hexdigest()


def sub_state(state: str) -> str:
    """FrameworkController's name for a state of a job or a task."""
    return _SUB_STATES[state]


def state_word(state: str, code: int | None) -> str:
    """OpenPAI's state of a job or a task; `code` is the exit code of its attempt."""
    if state in _WAITING:
        return "WAITING"
    if state == "completed":
        return end_word(code)
    return "STOPPING" if code in STOPS and state != "running" else "RUNNING"


def attempt_word(state: str, code: int | None) -> str:
    """OpenPAI's state of one attempt: ended once none of its instances is left, even if another attempt follows."""
    return end_word(code) if state == "attempt-completed" else state_word(state, code)


def end_word(code: int | None) -> str:
    """OpenPAI's state of a job, task or attempt that ended with `code`."""
    if code == 0:
        return "SUCCEEDED"
    return "STOPPED" if code in STOPS else "FAILED"


def openpai_code(ended: Completion | None) -> int | None:
    """The exit code that OpenPAI shows for a completion; every view of its API uses this function."""
    return None if ended is None else told_code(ended.code, ended.diagnostics)


def exit_spec_view(code: int | None) -> ExitSpecView | None:
    """The row of OpenPAI's table for an exit code; None for None.

    A positive code without a row becomes 255, as in OpenPAI's runtime; a negative one gets the row of -8000 under its
    own number.
    """
    if code is None:
        return None
    found = _SPECS.get(container_code(code))
    return found or msgspec.structs.replace(_SPECS[UNDEFINED_NEGATIVE], code=code)


def milliseconds(seconds: float | None) -> int | None:
    """Convert a time to OpenPAI's form, in milliseconds."""
    return None if seconds is None else round(seconds * 1000)


def launched(started_at: float | None, ended_at: float | None) -> int | None:
    """The start time in OpenPAI's form: the end time for an attempt that ended before it ran."""
    return milliseconds(ended_at if started_at is None else started_at)


def ports_view(ports: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """A task's ports by label, as text: one number, or several with commas between."""
    return {label: ",".join(map(str, given)) for label, given in ports.items()}


def _view(code: int) -> ExitSpecView:
    row = exit_spec(code)
    words = (row.phrase, row.issuer, row.causer, row.type, row.stage, row.behavior)
    return ExitSpecView(code, *words, row.reaction, *EXIT_WORDS[code])


_SPECS: Final = {code: _view(code) for code in (*EXIT_SPECS, *RESERVED_SPECS)}
