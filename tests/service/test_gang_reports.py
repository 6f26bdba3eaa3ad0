"""What tasks of a gang reported between two stored reports of their job goes with the next one."""

from __future__ import annotations

from corral.kernel.ids import AttemptKey, JobId
from corral.model.runs import TaskStep
from corral.service.jobs.gang_reports import MOST_AT_ONCE, GangReports


def task(index: int, attempt: int = 0, job: str = "job") -> AttemptKey:
    return AttemptKey(JobId(job), attempt, "worker", index, 0)


def note(reports: GangReports, key: AttemptKey, step: float, at: float, steps: float | None) -> None:
    reports.note(key, TaskStep(key.role, key.index, step, at, steps))


def test_steps_of_others_go_with_the_next_report_once_and_those_that_waited_longest_go_first() -> None:
    reports = GangReports()
    for index in range(MOST_AT_ONCE + 3):
        note(reports, task(index), 1.0, 10.0, None)
    first = reports.others(task(0))
    assert [each.index for each in first] == [*range(1, MOST_AT_ONCE + 1)]
    reports.told(task(0), first)
    for index in range(1, 3):
        note(reports, task(index), 2.0, 20.0, None)
    rest = reports.others(task(0))
    assert [(each.index, each.step) for each in rest] == [(17, 1.0), (18, 1.0), (1, 2.0), (2, 2.0)]


def test_a_step_that_changed_while_it_was_stored_goes_again() -> None:
    reports = GangReports()
    note(reports, task(1), 1.0, 10.0, 50.0)
    taken = reports.others(task(0))
    note(reports, task(1), 2.0, 20.0, 50.0)
    reports.told(task(0), taken)
    assert [(each.index, each.step, each.steps) for each in reports.others(task(0))] == [(1, 2.0, 50.0)]


def test_steps_of_another_attempt_of_the_job_are_forgotten() -> None:
    reports = GangReports()
    note(reports, task(1), 9.0, 10.0, None)
    assert reports.others(task(0, attempt=1)) == ()
    note(reports, task(2, attempt=1), 1.0, 20.0, None)
    note(reports, task(1), 10.0, 21.0, None)
    assert [each.index for each in reports.others(task(0, attempt=1))] == [2]


def test_jobs_and_tasks_are_bounded() -> None:
    reports = GangReports()
    for number in range(2_001):
        note(reports, task(1, job=f"job{number}"), 1.0, 1.0, None)
    assert reports.others(task(0, job="job0")) == () and reports.others(task(0, job="job2000"))
    for index in range(600):
        note(reports, task(index, job="wide"), 1.0, 1.0, None)
    seen = 0
    while found := reports.others(task(600, job="wide")):
        seen += len(found)
        reports.told(task(600, job="wide"), found)
    assert seen == 512
