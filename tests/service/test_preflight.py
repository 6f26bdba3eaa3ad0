"""What tasks checked before their commands began is judged by where they are, and read by all who may read the job."""

from __future__ import annotations

from typing import Any

import pytest

from corral.kernel.errors import NotFound
from corral.kernel.ids import JobId, TaskKey, attempt_id
from corral.kernel.tokens import mint_job_token
from corral.model.inventory import Node
from corral.model.placement import TaskPlacement
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import ControlBatch, TaskWrite
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY, START, job_text


async def placed(service: Service, store: Store, epoch: int, more: str = "preflight: network\n") -> JobId:
    """A job of Ann with a task on each of two nodes."""
    detail = (await service.submission.submit(ANN, job_text(replicas=2, more=more))).detail
    assert detail is not None
    job = JobId(detail.id)
    runs = [
        TaskRun(
            "worker", at, TaskState.RUNNING, started_at=START, placement=TaskPlacement("worker", at, f"local/n{at + 1}")
        )
        for at in (0, 1)
    ]
    tasks = tuple(TaskWrite(job, TaskKey("worker", run.index), run) for run in runs)
    await store.commit(ControlBatch(epoch, tasks=tasks))
    return job


def told(job: JobId, index: int, **more: Any) -> dict[str, Any]:
    other = f"worker-{1 - index}"
    body = {
        "attempt": str(attempt_id(job, 0, "worker", index, 0)), "kind": "network", "message": "It measured.",
        "tasks": 2, "seconds": 0.3, "ways": [[other, 1e9, 2e-5]], "missed": [], "next": other, "ring": 5e8,
    }  # fmt: skip
    return body | more


async def report(service: Service, job: JobId, *bodies: dict[str, Any]) -> None:
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    for body in bodies:
        await service.runtime_calls.report(actor, body)


async def test_what_tasks_measured_is_judged_by_the_places_of_their_nodes(
    service: Service, store: Store, epoch: int, machines: list[Node]
) -> None:
    job = await placed(service, store, epoch)
    assert (await service.preflights.of_job(ANN, job)).network is None
    missed = [["worker-0", "it did not answer in time"]]
    await report(service, job, told(job, 0), told(job, 1, ways=[], missed=missed))
    for actor in (ANN, BOB):
        found = await service.preflights.of_job(actor, "digits" if actor is ANN else job)
        assert (found.attempt, found.checks) == (0, ("network",)) and found.network is not None
        (way,) = found.network.ways
        assert (way.source, way.target, way.level, way.bytes_per_second) == ("worker-0", "worker-1", "cluster", 1e9)
        assert found.network.findings == (
            "worker-1 could not measure its network to worker-0: it did not answer in time.",
        )
    with pytest.raises(NotFound):
        await service.preflights.of_job(ANN, "nothing")


@pytest.mark.parametrize(
    "odd",
    [
        {"ways": [["worker-1", "fast", None]]},
        {"ways": [["worker-1", -1, None]]},
        {"ways": [["x" * 200, 1, None]]},
        {"tasks": 10**9},
        {"ring": "NaN"},
        {"seconds": None},
    ],
)
async def test_a_report_that_no_runtime_wrote_is_left_out(
    service: Service, store: Store, epoch: int, machines: list[Node], odd: dict[str, Any]
) -> None:
    job = await placed(service, store, epoch)
    await report(service, job, told(job, 0), told(job, 1, **odd))
    found = (await service.preflights.of_job(ANN, job)).network
    assert found is not None and [way.source for way in found.ways] == ["worker-0"]
    assert found.findings == ("1 of 2 tasks told what they measured.",)


async def test_a_way_to_a_task_that_the_job_does_not_have_is_left_out(
    service: Service, store: Store, epoch: int, machines: list[Node]
) -> None:
    job = await placed(service, store, epoch)
    await report(service, job, told(job, 0, ways=[["worker-9", 1e9, None]], next="worker-9"))
    found = (await service.preflights.of_job(ANN, job)).network
    assert found is not None and (found.ways, found.ring) == ((), ())


async def test_a_job_that_asks_for_nothing_has_no_report_and_another_attempt_has_its_own(
    service: Service, store: Store, epoch: int, machines: list[Node]
) -> None:
    job = await placed(service, store, epoch, more="")
    await report(service, job, told(job, 0))
    assert (await service.preflights.of_job(ANN, job)).network is None
    assert await store.task_reports(job, "network", 0) != []
    assert await store.task_reports(job, "network", 1) == []


async def test_what_tasks_read_of_their_machines_is_judged_and_nonsense_is_left_out(
    service: Service, store: Store, epoch: int, machines: list[Node]
) -> None:
    job = await placed(service, store, epoch, more="preflight: [platform]\n")
    first, second = (
        {"attempt": str(attempt_id(job, 0, "worker", index, 0)), "kind": "platform", "message": "It read."}
        for index in (0, 1)
    )
    await report(service, job, first | {"facts": {"kernel": "6.1", "hugePages": "never", "newer": [1]}})
    await report(service, job, second | {"facts": {"kernel": "6.1", "throttled": "often"}}, second | {"facts": None})
    found = await service.preflights.of_job(BOB, job)
    assert found.network is None and found.platform is not None
    (machine,) = found.platform.machines
    assert (machine.task, machine.node, machine.facts.kernel) == ("worker-0", "local/n1", "6.1")
    assert machine.findings == ("Transparent huge pages are off; madvise lets programs ask for them.",)
