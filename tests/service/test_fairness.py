"""The weekly report on fairness, from stored jobs and attempts of a known week."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.errors import Forbidden, InvalidInput
from corral.model.accounts import QueueRecord
from corral.model.fairness import week_of
from corral.model.inventory import Device, Node
from corral.model.records import rfc3339
from corral.model.store_writes import JobWrite, NewJob
from corral.service.service import Service
from tests.service.conftest import ANN, BOB, ROOT, START
from tests.store.makers import ME, attempted, batch, ended, new_job

HOUR = 3600.0
MONDAY = week_of("2023-W45", 0.0)[0]
"""Before the clock of these tests, which says 2023-11-14."""


def job_of(queue: str, devices: float, hour: float) -> NewJob:
    """A job that was submitted so many hours into the week."""
    job = new_job(queue=queue, created_at=MONDAY + hour * HOUR)
    return msgspec.structs.replace(job, summary=msgspec.structs.replace(job.summary, devices=devices))


def ran(job: NewJob, start: float, end: float) -> JobWrite:
    write = ended(job, at=MONDAY + end * HOUR)
    return msgspec.structs.replace(write, run=msgspec.structs.replace(write.run, started_at=MONDAY + start * HOUR))


async def lived(service: Service) -> str:
    """Queue a holds all 4 devices for 4 hours; b (below the queue lab) wants 4 from the first hour on, and gets 4 later."""
    store = service.context.store
    lease = await store.lead(ME)
    assert lease is not None
    await store.put_queues([QueueRecord("a"), QueueRecord("lab", {"weight": 3}), QueueRecord("b", {"parent": "lab"})])
    first, second = job_of("a", 4, 0.0), job_of("b", 4, 0.0)
    for job in (first, second):
        await store.submit(job)
    attempts = (
        attempted(first.id, started_at=MONDAY, ended_at=MONDAY + 4 * HOUR, code=0, device_millis=4000),
        attempted(second.id, started_at=MONDAY + 4 * HOUR, ended_at=MONDAY + 6 * HOUR, code=0, device_millis=4000),
    )
    await store.commit(batch(lease.epoch, jobs=(ran(first, 0.0, 4.0), ran(second, 4.0, 6.0)), attempts=attempts))
    return second.id


async def have_four_devices(service: Service) -> None:
    """Two nodes with two devices each."""
    lease = await service.context.store.lead(ME)
    assert lease is not None
    nodes = [
        Node(f"local/n{number}", devices=tuple(Device(index, f"n{number}:{index}") for index in (0, 1)))
        for number in (1, 2)
    ]
    await service.context.store.put_nodes(lease.epoch, "local", nodes, START)


async def test_owed_and_got_waits_and_ratios_of_a_week(service: Service) -> None:
    late = await lived(service)
    report = await service.fairness.report(ANN, week="2023-W45")
    assert (report.begin, report.end) == (rfc3339(MONDAY), rfc3339(MONDAY + 7 * 24 * HOUR))
    a, lab = report.items
    assert (a.queue, a.owed, a.got, a.ratio) == ("a", 4 * HOUR, 16 * HOUR, 4.0)
    assert (lab.queue, lab.owed, lab.got, lab.ratio) == ("lab", (12 + 8) * HOUR, 8 * HOUR, 0.4)
    assert (lab.started, lab.wait_p50, lab.wait_p95) == (1, 4 * HOUR, 4 * HOUR)
    assert (a.worst_finish_time_ratio, lab.worst_finish_time_ratio, lab.worst_job) == (1.0, 3.0, late)
    assert report.worst_finish_time_ratio == 3.0 and (report.wait_p50, report.wait_p95) == (0.0, 4 * HOUR)
    assert report.jain == pytest.approx((4.0 + 0.4) ** 2 / (2 * (16 + 0.16)), abs=1e-4)
    assert report.unknown == (
        "Weights and deserved amounts are those of now; changes during the week are not counted.",
        "Finish-time fairness counts the devices of the machines that are known now, whatever there was then.",
    )


async def test_t1_each_job_and_user_has_a_finish_time_fairness(service: Service) -> None:
    """T1 of scheduling.md: both want all 4 devices for 4 and 2 hours, one after the other; each half would take 2x as long.

    The first had two jobs in the system for its 4 hours, so alone on a half it would have taken 8. The second had two for
    4 of its 6 hours: 1.67 jobs in the mean, and 2 x 1.67 hours alone.
    """
    late = await lived(service)
    await have_four_devices(service)
    report = await service.fairness.report(ROOT, week="2023-W45")
    assert [each.rho for each in report.jobs] == [pytest.approx(6 / (2 * 10 / 6), abs=1e-3), 0.5]
    worst = report.jobs[0]
    assert (worst.job, worst.devices, worst.seconds, worst.needed_seconds) == (late, 4.0, 6 * HOUR, 2 * HOUR)
    (user,) = report.users
    assert (user.user, user.jobs, user.rho_p50, user.worst_rho, user.worst_job) == ("ann", 2, 0.5, 1.8, late)
    assert any("the machines that are known now" in said for said in report.unknown)


async def test_t1_equal_jobs_on_an_idle_cluster_have_a_ratio_of_one(service: Service) -> None:
    await have_four_devices(service)
    store = service.context.store
    lease = await store.lead(ME)
    assert lease is not None
    jobs = [job_of("a", 1, hour) for hour in (0.0, 1.0, 2.0, 2.0)]
    seconds = (HOUR, HOUR, HOUR, 3.0)  # the last one is short, and took half a second to start
    for job, ran_for in zip(jobs, seconds, strict=True):
        await store.submit(job)
        begun = job.created_at + 0.5
        attempt = attempted(job.id, started_at=begun, ended_at=begun + ran_for, code=0, device_millis=1000)
        start = (begun - MONDAY) / HOUR
        write = ran(job, start, start + ran_for / HOUR)
        await store.commit(batch(lease.epoch, jobs=(write,), attempts=(attempt,)))
    report = await service.fairness.report(ROOT, week="2023-W45")
    assert len(report.jobs) == 4 and all(each.rho == pytest.approx(1.0, abs=0.01) for each in report.jobs)


async def test_others_see_the_ratios_of_their_own_jobs_alone(service: Service) -> None:
    await lived(service)
    await have_four_devices(service)
    own = await service.fairness.report(ANN, week="2023-W45")
    assert len(own.jobs) == 2 and own == await service.fairness.report(ANN, week="2023-W45", user="ann")
    bob = await service.fairness.report(BOB, week="2023-W45")
    assert (bob.jobs, bob.users) == ((), ()) and bob.items == own.items
    with pytest.raises(Forbidden, match="told to administrators"):
        await service.fairness.report(BOB, week="2023-W45", user="ann")


async def test_without_machines_no_job_has_a_ratio(service: Service) -> None:
    await lived(service)
    assert (await service.fairness.report(ROOT, week="2023-W45")).jobs == ()


async def test_a_report_says_what_the_records_do_not_tell(service: Service) -> None:
    late = await lived(service)
    store = service.context.store
    lease = await store.lead(ME)
    assert lease is not None
    unsized = job_of("a", 0, 0.0)
    await store.submit(unsized)
    attempt = attempted(unsized.id, started_at=MONDAY, ended_at=MONDAY + HOUR, code=0, device_millis=1000)
    await store.commit(batch(lease.epoch, jobs=(ran(unsized, 0.0, 1.0),), attempts=(attempt,)))
    await store.commit(batch(lease.epoch, removed_jobs=(late,)))
    report = await service.fairness.report(ANN, week="2023-W45")
    assert "Jobs that were removed since held 8.0 device-hours; they are not counted here." in report.unknown
    assert any(said.startswith("How many devices 1 jobs of an earlier version") for said in report.unknown)
    assert [row.queue for row in report.items] == ["a"] and report.items[0].ratio == 1.0


async def test_a_week_in_which_nothing_ran_has_no_index(service: Service) -> None:
    report = await service.fairness.report(ANN)
    assert (report.items, report.jain, report.wait_p50, report.worst_finish_time_ratio) == ((), None, None, None)
    this = await service.fairness.report(ANN, week="2023-W46")
    assert "The week is not over: it is counted up to now." in this.unknown


@pytest.mark.parametrize("week", ["last", "2023-W99", "x" * 500, "2030-W01"])
async def test_what_is_no_week_is_refused(service: Service, week: str) -> None:
    assert START > MONDAY
    with pytest.raises(InvalidInput, match=r"A week is written as 2026-W48|has not begun"):
        await service.fairness.report(ANN, week=week)
