"""A job's waiting time is the sum of its waits, without the time that it ran or was suspended."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.launcher import LaunchPolicy, create, step
from corral.launcher.wait_time import count_wait
from corral.model.events import JobEvent, Placed, Preempted, ResumeRequested, StopRequested, SuspendRequested
from corral.model.launch import Exited, Started
from corral.model.placement import Placement, TaskPlacement
from corral.model.plan import Rule
from corral.model.runs import JobRun, TaskRun
from corral.model.states import JobState
from tests.launcher.driver import role, view

JOB = JobId("j000000000000")


@dataclass
class Life:
    """A job of one task, and the times of its events."""

    run: JobRun = field(init=False)
    tasks: dict[TaskKey, TaskRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = create(JOB, view(role("worker")), 100.0)
        self.run = made.job
        self._take(made.tasks)

    def at(self, now: float, event: JobEvent) -> None:
        done = step(view(role("worker")), self.run, self.tasks, event, now, LaunchPolicy())
        self.run = done.job
        self._take(done.tasks)

    def _take(self, changed: dict[TaskKey, TaskRun | None]) -> None:
        for key, task in changed.items():
            if task is None:
                del self.tasks[key]
            else:
                self.tasks[key] = task

    @property
    def attempt(self) -> AttemptId:
        return self.run.attempt_of(self.tasks[TaskKey("worker", 0)])

    def placed(self, now: float) -> None:
        self.at(now, Placed(self.run.attempt, Placement((TaskPlacement("worker", 0, "local/n1"),))))

    def starts(self, now: float) -> None:
        self.at(now, Started(self.attempt, now))

    def ends(self, now: float) -> None:
        self.at(now, Exited(self.attempt, now, 143))


def test_two_waits_are_summed_and_the_run_between_them_is_not() -> None:
    life = Life()
    assert (life.run.waited, life.run.waits_since) == (0.0, 100.0)
    life.placed(130.0)
    life.starts(140.0)
    assert (life.run.waited, life.run.waits_since) == (40.0, None)
    life.at(1000.0, Preempted(0, Rule.SUSPENDED, "for another job"))
    assert (life.run.waited, life.run.waits_since) == (40.0, None), "while it ends it does not wait"
    life.ends(1010.0)
    assert (life.run.waited, life.run.waits_since) == (40.0, 1010.0)
    life.placed(1020.0)
    life.starts(1030.0)
    assert (life.run.waited, life.run.waits_since) == (60.0, None)


def test_a_suspended_job_does_not_wait() -> None:
    life = Life()
    life.at(110.0, SuspendRequested("ada"))
    assert (life.run.waited, life.run.waits_since) == (10.0, None)
    life.at(500.0, ResumeRequested("ada"))
    assert life.run.waits_since == 500.0
    life.at(505.0, StopRequested("ada"))
    assert (life.run.waited, life.run.waits_since) == (15.0, None)


def test_a_job_that_was_stored_before_waits_were_counted_waited_since_its_submission() -> None:
    old = JobRun(JOB, JobState.PREPARING, created_at=50.0)
    started = msgspec.structs.replace(old, state=JobState.RUNNING)
    assert count_wait(old, started, 80.0).waited == 30.0
    later = msgspec.structs.replace(old, attempt=1)
    assert count_wait(later, msgspec.structs.replace(later, state=JobState.RUNNING), 80.0).waited == 0.0
