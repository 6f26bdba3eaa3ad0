"""What a batch decided: its hash, and its commands in short."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from corral.control.core.core import Batch
from corral.control.journal.records import EVENT, WAIT, Decision
from corral.kernel.ids import parse_attempt_id
from corral.model.commands import ForgetTask, StartTask
from corral.model.records import JobSummary
from corral.model.store_writes import ControlBatch, LiveJob
from corral.spec.errors import shorten

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_SIZE: Final = 8
_KEPT: Final = 4
"""The most reasons to wait that a step of a journal has."""
_LONGEST: Final = 300
"""The most characters of a reason to wait."""
_UNORDERED: Final[dict[str, Callable[[Any], Any] | None]] = {
    "usage": attrgetter("queue"),
    "usage_forgotten": None,
    "user_usage": attrgetter("queue", "user"),
    "user_usage_forgotten": None,
}
"""The parts of a batch whose order means nothing, with the key by which they are sorted."""
NOTHING: Final = b""
"""The hash of a batch that stores nothing."""


def digest_of(batch: Batch) -> bytes:
    """The hash of all that a batch stores: BLAKE2b of 8 bytes; empty if it stores nothing.

    The parts that a batch has in the order of a set, which varies between processes, are sorted first.
    """
    writes = batch.writes
    if writes is None:
        return NOTHING
    changed = {name: _sorted(name, part) for name in _UNORDERED if len(part := getattr(writes, name)) > 1}
    if changed:
        writes = msgspec.structs.replace(writes, **changed)
    return hashlib.blake2b(_ENCODER.encode(writes), digest_size=_SIZE).digest()


def decisions_of(batch: Batch) -> tuple[Decision, ...]:
    """The starts and stops of a batch, in order, with the places and the reasons."""
    writes = batch.writes
    if writes is None or not writes.outbox_add:
        return ()
    placements = {(task.job, task.key): task.run.placement for task in writes.tasks if task.run is not None}
    reasons = _reasons(writes)
    found = []
    for job, command in writes.outbox_add:
        if isinstance(command, ForgetTask):
            continue
        if isinstance(command, StartTask):
            place = placements.get((job, parse_attempt_id(command.attempt).task))
            node, devices = (place.node, place.devices) if place is not None else ("", ())
            found.append(Decision("start", command.attempt, node, devices))
        else:
            found.append(Decision("stop", command.attempt, why=reasons.get(job, "")))
    return tuple(found)


def events_of(batch: Batch) -> tuple[Decision, ...]:
    """What a batch says of jobs, in order, each with the job instead of an attempt."""
    facts = () if batch.writes is None else batch.writes.facts
    return tuple(Decision(EVENT, each.job, why=each.fact.message) for each in facts)


class WaitingReasons:
    """Why jobs wait, as batches say it."""

    def __init__(self, jobs: Iterable[LiveJob] = ()) -> None:
        self.known = {job.id: why for job in jobs if (why := _reason(job.summary))}
        """By job that waits, why."""

    def follow(self, batch: Batch) -> tuple[Decision, ...]:
        """Take over what a batch says; returns what it changes, in its order."""
        if batch.writes is None:
            return ()
        found = []
        for job in batch.writes.jobs:
            why = _reason(job.summary)
            if not why:
                self.known.pop(job.id, None)
            elif self.known.get(job.id) != why:
                self.known[job.id] = why
                found.append(Decision(WAIT, job.id, why=why))
        return tuple(found)


def first_waits(decisions: Sequence[Decision], waits: Sequence[Decision]) -> tuple[Decision, ...]:
    """What a journal keeps of the reasons that a step changes: some of them, cut, if it starts or stops anything.

    A replay has the others: up to the first step that differs it finds the same ones.
    """
    kept = waits[:_KEPT] if decisions else ()
    return tuple(Decision(each.verb, each.attempt, why=shorten(each.why, _LONGEST)) for each in kept)


def _reason(summary: JobSummary) -> str:
    """Why a job waits; "" if it does not, or nobody knows."""
    return "" if summary.waiting is None else summary.waiting.message


def _reasons(writes: ControlBatch) -> dict[str, str]:
    """Why jobs give devices back, by job."""
    return {fact.job: fact.fact.message for fact in writes.facts if fact.fact.kind == "job.preempted"}


def _sorted(name: str, part: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(part, key=_UNORDERED[name]))
