"""A core moves by inputs and time alone: it is played, forked, dropped and built again without a clock or a database."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.core.core import Batch, Core
from corral.control.core.intents import IntentsRead
from corral.control.core.lending_ledger import Ledger
from corral.kernel.errors import Conflict
from corral.kernel.ids import JobId, TaskKey
from corral.model.launch import Exited, Started
from corral.model.receipts import LedgerEntry
from corral.model.runs import JobRun, TaskRun
from corral.model.store_writes import ControlBatch, IntentKind
from tests.control.core.virtual import BEGIN, Played, Work


def test_jobs_wait_for_devices_and_start_in_turn() -> None:
    played = Played(nodes=1, devices=4)
    first = played.submit("first", 0.0, devices=4, work=Work(100.0))
    second = played.submit("second", 1.0, devices=4, work=Work(50.0))
    played.run(1000.0)
    assert played.when(first, "job.completed") == [100.0]
    assert played.when(second, "job.started") == [100.0] and played.when(second, "job.completed") == [150.0]


def test_a_failing_task_is_tried_again_after_growing_waits_of_virtual_time() -> None:
    played = Played()
    job = played.submit("again", work=Work(1.0, code=137), retryPolicy={"fancy": True, "maxRetries": 3})
    played.run(3600.0)
    ends, starts = played.when(job, "task.exited"), played.when(job, "task.started")
    waits = [after - before for before, after in zip(ends, starts[1:], strict=False)]
    assert len(waits) >= 3 and waits == sorted(waits) and waits[-1] >= 4 * waits[0] > 0


def test_a_job_ends_with_its_longest_duration() -> None:
    played = Played()
    job = played.submit("long", work=Work(inf, stop_seconds=5.0), maxDuration="10m")
    played.run(7200.0)
    assert played.when(job, "job.completed") == [605.0]


def test_a_dependent_job_starts_when_the_other_has_ended() -> None:
    played = Played()
    first = played.submit("first", 0.0, work=Work(30.0))
    second = played.submit("second", 10.0, work=Work(5.0), dependsOn=[{"job": str(first)}])
    played.run(1000.0)
    assert played.when(second, "job.started") == [30.0]


def test_a_stop_ends_a_job_within_its_grace() -> None:
    played = Played()
    job = played.submit("stopped", work=Work(inf, stop_seconds=1000.0))
    played.run(50.0)
    played.driver.request(job, IntentKind.STOP, "ada")
    played.run(1000.0)
    assert played.when(job, "job.completed") == [80.0], "30 seconds of grace"


def test_nothing_wakes_a_core_but_what_can_change_something() -> None:
    played = Played(nodes=4)
    for number in range(200):
        played.submit(f"job-{number}", number * 7.0, work=Work(300.0))
    played.run(86_400.0)
    assert not played.core.world.jobs
    assert played.driver.steps <= 3 * 200, "a job is submitted, starts and ends"
    assert played.core.next_wakeup() is None


def test_what_happens_to_a_fork_does_not_happen_to_the_core() -> None:
    played = Played(nodes=2, devices=2)
    for number in range(12):
        played.submit(f"job-{number}", number * 5.0, devices=1 + number % 2, work=Work(40.0))
    played.run(33.0)
    before, stored = _state(played.core), len(played.driver.store.facts)
    fork = played.core.fork()
    assert _state(fork) == before
    running = [
        job.run.attempt_of(task) for job in fork.world.jobs.values() for task in job.tasks.values() if task.started_at
    ]
    batch = fork.step([Exited(attempt, BEGIN + 34.0, 0) for attempt in running], BEGIN + 34.0)
    assert running and batch.writes is not None and len(fork.world.jobs) == len(before[1]) - len(running)
    assert _state(played.core) == before and len(played.driver.store.facts) == stored


def test_a_fork_goes_on_as_the_core_would_have() -> None:
    ends = []
    for forked in (False, True):
        played = Played(nodes=2, devices=2)
        jobs = [
            played.submit(f"job-{number}", number * 5.0, devices=1 + number % 2, work=Work(40.0 + number))
            for number in range(12)
        ]
        played.run(33.0)
        if forked:
            played.driver.core = played.core.fork()
        played.run(10_000.0)
        ends.append([played.happened(job) for job in jobs])
    assert ends[0] == ends[1]


def test_a_fork_whose_batches_nobody_reads_decides_the_same_and_records_no_attempts() -> None:
    played = Played(nodes=2, devices=2)
    jobs = [
        played.submit(f"job-{number}", number * 5.0, devices=1 + number % 2, work=Work(40.0 + number))
        for number in range(12)
    ]
    played.run(33.0)
    batches: dict[bool, list[ControlBatch]] = {}
    for unrecorded in (False, True):
        other = played.core.fork(unrecorded=unrecorded)
        made = batches[unrecorded] = []
        for at in range(34, 400):
            ended = [
                Exited(job.run.attempt_of(task), BEGIN + at, 0)
                for job in other.world.jobs.values()
                for task in job.tasks.values()
                if task.started_at is not None and task.started_at + 40.0 <= BEGIN + at
            ]
            started = [
                Started(job.run.attempt_of(task), BEGIN + at)
                for job in other.world.jobs.values()
                for task in job.tasks.values()
                if task.placement is not None and task.started_at is None
            ]
            batch = other.step([*ended, *started], BEGIN + at)
            if batch.writes is not None:
                made.append(batch.writes)
    usual, bare = (
        [
            (each.facts, each.outbox_add, each.tasks, [(job.id, job.phase, job.live) for job in each.jobs])
            for each in batches[unrecorded]
        ]
        for unrecorded in (False, True)
    )
    assert usual == bare
    assert {job.id for each in batches[True] for job in each.jobs if not job.live} == set(jobs[:7])
    assert any(each.attempts for each in batches[False]) and not any(each.attempts for each in batches[True])


def _state(core: Core) -> tuple[object, dict[JobId, tuple[JobRun, dict[TaskKey, TaskRun]]]]:
    return core.world.cluster.digest(), {key: (job.run, dict(job.tasks)) for key, job in core.world.jobs.items()}


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(1, 90), st.integers(0, 1)), max_size=12),
    st.integers(1, 150),
)
def test_a_core_that_is_built_again_from_its_store_decides_the_same(
    jobs: list[tuple[int, int, int, int]], killed_at: int
) -> None:
    ends = []
    for kill in (False, True):
        played = Played(nodes=1, devices=4)
        made = [
            played.submit(f"job-{number}", float(at), devices=devices, work=Work(float(seconds), code=code))
            for number, (at, devices, seconds, code) in enumerate(jobs)
        ]
        if kill:
            played.run(float(killed_at) + 0.5)
            played.begin_anew()
        played.run(100_000.0)
        ends.append([(played.when(job, "job.started"), played.when(job, "job.completed")) for job in made])
        assert played.core.world.cluster.consistent()
    assert ends[0] == ends[1]


def test_the_memory_store_refuses_a_write_that_was_thought_out_against_an_older_state() -> None:
    played = Played()
    played.submit("one", work=Work(500.0))
    played.run(1.0)
    batch = played.core.step([], BEGIN + 1.0)
    assert batch.writes is None
    [job] = played.core.world.jobs.values()
    played.driver.request(job.id, IntentKind.TAGS, "ada", tags=["x"])
    stale = played.core.fork()
    played.run(2.0)
    read = played.driver.store.intents_after(stale.intents.cursor)
    late = stale.step([IntentsRead(read)], BEGIN + 2.0)
    assert isinstance(late.writes, ControlBatch)
    with pytest.raises(Conflict):
        played.driver.store.write(late.writes)


def test_a_core_that_rests_would_decide_nothing() -> None:
    played = Played(nodes=1, devices=4)
    played.submit("first", 0.0, devices=0, work=Work(100.0))
    played.submit("again", 5.0, devices=0, work=Work(1.0, code=137), retryPolicy={"fancy": True, "maxRetries": 3})
    played.submit("second", 50.0, devices=4, work=Work(200.0), maxDuration="1m")
    dues = set[float]()
    for second in range(400):
        played.run(float(second))
        for later in (0.0, 0.5):
            twin, now = played.core.fork(), BEGIN + second + later
            due = twin.next_wakeup()
            assert twin.rests(now) and (due is None or not twin.rests(due))
            assert twin.step((), now) == Batch() and twin.next_wakeup() == due
            dues.add(inf if due is None else due)
    assert len(dues) > 2, "retries and the end of a job were due"
    lent = played.core.fork()
    lent.ledger = Ledger([LedgerEntry("", "default", 0.0, 1000, BEGIN, BEGIN)])
    assert not lent.rests(BEGIN + 400.0), "a loan is written now and then"
