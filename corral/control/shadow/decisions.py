"""The decisions of a scheduler as they are compared: jobs that start, are preempted, or change their size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec

from corral.control.core.core import Core
from corral.kernel.ids import JobId
from corral.model.store_writes import ControlBatch, FactWrite


class Kind(StrEnum):
    """What was decided of a job."""

    START = "start"
    """It was placed whole, or with as many tasks as it begins with."""
    PREEMPT = "preempt"
    """It gives all its devices back and waits again."""
    RESIZE = "resize"
    """Tasks of an elastic job join or leave it, or a task is placed again."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One decision of one scheduler."""

    at: float
    """Seconds since 1970."""
    kind: Kind
    job: JobId
    name: str = ""
    user: str = ""
    queue: str = ""
    nodes: tuple[str, ...] = ()
    """The nodes of the tasks that were placed; a node is named once for each of them."""
    why: str = ""
    """Why the job is preempted or shrunk."""


_LEAVES: Final = {"job.preempted": Kind.PREEMPT, "job.shrunk": Kind.RESIZE}


class DecisionReader:
    """Reads the decisions from what each step of a core stores."""

    def __init__(self, core: Core) -> None:
        self._waiting = {job.id for job in core.world.jobs.values() if not job.placements()}
        """The jobs none of whose tasks has a place."""

    def read(self, writes: ControlBatch, core: Core) -> Iterator[Decision]:
        """The decisions of a step that the core has just made, in order."""
        for each in writes.facts:
            kind = each.fact.kind
            if kind == "job.queued":
                self._waiting.add(each.job)
            elif kind == "job.placed":
                made = Kind.START if each.job in self._waiting else Kind.RESIZE
                self._waiting.discard(each.job)
                yield _decision(each, made, core, nodes=tuple(sorted(_nodes(writes, each.job))))
            elif kind in _LEAVES:
                yield _decision(each, _LEAVES[kind], core, why=each.fact.message)
            elif kind == "job.completed":
                self._waiting.discard(each.job)


def _decision(fact: FactWrite, kind: Kind, core: Core, *, nodes: tuple[str, ...] = (), why: str = "") -> Decision:
    job = core.world.jobs.get(fact.job)
    name, user, queue = ("", "", "") if job is None else (job.name, job.user, job.terms.queue)
    return Decision(fact.at, kind, fact.job, name, user, queue, nodes, why)


def _nodes(writes: ControlBatch, job: JobId) -> Iterable[str]:
    for task in writes.tasks:
        if task.job == job and task.run is not None and task.run.placement is not None:
            yield task.run.placement.node
