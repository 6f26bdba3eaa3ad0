"""A new job waits shortly for where its inputs are, is placed by it, and keeps it; a fork and a new core know it too."""

from __future__ import annotations

from typing import Any

from corral.control.core.driver import Work
from corral.control.core.inputs import InputsLocated, InputsSought
from corral.kernel.ids import JobId
from corral.model.input_bytes import InputBytes, input_bytes
from corral.model.store_writes import IntentKind
from tests.control.core.virtual import BEGIN, Played

LONG = Work(10_000.0)


def on(node: int, size: int = 4_000_000_000) -> InputBytes:
    """So many bytes on one node."""
    return input_bytes(size, {frozenset((f"local/node{node}",)): size})


def sought(played: Played, name: str, at: float = 0.0, until: float = 1.0, **more: Any) -> JobId:
    """A job that is submitted at a time, and whose inputs are looked for up to another."""
    job = played.submit(name, at, work=LONG, **more)
    played.driver.at(BEGIN + at, InputsSought((job,), BEGIN + until))
    return job


def located(played: Played, job: JobId, at: float, inputs: InputBytes | None) -> None:
    played.driver.at(BEGIN + at, InputsLocated(job, inputs))


def test_a_job_starts_on_its_inputs_as_soon_as_these_are_located() -> None:
    played = Played(nodes=4)
    job = sought(played, "job")
    located(played, job, 0.25, on(2))
    played.run(10.0)
    assert played.when(job, "job.placed") == [0.25] and played.nodes_of(job) == {0: "local/node2"}
    told = [each.fact.message for each in played.driver.store.facts if each.fact.kind == "job.placed"]
    note = "4.0 of 4.0 GB of its inputs are on its nodes"
    assert told == [f"1 task was placed on local/node2; {note}"]
    assert played.stored(job).run.notes == (note,) and played.stored(job).run.inputs == on(2)


def test_a_job_whose_inputs_are_not_located_in_time_starts_anyway() -> None:
    played = Played()
    job = sought(played, "job", 5.0, until=6.0)
    located(played, job, 9.0, on(1))
    played.run(20.0)
    assert played.when(job, "job.placed") == [6.0] and played.nodes_of(job) == {0: "local/node0"}


def test_a_failure_delays_no_start() -> None:
    played = Played()
    job = sought(played, "job")
    located(played, job, 0.0, None)
    played.run(0.5)
    assert played.when(job, "job.placed") == [0.0]
    assert played.stored(job).run.inputs is None and not played.core.world.seeking


def test_others_are_not_held_up_meanwhile() -> None:
    played = Played()
    first, second = sought(played, "first"), played.submit("second", 0.5, work=LONG)
    played.run(10.0)
    assert played.when(second, "job.placed") == [0.5] and played.when(first, "job.placed") == [1.0]


def test_what_is_told_late_counts_for_a_job_that_still_waits() -> None:
    played = Played(nodes=2)
    before = [played.submit(f"before-{at}", devices=4, work=Work(50.0)) for at in range(2)]
    job = sought(played, "job", 1.0, until=2.0)
    located(played, job, 9.0, on(1))
    played.run(100.0)
    assert [played.nodes_of(each) for each in before] == [{}, {}]
    assert played.when(job, "job.placed") == [50.0] and played.nodes_of(job) == {0: "local/node1"}


def test_a_job_that_is_stopped_meanwhile_does_not_start() -> None:
    played = Played()
    job = sought(played, "job")
    played.run(0.5)
    played.ask(job, IntentKind.STOP)
    located(played, job, 0.75, on(1))
    played.run(10.0)
    assert played.when(job, "job.completed") == [0.5] and not played.when(job, "job.placed")
    assert not played.core.world.seeking


def test_a_fork_waits_and_places_as_the_core_does() -> None:
    played = Played(nodes=4)
    job = sought(played, "job")
    played.run(0.5)
    fork = played.core.fork()
    fork.step([InputsLocated(job, on(3))], BEGIN + 0.75)
    assert not fork.world.seeking and set(fork.world.cluster.holds(job)) and not played.core.world.cluster.holds(job)
    played.run(10.0)
    assert played.nodes_of(job) == {0: "local/node0"}, "nobody told the core"


def test_a_new_core_knows_where_the_inputs_of_waiting_jobs_are_and_does_not_wait_again() -> None:
    played = Played(nodes=2)
    for at in range(2):
        played.submit(f"before-{at}", devices=4, work=Work(50.0))
    known, unknown = sought(played, "known", 1.0, until=2.0), sought(played, "unknown", 1.0, until=40.0)
    located(played, known, 1.5, on(1))
    played.run(10.0)
    played.begin_anew()
    assert not played.core.world.seeking
    played.run(100.0)
    assert played.nodes_of(known) == {0: "local/node1"}
    assert played.when(unknown, "job.placed") == [50.0]


def test_a_job_that_starts_again_is_placed_by_its_inputs_again() -> None:
    played = Played(nodes=4)
    job = sought(played, "job")
    located(played, job, 0.25, on(3))
    played.run(10.0)
    played.ask(job, IntentKind.SUSPEND)
    played.run(100.0)
    played.ask(job, IntentKind.RESUME)
    played.run(200.0)
    assert len(played.when(job, "job.placed")) == 2 and played.nodes_of(job) == {0: "local/node3"}
