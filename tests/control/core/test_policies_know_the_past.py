"""Control keeps what policies may ask of jobs over a restart, forgets jobs that are over, and tells of parts that fail."""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.control.core.core import PART_FAILED
from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.model.store_writes import IntentKind
from corral.scheduler import History, Policy, find_policy
from corral.scheduler.policy.faults import MOST_FAULTS, CheckedOrder
from corral.scheduler.policy.order import OrderKey
from tests.control.core.virtual import BEGIN, Played, Work


@dataclass(frozen=True)
class LeastServed:
    """Least device-seconds received first."""

    changes_with_time = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        return (history.of(gang.job, now).device_seconds, gang.submitted_at)


@dataclass(frozen=True)
class NewestOnceOneEnded:
    """The oldest job first until a job has ended, and the newest one from then on."""

    changes_with_time = True

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        return (-gang.submitted_at if history.ended.count else gang.submitted_at,)


@dataclass(frozen=True)
class Failing:
    """It fails for gangs of jobs that are named."""

    changes_with_time = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        raise LookupError(f"no estimate of\n{gang.queue}")


def _received(played: Played, job: JobId, at: float) -> tuple[float, float, int]:
    found = played.core.world.cluster.history.of(job, BEGIN + at)
    return found.service_seconds, found.device_seconds, found.starts


def test_what_a_job_received_outlives_a_restart_between_and_during_its_runs() -> None:
    seen = []
    for restarts in (False, True):
        played = Played(nodes=1)
        failing = Work(30.0, code=137)
        job = played.submit("again", devices=2, work=failing, retryPolicy={"fancy": True, "maxRetries": 3})
        played.run(10.0)
        if restarts:
            played.begin_anew()
        played.run(31.0)
        between = _received(played, job, 31.0)
        if restarts:
            played.begin_anew()
            assert _received(played, job, 31.0) == between
        played.works["again"] = Work(1000.0)
        played.run(400.0)
        if restarts:
            played.begin_anew()
        seen.append((between, _received(played, job, 400.0)))
    assert seen[0] == seen[1]
    (service, attained, starts), later = seen[0]
    assert starts and attained == 2 * service >= 60.0
    assert later[1] == 2 * later[0] > attained, "the runs are counted together"


def test_a_job_that_is_over_leaves_no_history() -> None:
    played = Played()
    job = played.submit("short", work=Work(20.0))
    played.run(10.0)
    assert _received(played, job, 10.0) == (10.0, 10.0, 1)
    played.run(100.0)
    assert _received(played, job, 100.0) == (0.0, 0.0, 0)
    assert not played.core.world.cluster.history.columns()


def test_the_plan_after_the_end_of_a_job_counts_it_among_the_ended_ones() -> None:
    played = Played(nodes=1, scheduling=Policy("newest", NewestOnceOneEnded()))
    first, old, new = (played.submit(name, at, devices=4) for name, at in (("first", 0), ("old", 10), ("new", 20)))
    played.run(1000.0)
    begun = {job: played.when(job, "job.started") for job in (first, old, new)}
    assert begun[first] < begun[new] < begun[old]
    served = played.stored(first).run.served
    assert served is not None and served.device_seconds == 4 * 60.0, "it is stored with the job though it is forgotten"


def test_a_job_that_is_stopped_and_deleted_in_one_step_leaves_no_history() -> None:
    played = Played()
    job = played.submit("idle", work=Work(1000.0))
    played.run(10.0)
    played.ask(job, IntentKind.SUSPEND)
    played.run(100.0)
    assert played.core.world.cluster.history.columns() and not played.running(job)
    for kind in (IntentKind.STOP, IntentKind.DELETE):
        played.driver.request(job, kind, "ada")
    played.settle()
    assert not played.core.world.cluster.history.columns()
    assert played.core.world.cluster.history.ended.count == 1


def test_a_job_that_was_preempted_comes_after_one_that_never_ran_when_the_order_says_so() -> None:
    policy = Policy("least", LeastServed(), preemption=True)
    played = Played(nodes=1, scheduling=policy)
    old = played.submit("old", 0.0, devices=4, work=Work(1000.0, stop_seconds=1.0))
    urgent = played.submit("urgent", 100.0, devices=4, work=Work(50.0), priority=50)
    new = played.submit("new", 110.0, devices=4, work=Work(50.0))
    played.run(5000.0)
    assert (
        played.when(urgent, "job.started")[0] < played.when(new, "job.started")[0] < played.when(old, "job.started")[-1]
    )


def test_the_server_tells_of_a_part_that_fails_until_it_is_switched_off() -> None:
    policy = replace(find_policy("priority"), name="bad", order=CheckedOrder("bad", Failing(), False))
    played = Played(scheduling=policy)
    jobs = [played.submit(f"job-{number}", 10.0 * number) for number in range(MOST_FAULTS + 3)]
    played.run(1000.0)
    assert all(played.when(job, "job.completed") for job in jobs), "by the default order"
    told = played.driver.store.server_events
    assert [each.kind for each in told] == [PART_FAILED] * MOST_FAULTS
    assert told[0].message == (
        "The policy's order bad raised LookupError: no estimate of default. A plan was made without it."
    )
    assert told[-1].message.endswith("It is switched off until another policy is configured.")
