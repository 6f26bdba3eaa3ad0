"""What the tasks of a job checked before their commands began: their reports, judged by where the tasks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from corral.model.preflight.network import NetworkReport, Place, TaskNetwork, judge
from corral.model.preflight.platform import MachineFacts, PlatformReport, judge_machines
from corral.model.preflight.report import PreflightReport
from corral.model.records import EventRecord
from corral.service.actor import Actor
from corral.service.context import Context
from corral.spec.job import UnifiedJob

_EVERY_TASK: Final = 20_000
_Rate = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
_Why = Annotated[str, msgspec.Meta(max_length=200)]


class _Told(msgspec.Struct):
    """A report of the runtime's check of the network, which a task could have written itself."""

    tasks: Annotated[int, msgspec.Meta(ge=0, le=_EVERY_TASK)]
    seconds: _Seconds
    ways: list[tuple[_Name, _Rate, _Seconds | None]] = []
    missed: list[tuple[_Name, _Why]] = []
    next: Annotated[str, msgspec.Meta(max_length=100)] = ""
    ring: _Rate | None = None


class Preflights:
    """The preflight checks of jobs."""

    def __init__(self, context: Context) -> None:
        self._context, self._store = context, context.store

    async def of_job(self, actor: Actor, ref: str) -> PreflightReport:
        """What the tasks of the job's current attempt checked."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        checks = tuple(UnifiedJob.model_validate_json(record.doc).spec.preflight.checks)
        if not checks:
            return PreflightReport(record.run.attempt, ())
        places = await self._places(record.id)
        told = await self._store.task_reports(record.id, "network", record.run.attempt)
        machines = await self._store.task_reports(record.id, "platform", record.run.attempt)
        return PreflightReport(record.run.attempt, checks, _network(told, places), _platform(machines, places))

    async def _places(self, job: str) -> dict[str, Place]:
        cells = {row.node.name: row.node.cells for row in await self._store.nodes()}
        tasks = (await self._store.job_tasks(job, limit=_EVERY_TASK)).items
        return {f"{task.role}-{task.index}": Place(task.node, cells.get(task.node, ())) for task in tasks if task.node}


def _network(reports: Sequence[EventRecord], places: Mapping[str, Place]) -> NetworkReport | None:
    found: dict[str, TaskNetwork] = {}
    for report in reports:
        try:
            told = msgspec.convert(report.data, _Told)
        except msgspec.ValidationError:
            continue  # it is another program's report of the same name
        known = [way for way in told.ways if way[0] in places]
        found[f"{report.role}-{report.index}"] = TaskNetwork(
            told.tasks,
            told.seconds,
            tuple(known),
            tuple(told.missed),
            told.next if told.next in places else "",
            told.ring,
        )
    return judge(found, places, reports[-1].at) if found else None


def _platform(reports: Sequence[EventRecord], places: Mapping[str, Place]) -> PlatformReport | None:
    found = []
    for report in reports:
        task = f"{report.role}-{report.index}"
        try:
            facts = msgspec.convert(report.data.get("facts"), MachineFacts)
        except msgspec.ValidationError:
            continue
        if task in places:
            found.append((task, places[task].node, facts))
    return judge_machines(found, reports[-1].at) if found else None
