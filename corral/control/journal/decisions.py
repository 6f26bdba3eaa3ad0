"""What a batch decided: its hash, and its commands in short."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

import msgspec

from corral.control.core.core import Batch
from corral.control.journal.records import EVENT, Decision
from corral.kernel.ids import parse_attempt_id
from corral.model.commands import ForgetTask, StartTask
from corral.model.store_writes import ControlBatch

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_SIZE: Final = 8
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


def _reasons(writes: ControlBatch) -> dict[str, str]:
    """Why jobs give devices back, by job."""
    return {fact.job: fact.fact.message for fact in writes.facts if fact.fact.kind == "job.preempted"}


def _sorted(name: str, part: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(part, key=_UNORDERED[name]))
