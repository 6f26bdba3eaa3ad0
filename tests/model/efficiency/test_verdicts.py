"""Figures in, verdict out: what is said of what a job asked for and used."""

from __future__ import annotations

from typing import Any

import pytest

from corral.model.efficiency.figures import Figures, Mean, figures_by_role
from corral.model.efficiency.records import TaskAmounts
from corral.model.efficiency.verdict import NOTHING_MEASURED, JobHeld, RoleHeld, judge, summed
from corral.model.metrics.task_families import TaskMetric
from corral.model.series import SeriesView
from corral.model.usage import GIB, Use

HOUR = 3600.0


def role(devices: float = 8, cpus: float = 16, gib: float = 64, *, name: str = "worker", tasks: int = 1) -> RoleHeld:
    """A role that ran for two hours."""
    seconds = 2 * HOUR * tasks
    use = Use(devices * seconds, 0.0, seconds, cpus * seconds, gib * seconds)
    return RoleHeld(name, tasks, use, round(devices * 1000), round(cpus * 1000), round(gib * GIB))


def job(*roles: RoleHeld, state: str = "succeeded", longest: float = 2 * HOUR, limit: int = 0) -> JobHeld:
    return JobHeld("j1", "train", "ann", "lab", state, 0.0, 2 * HOUR, longest, limit, roles or (role(),))


def figures(**found: Any) -> Figures:
    """Figures of one task: 40 % of 8 devices, of which all were in use; 12 cores at most; 50 GiB at most."""
    usual: dict[str, Any] = {
        "tasks": 1,
        "devices": Mean(40.0, 90.0),
        "devices_in_use": 8,
        "device_memory": Mean(50.0, 75.0),
        "cores": Mean(9.0, 13.5),
        "memory": Mean(30.0 * GIB, 55.0 * GIB),
    }
    return Figures(**usual | found)


@pytest.mark.parametrize(
    ("held", "found", "would_do", "said"),
    [
        pytest.param(role(), figures(), TaskAmounts(), "used 40 % of them.", id="what was asked fits"),
        pytest.param(
            role(), figures(devices=Mean(12.0, 90.0), devices_in_use=2), TaskAmounts(devices=2),
            "No task of worker used more than 2 of its 8 devices: 2 devices would have done.", id="devices never used",
        ),
        pytest.param(
            role(), figures(devices=Mean(0.5, 2.0), devices_in_use=0), TaskAmounts(devices=0),
            "it would have done without", id="no device used",
        ),
        pytest.param(role(), figures(devices=Mean(7.0, 9.0)), TaskAmounts(), "only 7 % of them", id="all used a little"),
        pytest.param(
            role(0.5), figures(devices_in_use=0), TaskAmounts(), "held 0.5 devices",
            id="of a part of a device no smaller one is named",
        ),
        pytest.param(
            role(), figures(cores=Mean(1.0, 3.1)), TaskAmounts(cpus=4),
            "A task of worker used at most 3.1 of 16 processors, 1.0 on average: 4 processors would have done.", id="cpus",
        ),
        pytest.param(
            role(), figures(memory=Mean(GIB, 4.1 * GIB)), TaskAmounts(memory_bytes=6 * GIB),
            "Its memory was at most 4.1 GiB of 64.0 GiB: 6.0 GiB would have done.", id="memory",
        ),
        pytest.param(
            role(), figures(memory=Mean(GIB / 4, GIB / 4)), TaskAmounts(memory_bytes=GIB // 2),
            "256 MiB of 64.0 GiB: 512 MiB would have done.", id="little memory",
        ),
        pytest.param(
            role(0, 0, 0), figures(devices=None, devices_in_use=None), TaskAmounts(),
            "used at most 13.5 processors, 9.0 on average.", id="nothing asked",
        ),
        pytest.param(
            role(), figures(devices=None, devices_in_use=None, device_memory=None), TaskAmounts(),
            "8 devices, 16.0 device-hours in all; their use is not known.", id="use of devices unknown",
        ),
    ],
)  # fmt: skip
def test_a_smaller_request_is_named_where_it_would_have_done(
    held: RoleHeld, found: Figures, would_do: TaskAmounts, said: str
) -> None:
    judged = judge(job(held), {"worker": found})
    (only,) = judged.roles
    assert only.would_do == would_do
    assert said in " ".join(judged.words)


def test_a_job_that_has_just_begun_is_told_no_smaller_request() -> None:
    """What it needs most may come yet."""
    used = {"worker": figures(cores=Mean(5.0, 6.0))}
    (young,) = judge(job(state="running", longest=599.0), used).roles
    assert young.would_do == TaskAmounts(None, None, None)
    for state, longest in (("running", 600.0), ("succeeded", 20.0)):
        (known,) = judge(job(state=state, longest=longest), used).roles
        assert known.would_do.cpus == 8


@pytest.mark.parametrize(
    ("state", "longest", "limit", "would_do", "said"),
    [
        ("succeeded", 600, 86_400, 900, "was 10m of a maxDuration of 1d: 15m would have done."),
        ("succeeded", 4000, 86_400, 5400, "1h30m would have done"),
        ("succeeded", 90_000, 864_000, 129_600, "1d12h would have done"),
        ("succeeded", 80_000, 86_400, None, "of a maxDuration of 1d."),
        ("failed", 600, 86_400, None, "was 10m of a maxDuration of 1d."),
        ("running", 600, 86_400, None, "is so far 10m of"),
        ("succeeded", 600, 0, None, ""),
    ],
)
def test_a_shorter_max_duration_is_named_for_jobs_that_succeeded(
    state: str, longest: float, limit: int, would_do: int | None, said: str
) -> None:
    judged = judge(job(state=state, longest=longest, limit=limit), {"worker": figures()})
    assert judged.would_do_seconds == would_do
    assert said in judged.words[-1] and ("maxDuration" in judged.words[-1]) == bool(limit)


def test_a_job_without_figures_says_so_and_proposes_nothing() -> None:
    judged = judge(job(), {})
    assert judged.words == (NOTHING_MEASURED,)
    assert judged.used_device_seconds is None and judged.measured_device_seconds == 0.0
    assert judged.roles[0].would_do == TaskAmounts() and judged.device_seconds == 16 * HOUR
    assert judge(job(), {}, "This server keeps no series.").words == ("This server keeps no series.",)


def test_roles_and_tasks_that_were_not_measured_are_named_and_the_largest_waste_is_first() -> None:
    judged = judge(
        job(role(1, name="chief"), role(8, name="worker", tasks=4), role(0, name="server")),
        {
            "worker": figures(tasks=3, devices=Mean(50.0, 99.0)),
            "chief": figures(devices=Mean(0.0, 0.0), devices_in_use=0),
        },
    )
    assert [each.role for each in judged.roles] == ["worker", "chief", "server"]
    assert "Of the role worker, 3 of 4 tasks were measured." in judged.words
    assert "Nothing was measured of the role server." in judged.words
    assert judged.used_device_seconds == 32 * HOUR
    assert summed("ann", Use(100 * HOUR, HOUR), [judged, judged]).measured_device_seconds == 2 * 66 * HOUR


def series(family: str, mean: tuple[float | None, ...], high: tuple[float | None, ...], **labels: str) -> SeriesView:
    return SeriesView(family, {"role_name": "worker", "task_index": "0"} | labels, mean, mean, high)


def test_figures_are_means_over_steps_and_series_and_the_greatest_values() -> None:
    found = figures_by_role(
        [
            series(TaskMetric.CPU, (100.0, None, 300.0), (100.0, None, 500.0)),
            series(TaskMetric.CPU, (None, None, 0.0), (None, None, 0.0), task_index="1"),
            series(TaskMetric.DEVICE, (80.0, 100.0), (90.0, 100.0), minor_number="0"),
            series(TaskMetric.DEVICE, (0.0, 0.0), (4.9, 0.0), minor_number="1"),
            series(TaskMetric.DEVICE, (0.0, 10.0), (0.0, 5.0), minor_number="2"),
            series(TaskMetric.DEVICE, (None, None), (None, None), minor_number="3"),
            series(TaskMetric.MEMORY, (GIB,), (2 * GIB,), role_name="server"),
        ]
    )
    worker = found["worker"]
    assert worker.cores == Mean(1.0, 5.0) and worker.memory is None
    assert worker.devices == Mean((90 + 0 + 5) / 3, 100.0) and worker.devices_in_use == 2
    assert worker.tasks == 2 and found["server"] == Figures(1, memory=Mean(GIB, 2 * GIB))


def test_a_driver_that_tells_more_than_all_counts_as_all() -> None:
    judged = judge(job(), {"worker": figures(devices=Mean(180.0, 200.0), devices_in_use=12)})
    assert judged.used_device_seconds == judged.device_seconds and judged.roles[0].most.devices == 8
