"""Who is told what jobs asked for and used, and that the sums agree with the attempts in the store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.kernel.errors import CorralError, Forbidden, InvalidInput, Unavailable
from corral.model.metrics.task_families import TaskMetric
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.usage import DAY, GIB, Use
from corral.service.actor import Actor
from corral.service.control_client import NoControl
from corral.service.service import Service
from corral.service.usage import efficiency as reports
from corral.store import Store
from tests.examples import examples
from tests.service.conftest import ANN, ROOT, START
from tests.store.makers import ME, attempted, batch, ended, new_job
from tests.store.test_usage import DAY_0, MADE, Made, _forget, expected, lived

HOUR = 3600.0


class Measured(NoControl):
    """Control, which has the use of two devices of each job: 60 % and nothing."""

    def __init__(self, trouble: CorralError | None = None, left_out: int = 0) -> None:
        self.questions: list[SeriesQuestion] = []
        self._trouble, self._left_out = trouble, left_out

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        assert path == "/series"
        question = msgspec.convert(body, SeriesQuestion)
        self.questions.append(question)
        if self._trouble is not None:
            raise self._trouble
        labels = {"role_name": "worker", "task_index": "0"}
        found = [
            SeriesView(TaskMetric.DEVICE, labels | {"minor_number": str(at)}, (use,), (use,), (use,))
            for at, use in enumerate((60.0, 0.0))
        ]
        left_out = self._left_out if len(question.families) > 1 else 0
        return msgspec.to_builtins([found if TaskMetric.DEVICE in question.families else [], left_out])


async def ran(service: Service) -> list[str]:
    """Ann and Bob each hold two devices for an hour in queue research; the ids of their jobs."""
    lease = await service.context.store.lead(ME)
    assert lease is not None
    jobs = [new_job(user=user, queue="research") for user in ("ann", "bob")]
    attempts = []
    for job in jobs:
        await service.context.store.submit(job)
        attempts.append(
            attempted(
                job.id, user=job.user, node="local/n1", device_millis=2000, cpu_millis=4000, memory_bytes=8 * GIB,
                code=0, started_at=START - 2 * HOUR, ended_at=START - HOUR,
            )
        )  # fmt: skip
    await service.context.store.commit(batch(lease.epoch, attempts=tuple(attempts), jobs=tuple(map(ended, jobs))))
    return [job.id for job in jobs]


async def test_a_jobs_owner_managers_and_administrators_are_told_what_it_used(service: Service) -> None:
    ids = await ran(service)
    service.context.control = control = Measured()
    manager = msgspec.structs.replace(Actor("eve", token_id="t-eve"), manages=("research",))
    for actor in (ANN, ROOT, manager):
        said = await service.efficiency.of_job(actor, ids[0])
        assert (said.device_seconds, said.used_device_seconds) == (2 * HOUR, 0.3 * 2 * HOUR)
        assert said.roles[0].would_do.devices == 1
        assert "No task of worker used more than 1 of its 2 devices: 1 device would have done." in said.words
    assert control.questions[-1].job == ids[0] and control.questions[-1].steps <= 50
    with pytest.raises(Forbidden):
        await service.efficiency.of_job(ANN, ids[1])


async def test_a_report_is_of_those_jobs_that_one_may_see_with_sums_by_user(service: Service) -> None:
    ids = await ran(service)
    service.context.control = Measured()
    every = await service.efficiency.report(ROOT)
    assert {each.job for each in every.items} == set(ids) and every.left_out == 0
    assert (every.total.device_seconds, every.total.used_device_seconds) == (4 * HOUR, 0.3 * 4 * HOUR)
    assert {each.key: each.used_device_seconds for each in every.users} == {"ann": 0.6 * HOUR, "bob": 0.6 * HOUR}
    assert [each.job for each in (await service.efficiency.report(ANN)).items] == [ids[0]]
    assert [each.job for each in (await service.efficiency.report(ROOT, user="bob")).items] == [ids[1]]
    with pytest.raises(Forbidden):
        await service.efficiency.report(ANN, user="bob")
    assert (await service.efficiency.report(ROOT, end="2001-01-01")).items == ()


async def test_only_the_largest_jobs_are_listed_and_all_are_in_the_sums(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST_JOBS", 1)
    await ran(service)
    service.context.control = Measured()
    found = await service.efficiency.report(ROOT, queue="research")
    assert (len(found.items), found.left_out) == (1, 1)
    assert found.total.device_seconds == 4 * HOUR and found.total.measured_device_seconds == 2 * HOUR


async def test_without_figures_the_reason_is_told_and_a_job_that_has_not_run_is_refused(service: Service) -> None:
    ids = await ran(service)
    service.context.control = Measured(Unavailable("no-series", "This server keeps no series."))
    said = await service.efficiency.of_job(ANN, ids[0])
    assert said.words == ("The figures of this job cannot be read: This server keeps no series.",)
    assert said.used_device_seconds is None
    waiting = new_job(name="waits", user="ann")
    await service.context.store.submit(waiting)
    with pytest.raises(InvalidInput, match="waits has not run"):
        await service.efficiency.of_job(ANN, waiting.id)


async def test_a_job_with_more_series_than_an_answer_holds_is_asked_for_by_family(service: Service) -> None:
    ids = await ran(service)
    service.context.control = control = Measured(left_out=7)
    assert (await service.efficiency.of_job(ANN, ids[0])).used_device_seconds == 0.6 * HOUR
    assert [len(each.families) for each in control.questions] == [4, 1, 1, 1, 1]


async def _unmeasured(question: SeriesQuestion) -> tuple[list[SeriesView], int]:
    return [], 0


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MADE, max_size=12), st.floats(0, 3 * DAY), st.floats(1, 2 * DAY))
async def test_sums_agree_with_the_stores_attempts(
    service: Service, made: list[Made], begin: float, length: float
) -> None:
    store: Store = service.context.store
    ids, epoch = await lived(store, made)
    since, now = DAY_0 + begin, DAY_0 + 10 * DAY
    try:
        report = await reports.report_between(store, _unmeasured, since, since + length, now)
        held = await store.held_between(since, since + length, ids, now=now)
    finally:
        await store.commit(batch(epoch, removed_jobs=tuple(ids)))
        await _forget(store)
    sums = expected(made, since, since + length, ids)
    for each in held:
        found = [sum(values) for values in zip(*(role.use for role in each.roles), strict=True)]
        assert found == pytest.approx(sums[each.job], abs=0.01)
    for item in report.items:
        assert (item.device_seconds, item.lost_device_seconds) == pytest.approx(sums[item.job][:2], abs=0.01)
    assert {each.job for each in held} == {item.job for item in report.items} == set(sums)
    total = [sum(values) for values in zip(*sums.values(), strict=True)] or list(Use())
    assert (report.total.device_seconds, report.total.lost_device_seconds) == pytest.approx(total[:2], abs=0.01)
    assert sum(each.device_seconds for each in report.users) == pytest.approx(total[0], abs=0.01)
