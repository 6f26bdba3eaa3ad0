"""Why: OpenPAI's API has words of its own for where a job stands; every version of it must derive the same ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from corral.model.exits import (
    ATTEMPT_COMPLETED,
    EXIT_SPECS,
    RESERVED_SPECS,
    STOP_REQUESTED,
    UNDEFINED_NEGATIVE,
    exit_spec,
)
from corral.model.openpai_exit_words import EXIT_WORDS
from corral.model.openpai_views import ExitSpecView
from corral.model.outcome import Completion
from corral.runtime.openpai_errors import container_code, told_code

STATES: Final = ("WAITING", "RUNNING", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED")
"""The states that a job or a task may be shown in."""
STOPS: Final = (STOP_REQUESTED, ATTEMPT_COMPLETED)
"""The codes of ends that somebody asked for."""
PRIORITIES: Final = ("crit", "prod", "test", "oppo")
"""The classes of priority; a job without one is told by null."""
ORDERS: Final = (
    "jobName", "submissionTime", "username", "vc", "retries", "totalTaskNumber", "totalGpuNumber", "state",
    "completionTime", "jobPriority",
)  # fmt: skip
"""What a list of jobs may be ordered by."""

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


class OpenPaiListing(msgspec.Struct, frozen=True):
    """What lists show and find of a job in OpenPAI's language that its document would have to be parsed for."""

    name: str
    """As it was submitted: longer than a DNS label, perhaps, and with capitals."""
    job_priority: str | None = None
    roles: int = 1


class OpenPaiFilter(msgspec.Struct, frozen=True):
    """Which jobs OpenPAI's list shows, in what order, and which part of them; an empty field filters nothing."""

    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    keyword: str = ""
    """A part of the name, the user or the virtual cluster."""
    name: str = ""
    """The whole of the name."""
    tags: tuple[str, ...] = ()
    """At least one of them."""
    without_tags: tuple[str, ...] = ()
    """None of them."""
    priorities: tuple[str | None, ...] = ()
    order: str = "submissionTime"
    descending: bool = True
    offset: int = 0
    limit: int = 5000
    count: bool = False
    """Whether all that pass the filter are counted."""


def framework_name(user: str, name: str) -> str:
    """What OpenPAI calls a job inside: the MD5 of `user~name`."""
    return hashlib.md5(f"{user}~{name}".encode(), usedforsecurity=False).hexdigest()


def sub_state(state: str) -> str:
    """FrameworkController's word for a state of a job or a task."""
    return _SUB_STATES[state]


def state_word(state: str, code: int | None) -> str:
    """The state that a job or a task is shown in, `code` being how its attempt ended."""
    if state in _WAITING:
        return "WAITING"
    if state == "completed":
        return end_word(code)
    return "STOPPING" if code in STOPS and state != "running" else "RUNNING"


def attempt_word(state: str, code: int | None) -> str:
    """The state that one attempt is shown in: over once nothing of it is left, even when another is to follow."""
    return end_word(code) if state == "attempt-completed" else state_word(state, code)


def end_word(code: int | None) -> str:
    """The state of what ended so."""
    if code == 0:
        return "SUCCEEDED"
    return "STOPPED" if code in STOPS else "FAILED"


def openpai_code(ended: Completion | None) -> int | None:
    """The exit code that OpenPAI tells of an end: every view of its API has it from here."""
    return None if ended is None else told_code(ended.code, ended.diagnostics)


def exit_spec_view(code: int | None) -> ExitSpecView | None:
    """What OpenPAI's table says of an exit code.

    A positive code without a row is 255, as OpenPAI's runtime has it; a negative one gets the row of -8000 under its
    own number.
    """
    if code is None:
        return None
    found = _SPECS.get(container_code(code))
    return found or msgspec.structs.replace(_SPECS[UNDEFINED_NEGATIVE], code=code)


def milliseconds(seconds: float | None) -> int | None:
    """A time as OpenPAI shows it."""
    return None if seconds is None else round(seconds * 1000)


def launched(started_at: float | None, ended_at: float | None) -> int | None:
    """When something began to run, as OpenPAI shows it: of what ended before it ran that is its end."""
    return milliseconds(ended_at if started_at is None else started_at)


def ports_view(ports: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """A task's ports by label: the number as text, or several with commas between."""
    return {label: ",".join(map(str, given)) for label, given in ports.items()}


def _view(code: int) -> ExitSpecView:
    row = exit_spec(code)
    words = (row.phrase, row.issuer, row.causer, row.type, row.stage, row.behavior)
    return ExitSpecView(code, *words, row.reaction, *EXIT_WORDS[code])


_SPECS: Final = {code: _view(code) for code in (*EXIT_SPECS, *RESERVED_SPECS)}
