"""A forecast says when waiting jobs start, by which time most of its courses start them, and why others do not."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from corral.control.core.driver import Work
from corral.control.forecast.courses import HORIZON, Forecasted, play_courses
from corral.control.forecast.past_runs import PAST_RUNS, PastRuns
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import play
from corral.kernel.ids import JobId
from corral.model.records import JobFilter, JobSummary, Page, rfc3339
from corral.model.start_estimates import Basis, Estimate
from corral.model.what_if import Course, PastRun, Stay
from tests.control.core.virtual import BEGIN, Played

HOUR = 3600.0


def forecast(played: Played, *past: PastRun) -> Forecasted:
    """A forecast of the present state, played in this process."""
    played.settle()
    return msgspec.msgpack.decode(play_courses(played.core, past, played.driver.now), type=Forecasted)


def estimate(found: Forecasted, job: JobId) -> Estimate:
    """What it says of one job."""
    return msgspec.msgpack.decode(found.estimates[job], type=Estimate)


def runs(*seconds: float, name: str = "old") -> tuple[PastRun, ...]:
    """Ended jobs of another name."""
    return tuple(PastRun("eve", name, "default", 1.0, each) for each in seconds)


def test_the_head_starts_at_the_latest_when_known_ends_make_room_and_the_next_is_expected() -> None:
    played = Played(nodes=1)
    runs_now = played.submit("runs", devices=4, maxDuration="1h")
    played.settle()
    head = played.submit("head", devices=4, maxDuration="2h")
    later = played.submit("later", devices=4)
    found = forecast(played)
    first, second = estimate(found, head), estimate(found, later)
    assert first.basis is Basis.AT_LATEST and first.after == (runs_now,)
    assert first.p50 == pytest.approx(BEGIN + HOUR, abs=1.0) and first.p10 == first.p90 == first.p50
    grace = played.core.launch_policy.grace_of(played.core.world.jobs[runs_now].view)
    assert grace > 0 and first.at == (first.p50 or 0.0) + grace, "a job that uses all its time may take its grace too"
    assert first.message.startswith(f"It is first in the queue order and starts when job {runs_now} ends.")
    assert second.basis is Basis.EXPECTED and second.after == (head,)
    assert second.at == pytest.approx(BEGIN + 3 * HOUR, abs=1.0)
    assert len(found.courses) == 1, "no run time was drawn"
    assert found.order == (head, later)


def test_drawn_run_times_give_a_spread_and_it_says_so() -> None:
    played = Played(nodes=1)
    played.submit("runs", devices=4)
    played.settle()
    waits = played.submit("waits", devices=4)
    found = forecast(played, *runs(*(HOUR * hours for hours in range(1, 11))))
    said = estimate(found, waits)
    assert said.basis is Basis.EXPECTED and said.at is not None and said.p10 is not None and said.p90 is not None
    assert BEGIN + HOUR <= said.p10 < said.at < said.p90 <= BEGIN + 10 * HOUR + 1
    assert len(found.courses) > 1
    assert said.message == (
        f"Half of {len(found.courses)} drawn courses start it by then. Run times are drawn from those of ended jobs, "
        "and no new job arrives."
    )


def test_a_start_before_any_drawn_end_is_sure() -> None:
    played = Played(nodes=2)
    played.submit("hour", devices=4, maxDuration="1h")
    played.submit("short", devices=4, maxDuration="2h")
    played.settle()
    head = played.submit("head", devices=4)
    said = estimate(forecast(played, *runs(100.0, 5000.0)), head)
    assert said.basis is Basis.AT_LATEST and said.p50 == pytest.approx(BEGIN + HOUR, abs=1.0)


def test_jobs_without_a_known_end_are_named() -> None:
    played = Played(nodes=1)
    holds = played.submit("holds", devices=4)
    played.settle()
    waits = played.submit("waits", devices=4)
    said = estimate(forecast(played), waits)
    assert (said.basis, said.at, said.after) == (Basis.UNKNOWN, None, (holds,))
    assert said.message == f"Unknown: it waits for job {holds}, which has no maxDuration."


def test_a_start_after_the_horizon_of_the_courses_is_told_too() -> None:
    played = Played(nodes=1)
    played.submit("long", devices=4, maxDuration="72h")
    played.settle()
    waits = played.submit("waits", devices=4)
    found = forecast(played)
    assert estimate(found, waits).p50 == pytest.approx(BEGIN + 72 * HOUR, abs=1.0)
    assert waits not in msgspec.msgpack.decode(found.courses[0], type=Course).starts


def test_a_course_without_time_says_so_of_what_it_does_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.forecast.courses._SECONDS", 0.0)
    played = Played(nodes=1)
    played.submit("runs", devices=4, maxDuration="1h")
    played.settle()
    waits = played.submit("waits", devices=4)
    found = forecast(played)
    said = estimate(found, waits)
    assert (said.basis, said.at, said.p50) == (Basis.NOT_BEFORE, played.driver.now, None)
    assert (found.courses, found.seeds, found.order) == ((), 1, (waits,))


def test_its_courses_are_those_of_a_question_without_changes() -> None:
    played = Played(nodes=1)
    for number in range(6):
        played.submit(f"job-{number}", devices=2)
    past = runs(*(600.0 * count for count in range(1, 9)))
    found = forecast(played, *past)
    assert len(found.courses) >= 2
    for seed, encoded in enumerate(found.courses):
        course = play(played.core, Changes(), past, now=played.driver.now, horizon=HORIZON, seed=seed)
        assert msgspec.msgpack.decode(encoded, type=Course) == course


def test_what_it_says_then_happens() -> None:
    played = Played(nodes=2)
    jobs = [
        played.submit(f"job-{number}", work=Work(60.0 * number), maxDuration=60 * number, devices=number % 4 + 1)
        for number in range(1, 13)
    ]
    found = forecast(played)
    assert found.estimates.keys() <= set(jobs) and len(found.estimates) >= 5
    played.run(24 * HOUR)
    for job in found.estimates:
        assert BEGIN + played.when(JobId(job), "job.started")[0] == pytest.approx(estimate(found, JobId(job)).p50)


class EndedJobs:
    """A store that counts the jobs it hands out."""

    def __init__(self) -> None:
        self.jobs: list[JobSummary] = []
        """The latest first."""
        self.handed_out = 0

    def end(self, count: int) -> None:
        """Have more jobs end."""
        for _ in range(count):
            number = len(self.jobs)
            at = BEGIN + number
            job = JobSummary(
                id=f"job-{number}", name="old", user="eve", queue="default", priority=0, job_type="shell",
                state="succeeded", created_at=rfc3339(at), started_at=rfc3339(at), ended_at=rfc3339(at + 60),
            )  # fmt: skip
            self.jobs.insert(0, job)

    async def list_jobs(self, wanted: JobFilter, *, limit: int = 50, after_cursor: str = "") -> Page[JobSummary]:
        assert (wanted.phases, wanted.order) == (("succeeded",), "ended")
        begin = int(after_cursor or 0)
        items = self.jobs[begin : begin + limit]
        self.handed_out += len(items)
        return Page(items, str(begin + limit) if begin + limit < len(self.jobs) else None)


async def test_ended_jobs_are_read_once() -> None:
    store = EndedJobs()
    store.end(1200)
    past = PastRuns(store)
    assert await past.read() == (PastRun("eve", "old", "default", 0.0, timedelta(minutes=1).total_seconds()),) * 1200
    assert store.handed_out == 1200
    store.end(70)
    assert len(await past.read()) == 1270
    assert store.handed_out < 1200 + 1300
    before = store.handed_out
    assert len(await past.read()) == 1270
    assert store.handed_out - before <= 50
    store.end(PAST_RUNS)
    assert len(await past.read()) == PAST_RUNS


def test_it_keeps_what_is_to_run_where_for_a_day() -> None:
    played = Played(nodes=1)
    runs_now = played.submit("runs", devices=4, maxDuration="1h")
    played.settle()
    head = played.submit("head", devices=4, maxDuration="2h")
    endless = played.submit("endless", devices=4)
    found = forecast(played)
    ((node, encoded),) = found.stays.items()
    stays = msgspec.msgpack.decode(encoded, type=tuple[Stay, ...])
    assert {(each.node, each.devices) for each in stays} == {(node, (0, 1, 2, 3))}
    assert [each.job for each in stays] == [runs_now, head, endless]
    first, second, last = stays
    assert first.begin == 0.0 and first.end == pytest.approx(HOUR, abs=1.0)
    assert second.begin == pytest.approx(HOUR, abs=1.0) and second.end == pytest.approx(3 * HOUR, abs=1.0)
    assert last.begin == pytest.approx(3 * HOUR, abs=1.0) and last.end is None
    assert (found.stays_left_out, found.seconds) == (0, HORIZON)
