"""Under a candidate an elastic job takes as long as its size there says, and reports its progress where its work is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from math import inf
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.control.core.core import Batch, Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import ConfigurationRead, Input
from corral.control.core.intents import IntentsRead
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.journal.beginnings import core_of
from corral.control.journal.blocks import BlockReader
from corral.control.journal.played_work import PlayedJobs
from corral.control.journal.recorded_runs import recorded_runs
from corral.control.journal.recorded_work import devices_by_role
from corral.control.journal.records import DocumentsRead, configured, encoded
from corral.control.journal.retold import Retold
from corral.control.journal.rules import Rules
from corral.control.shadow import comparison
from corral.control.shadow.comparison import Question
from corral.control.shadow.lives import CandidateRules
from corral.kernel.ids import AttemptId, JobId
from corral.model.policy_shadow import ShadowReport
from corral.model.states import TaskState
from corral.model.store_writes import IntentKind
from tests.control.core.virtual import BEGIN
from tests.control.journal.journals import Journaled
from tests.control.journal.test_jobs_live_on import lived, starts
from tests.control.shadow.shadows import FIFO, beside, differences, records_of
from tests.control.shadow.test_a_candidate_decides_beside import assert_alike
from tests.examples import at_least, examples


def limit(devices: int) -> str:
    """A document that bounds the default queue."""
    queue = {"kind": "Queue", "name": "default", "limit": {"devices": str(devices)}}
    return json.dumps({"apiVersion": "corral.dev/v1alpha1", **queue})


def bounded(played: Journaled, devices: int, at: float) -> None:
    """Have the default queue be bounded from a time on."""
    read = DocumentsRead((limit(devices),), played.core.configured.now.change + 1)
    played.driver.at(BEGIN + at, ConfigurationRead(configured(read, FIFO)))
    played.run(at)


def grows(devices: int = 2, **fields: Any) -> tuple[Journaled, JobId]:
    """An elastic job of one to four tasks on a node with four devices, one that waits for it, and one much later."""
    played = Journaled(FIFO, nodes=1)
    bounded(played, devices, 0.0)
    job = played.submit("grows", 0.0, replicas={"min": 1, "max": 4}, work=Work(inf), priority=10, **fields)
    played.submit("waits", 250.0, work=Work(50.0))
    played.submit("later", 4000.0, work=Work(50.0))
    return played, job


def says(played: Journaled, job: JobId, **report: Any) -> None:
    """Have a job report its work now."""
    run = played.core.world.jobs[job].run
    data = {"at": played.driver.now, **report}
    played.driver.request(job, IntentKind.WORK_REPORTED, jobAttempt=run.attempt, report=data)
    played.settle()


def ends(played: Journaled, job: JobId, at: float) -> None:
    """Have all tasks of a job end at a time, and go on to the end of all."""
    played.run(at)
    played.end(*played.running(job))
    played.run(at + 5000.0)


def size(played: Journaled, job: JobId) -> int:
    """How many tasks of a job run."""
    return len(played.running(job))


def start(report: ShadowReport, name: str) -> Any:
    """When a job started, in force and under the candidate."""
    ((_, _, *times),) = [each for each in differences(report) if each[:2] == ("start", name)]
    return tuple(None if at is None else round(at, 3) for at in times)


@pytest.mark.parametrize(("devices", "at"), [(4, 500.0), (3, 1000 * 2 / 3), (1, 2000.0)])
def test_without_reports_it_ends_in_proportion_to_its_devices(devices: int, at: float) -> None:
    played, job = grows()
    played.run(100.0)
    assert size(played, job) == 2
    ends(played, job, 1000.0)
    report = beside(played, documents=[limit(devices)])
    assert start(report, "waits") == (1000.0, pytest.approx(at, abs=0.01))
    assert "Of 1 elastic job the work is in proportion to its devices." in report.assumptions
    before, after = starts(lived(played, documents=[limit(devices)]))
    assert before["waits"] == 750.0 and after["waits"] == pytest.approx(at - 250.0, abs=0.01)


def test_reports_of_throughput_say_how_much_sooner_it_ends() -> None:
    played = reports_two_sizes("throughput", 60.0, 100.0)
    # an example takes 1/60 s of one device, and 2/100 s of each of two: 1/75 s, and 1/300 s more for each device
    at = (200 * 60.0 + 800 * 100.0) / (4 / (1 / 75 + 4 / 300))
    report = beside(played, documents=[limit(4)])
    assert start(report, "waits") == (1000.0, pytest.approx(at, abs=0.01))
    assert "Of 1 elastic job the speed by size is as its own reports say." in report.assumptions
    before, after = starts(lived(played, documents=[limit(4)]))
    assert before["waits"] == 750.0 and after["waits"] == pytest.approx(at - 250.0, abs=0.01)


PROFILE = [{"devices": 1, "throughput": 6.0}, {"devices": 2, "throughput": 10.0}]
"""The speeds of `reports_two_sizes`, in another unit."""


@pytest.mark.parametrize("reported", [0.0, 60.0])
def test_a_declared_profile_says_it_where_reports_do_not(reported: float) -> None:
    """A report at one size has a unit of its own, and says nothing of the other sizes."""
    played, job = grows(1, scaling=PROFILE)
    played.run(100.0)
    if reported:
        says(played, job, throughput=reported)
    bounded(played, 2, 200.0)
    ends(played, job, 1000.0)
    at = (200 * 60.0 + 800 * 100.0) / (4 / (1 / 75 + 4 / 300))
    report = beside(played, documents=[limit(4)])
    assert start(report, "waits") == (1000.0, pytest.approx(at, abs=0.01))
    assert "Of 1 elastic job the speed by size is as declared in the job file (scaling)." in report.assumptions


def test_reports_at_two_sizes_come_before_a_declared_profile() -> None:
    report = beside(reports_two_sizes("throughput", 60.0, 100.0, scaling=[*PROFILE, {"devices": 4, "throughput": 1}]),
                    documents=[limit(4)])  # fmt: skip
    assert "Of 1 elastic job the speed by size is as its own reports say." in report.assumptions
    at = (200 * 60.0 + 800 * 100.0) / (4 / (1 / 75 + 4 / 300))
    assert start(report, "waits") == (1000.0, pytest.approx(at, abs=0.01))


def test_without_throughput_its_progress_says_it() -> None:
    played, job = grows(1, scaling=[{"devices": 1, "throughput": 1.0}, {"devices": 4, "throughput": 1.0}])
    for at in (50.0, 100.0, 150.0):
        played.run(at)
        says(played, job, progress=at / 2000)
    bounded(played, 2, 200.0)
    for at in (300.0, 400.0):
        played.run(at)
        says(played, job, progress=0.1 + (at - 200) / 1200)
    ends(played, job, 1000.0)
    report = beside(played, documents=[limit(4)])
    faster = 4 / (2000 * (2 - 1.2) + 4 * 2000 * (1.2 - 1))  # device-seconds of all the work on one device and on two
    assert start(report, "waits") == (1000.0, pytest.approx((200 / 2000 + 800 / 1200) / faster, abs=0.01))


def reports_two_sizes(name: str, one: float, two: float, **fields: Any) -> Journaled:
    """An elastic job that ends after 200 s on one device and 800 s on two, and says a figure of each."""
    played, job = grows(1, **fields)
    played.run(100.0)
    says(played, job, **{name: one})
    bounded(played, 2, 200.0)
    played.run(300.0)
    assert size(played, job) == 2
    says(played, job, **{name: two})
    ends(played, job, 1000.0)
    return played


def test_a_candidate_that_reads_reports_has_them() -> None:
    """What two devices do no faster than one, it does on one, as soon as it has said so."""
    report = beside(reports_two_sizes("throughput", 100.0, 100.0), "fifo+goodput")
    assert start(report, "waits") == (1000.0, 300.0)
    assert ("resize", "grows", None, 300.0) in [(*each[:3], round(each[3] or 0, 3)) for each in differences(report)]
    silent, job = grows(1)
    bounded(silent, 2, 200.0)
    ends(silent, job, 1000.0)
    assert not differences(beside(silent, "fifo+goodput"))


def test_reports_come_at_the_same_work_and_tell_of_the_size_there() -> None:
    played = reports_two_sizes("throughput", 60.0, 100.0)
    speed = 4 / (1 / 75 + 4 / 300)
    later = (200 * 60.0 + 100 * 100.0) / speed
    assert heard(played, limit(4)) == [
        (pytest.approx(100 * 60.0 / speed, abs=0.01), pytest.approx(speed)),
        (pytest.approx(later, abs=0.01), pytest.approx(speed)),
    ]
    again = Journaled(FIFO, nodes=1)
    fixed = again.submit("fixed", 0.0, replicas=2, work=Work(600.0))
    again.run(200.0)
    says(again, fixed, throughput=5.0)
    again.run(3000.0)
    assert heard(again, limit(4)) == [(200.0, 5.0)]


def test_a_job_that_starts_only_under_the_candidate_ends_after_the_expected_time() -> None:
    played = Journaled(FIFO, nodes=1)
    bounded(played, 1, 0.0)
    for number in range(3):
        played.submit(f"before-{number}", 0.0, work=Work(200.0))
    played.submit("wide", 1000.0, replicas={"min": 3, "max": 4})
    played.submit("waits", 1010.0, work=Work(50.0))
    played.submit("later", 4000.0, work=Work(50.0))
    played.run(5000.0)
    report = beside(played, documents=[limit(4)], since=900.0)
    assert start(report, "wide") == (None, 1000.0)
    assert start(report, "waits") == (1010.0, 1200.0)


def test_tasks_that_fail_as_they_start_do_so_again_and_the_retry_succeeds() -> None:
    """An engine with whole seconds has them end when they started."""
    played = Journaled(FIFO, nodes=1)
    bounded(played, 2, 0.0)
    fails = Work(0.0, code=1)
    job = played.submit("fails", 10.0, replicas={"min": 2, "max": 4}, work=fails, retryPolicy={"maxRetries": 1})
    played.submit("waits", 250.0, work=Work(50.0))
    played.run(10.0)
    assert not size(played, job)
    played.works["fails"] = Work(600.0)
    played.run(100.0)
    assert size(played, job) == 2
    played.run(5000.0)
    assert_alike(beside(played, "fifo"))
    before, after = starts(lived(played, documents=[limit(4)]))
    assert before["waits"] == 361.0
    assert after["waits"] == 61.0


def test_a_task_that_fails_as_it_starts_and_is_started_again_does_so_once() -> None:
    played = Journaled(FIFO, nodes=1)
    policy = {"maxRetries": 1, "fancy": True}
    played.submit("fails", 10.0, replicas={"min": 1, "max": 2}, work=Work(0.0, code=137), retryPolicy=policy)
    played.submit("waits", 20.0, devices=4, work=Work(50.0))
    played.run(10.0)
    played.works["fails"] = Work(600.0)
    played.run(5000.0)
    assert_alike(beside(played, "fifo"))
    before, after = starts(lived(played, documents=[limit(4)]))
    assert before["waits"] > 590.0 and before == after


@pytest.mark.parametrize("gang", [True, False])
@pytest.mark.parametrize("replicas", [1, 3, {"min": 2, "max": 2}, {"min": 1, "max": 4}, {"min": 2, "max": 3}])
def test_elastic_are_the_gangs_that_the_job_file_calls_so(replicas: Any, gang: bool) -> None:
    played = Journaled(FIFO, nodes=1)
    identity = played.submit("job", replicas=replicas, gang=gang)
    played.run(0.0)
    job = played.core.world.jobs[identity]
    assert job.document.spec.gang == gang
    assert (devices_by_role(job.text) is not None) == (gang and job.document.is_elastic)


def heard(played: Journaled, *documents: str) -> list[Any]:
    """When control hears which throughput under documents, in a life that has nothing in common with the journal's."""
    played.blocks.flush()
    recorded = recorded_runs(BlockReader(io.BytesIO(played.file.getvalue())))
    core = core_of(recorded.begun, FIFO, configured(DocumentsRead(documents, 1), FIFO))
    driver = Driver(core, MemoryStore(), lambda job, attempt: work(job, attempt), BEGIN)
    jobs, retold = PlayedJobs(recorded.work, driver, lambda job, seconds: inf), Retold(driver)
    found: list[Any] = []
    jobs.learn(recorded.until)

    def work(job: Job, attempt: AttemptId) -> Work:
        if driver.runs(attempt):
            jobs.stop(job, attempt)
        else:
            jobs.begin(job, attempt, driver.now)
        return Work(inf)

    def step(core: Core, inputs: Sequence[Input], now: float) -> Batch:
        reads = [intent for each in inputs if isinstance(each, IntentsRead) for intent in each.intents]
        found.extend((now - BEGIN, each.data["report"]["throughput"]) for each in reads if "report" in each.data)
        return core.step(inputs, now)

    driver.stepped = step
    for at, happening in recorded.happenings:
        if not isinstance(happening, DocumentsRead):
            driver.run(at)
            retold.tell(at, happening)
    driver.run(BEGIN + 5000.0)
    return found


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 10_000))
def test_under_the_rules_in_force_elastic_jobs_do_the_same(seed: int) -> None:
    draw = Random(seed)
    policy = draw.choice(["fifo", "fair", "srtf+order"])
    assert_alike(beside(mixed(draw, policy), policy))


def mixed(draw: Random, policy: str) -> Journaled:
    """A journal of jobs of which half are elastic; their tasks end alone, fail, and are preempted."""
    played = Journaled(Rules(policy, documents=False))
    jobs = []
    for number in range(14):
        elastic = draw.random() < 0.5
        least = {"min": draw.choice([1, 2]), "max": draw.choice([3, 4, 6])}
        jobs.append(played.submit(
            f"job-{number}", draw.uniform(0, 4000),
            devices=1 if elastic else draw.choice([1, 2, 4]), replicas=least if elastic else draw.choice([1, 1, 2]),
            work=Work(
                draw.uniform(10, 3000), code=draw.choice([0, 0, 0, 1]),
                start_seconds=draw.choice([0.0, 7.0]), stop_seconds=draw.choice([0.0, 3.0]),
            ),
            priority=draw.choice([0, 0, 10]), maxDuration=5000, retryPolicy={"maxRetries": draw.choice([0, 2])},
        ))  # fmt: skip
    for at in range(200, 4000, 200):
        played.run(float(at))
        for job in jobs:
            live = played.core.world.jobs.get(job)
            if live is not None and any(task.state is TaskState.RUNNING for task in live.tasks.values()):
                progress = min(1.0, (played.driver.now - BEGIN) / 4000)
                says(played, job, progress=progress, throughput=50.0 * size(played, job) ** 0.7)
    played.driver.request(draw.choice(jobs), IntentKind.STOP, "ann")
    played.run(50_000.0)
    return played


_REPORTED = """
from random import Random
import msgspec
from tests.control.shadow.shadows import beside
from tests.control.shadow.test_elastic_jobs_follow_their_size import mixed
print(msgspec.json.encode(beside(mixed(Random(5), "fifo"), "fair+goodput")).decode())
"""


def test_the_report_is_the_same_in_another_process() -> None:
    here = beside(mixed(Random(5), "fifo"), "fair+goodput")
    found = [msgspec.json.decode(msgspec.json.encode(here))]
    for seed in ("1", "77")[: at_least(1, 2)]:
        ran = subprocess.run(
            [sys.executable, "-c", _REPORTED],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(msgspec.json.decode(ran.stdout))
    assert all(each == found[0] for each in found) and found[0]["decisions"]["start"]["alike"] > 3


@pytest.mark.parametrize("policy", ["fair+goodput", pytest.param("srtf+order", marks=pytest.mark.large)])
def test_hours_are_the_same_whether_the_journal_is_read_at_once_or_in_pieces(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "READ_AHEAD", 1800.0)  # so that hours are over before all of it is read
    records = [encoded(each) for each in records_of(mixed(Random(7), "fifo"))]
    at_once, in_pieces = (comparison.Comparison(Question(CandidateRules(policy), policy)) for _ in range(2))
    at_once.read(records)
    for first in range(0, len(records), 7):
        in_pieces.read(records[first : first + 7])
    found = at_once.finish()
    assert found == in_pieces.finish() and len(found.hours) > 2 and not found.problem
