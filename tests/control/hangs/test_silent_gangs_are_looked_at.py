"""Silent gangs: their ranks are looked at, what is found is kept and told, and the queue's action follows."""

from __future__ import annotations

import asyncio
import json
import re
import tarfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from corral.control.hangs.bundles import LEFT_OUT, Bundles
from corral.control.hangs.keeper import ACTOR, MOST_RESTARTS, HangKeeper
from corral.control.initial_configuration import seed
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import AttemptId, JobId, TaskKey, attempt_id
from corral.model.accounts import AuditFilter
from corral.model.hangs.records import HUNG, HUNG_OVER
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TaskMetric
from corral.model.runs import WorkReport
from corral.monitor.health.hangs import HangingTask
from corral.spec.configuration_file import load_document
from corral.storage.log_sources import LogSources
from tests.control.harness import House, PaperEngine, short

RULE = (
    "kind: Queue\nname: lab\nhangs: {atLeast: 1m, atMost: 1h, action: ACTION}\n---\n"
    "kind: Queue\nname: below\nparent: lab\n"
)
WAITS = [["all_reduce", "torch/distributed/distributed_c10d.py", 9], ["train", "train.py", 4]]
LOADS = [["load", "data.py", 7], ["train", "train.py", 3]]
Frames = list[list[Any]]


class Session:
    """What the program in a task would answer, for the frames of its two looks."""

    def __init__(self, first: Frames, last: Frames) -> None:
        looks = [
            {"at": at, "state": "S", "cpu": 0.0, "io": 0, "text": json.dumps([_thread(frames)])}
            for at, frames in ((0.0, first), (3.0, last))
        ]
        self._lines = [{"process": 7, "command": "python train.py", "looks": looks}, {"done": True, "left_out": 0}]
        self.closed = False

    async def send(self, data: bytes) -> None:
        """Take the program."""

    async def output(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield json.dumps(line).encode() + b"\n"

    async def close(self) -> None:
        self.closed = True


def _thread(frames: Frames) -> dict[str, Any]:
    return {
        "thread_name": "MainThread",
        "active": False,
        "frames": [{"name": name, "short_filename": file, "line": line} for name, file, line in frames],
    }


class Engine(PaperEngine):
    """An engine whose tasks can be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.stands: dict[int, tuple[Frames, Frames]] = {}
        """By index of a task, its frames at the two looks; others wait in a collective."""
        self.answer: Callable[[AttemptId], Any] = self._session

    def _session(self, attempt: AttemptId) -> Session:
        return Session(*self.stands.get(int(attempt.split(".")[3]), (WAITS, WAITS)))

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> Any:
        return self.answer(attempt)


class Logs:
    """The logs of all attempts, each as long as `size`; they cannot be read while `away`."""

    def __init__(self) -> None:
        self.size_now, self.away = 100, False

    async def streams(self, attempt: AttemptId) -> tuple[str, ...]:
        if self.away:
            raise Unavailable("archive-away", "The archive of logs does not answer.")
        return ("all",)

    async def source(self, attempt: AttemptId, stream: str) -> Logs:
        return self

    async def size(self) -> int:
        return self.size_now

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        return offset, b"step 20\n"

    async def close(self) -> None:
        """Close it."""


class Watched:
    """A running control with a keeper, whose clock, logs and figures a test sets."""

    def __init__(self, house: House, engine: Engine, folder: Path) -> None:
        self.house, self.engine, self.store = house, engine, house.store
        self.clock = VirtualClock(house.clock.now())
        self.use: dict[JobId, float] = {}
        self.bundles = Bundles(folder / "hangs")
        self.logs = Logs()
        self.keeper = HangKeeper(house.control, self.bundles, cast(LogSources, self.logs), self.samples, self.clock)

    def samples(self) -> Samples:
        return Samples(
            tuple(
                Value(TaskMetric.DEVICE, ("ada", "ada~j", "worker", "0", job, "lab", "0"), use)
                for job, use in self.use.items()
            )
        )

    async def look(self, *seconds: float) -> None:
        """Look after each of these seconds, and wait for the looks at ranks."""
        for each in seconds:
            self.clock.advance(each)
            await self.keeper.look()
            await self.keeper.settled()

    async def running(self, text: str) -> JobId:
        job = await self.house.submit(text)
        await self.house.until(job, "running")
        await self.look(0)
        return job

    async def reports(self, job: JobId, step: float) -> None:
        at = self.clock.now()
        assert await self.store.work_reported(attempt_id(job, 0, "worker", 0, 0), WorkReport(at, step=step))
        async with self.house.patience():
            while (found := self.house.control.world.jobs[job].run.report) is None or found.step != step:
                await self.house.control.cycled()

    async def told(self, job: JobId, kind: str = HUNG) -> list[dict[str, Any]]:
        events = await self.store.events_of(job, kinds=(kind,))
        return [{"message": each.message, **each.data} for each in events]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Callable[[str], Any]]:
    engine = Engine()
    house = House(tmp_path, engine)
    await house.open()

    async def begin(action: str = "warn") -> Watched:
        documents = load_document(RULE.replace("ACTION", action))
        await seed(house.store, documents, file="site.yaml", clock=house.clock)
        await house.begin()
        return Watched(house, engine, tmp_path)

    yield begin
    await house.close()


async def test_a_silent_gang_is_told_once_with_its_odd_task_and_a_bundle(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("gang", replicas=3, queue="below"))
    watched.engine.stands[1] = LOADS, LOADS
    await watched.look(59)
    assert not await watched.told(job)
    await watched.look(2, 100, 100)
    (told,) = await watched.told(job)
    assert (told["odd"], told["action"], told["place"]) == (["worker-1"], "warn", "load (data.py:7)")
    assert "worker-1 stands elsewhere at load (data.py:7); 2 others wait in all_reduce." in told["message"]
    with tarfile.open(watched.bundles._folder / job / f"{told['bundle']}.tar.gz") as archive:
        assert "summary.json" in archive.getnames()
        assert "worker-1-7.stacks-1.json" in archive.getnames()


async def test_a_gang_that_works_is_looked_at_and_never_called_hung_within_its_bound(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("compiles", replicas=2, queue="lab"))
    watched.engine.stands[0] = LOADS, [["compile", "inductor.py", 1]]
    await watched.look(61, 30, 40)
    assert watched.keeper.looked == 2 and not await watched.told(job)
    await watched.look(3600)
    (told,) = await watched.told(job)
    assert told["why"] == "worker-0 works."


async def test_a_device_in_use_and_a_new_step_are_signs_of_life_and_a_hang_can_end(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("gang", replicas=2, queue="lab"))
    watched.use[job] = 80.0
    await watched.look(61, 61)
    assert watched.keeper.looked == 0
    watched.use[job] = 0.0
    await watched.look(1000)
    assert len(await watched.told(job)) == 1
    watched.use[job] = 80.0
    await watched.look(5)
    assert [each["message"] for each in await watched.told(job, HUNG_OVER)] == ["It shows progress again."]


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (LOADS, "worker-2 stands still at load (data.py:7)."),
        ([["compile", "inductor.py", 1]], None),
    ],
    ids=["stands", "works"],
)
async def test_of_a_task_that_stops_while_its_peers_go_on_there_is_a_bundle_unless_it_works(
    site: Any, frames: Frames, why: str | None
) -> None:
    watched = await site("restart")
    job = await watched.running(short("gang", replicas=4, queue="below"))
    watched.engine.stands = {0: (WAITS, LOADS), 1: (LOADS, WAITS), 2: (LOADS, frames)}
    key = TaskKey("worker", 2)
    watched.keeper.stopped([HangingTask(job, key, "local/n1", 700.0, 2.0)])
    await watched.look(1, 1)
    assert watched.keeper.looked == 1
    told = await watched.told(job)
    assert [each["why"] for each in told] == ([why] if why else [])
    for each in told:
        assert (each["odd"], each["action"], each["place"]) == (["worker-2"], "warn", "load (data.py:7)")
        assert each["message"] == f"worker-2 reported no step for 11m40s while the others went on. {why}"
        with tarfile.open(watched.bundles._folder / job / f"{each['bundle']}.tar.gz") as archive:
            kept = archive.extractfile("summary.json")
            assert kept is not None
            ranks = {rank["task"]: rank["standing"] for rank in json.load(kept)["ranks"]}
            assert ranks == {"worker-0": "works", "worker-1": "works", "worker-2": "still", "worker-3": "waits"}
            assert {"worker-2-7.stacks-2.json", "worker-3.all.log"} <= set(archive.getnames())


async def test_of_tasks_that_stop_those_that_work_are_left_out_and_those_of_an_attempt_before_are_not_looked_at(
    site: Any,
) -> None:
    watched = await site()
    job = await watched.running(short("gang", replicas=4, queue="below"))
    watched.engine.stands = {0: (WAITS, LOADS), 1: (LOADS, WAITS), 2: (LOADS, LOADS)}
    watched.keeper.stopped(
        [HangingTask(job, TaskKey("worker", at), "local/n1", 700.0 + at, 2.0) for at in (1, 2)],
    )
    await watched.look(1, 1)
    (told,) = await watched.told(job)
    assert told["message"].startswith("worker-2 reported no step for 11m42s while") and told["odd"] == ["worker-2"]
    watched.keeper.stopped([HangingTask(job, TaskKey("worker", 2), "local/n1", 900.0, 2.0)])
    world = watched.house.control.world.jobs
    world[job].run = msgspec.structs.replace(world[job].run, attempt=world[job].run.attempt + 1)
    await watched.look(1, 1)
    assert watched.keeper.looked == 1 and len(await watched.told(job)) == 1


async def test_without_a_rule_only_jobs_that_report_steps_are_watched(site: Any) -> None:
    watched = await site()
    silent = await watched.running(short("silent", replicas=2))
    reports = await watched.running(short("reports", replicas=2))
    for step in (1, 2, 3):
        watched.clock.advance(11)
        await watched.reports(reports, step)
        await watched.look(0)
    await watched.look(599)
    assert watched.keeper.looked == 0
    await watched.look(2)
    assert [len(await watched.told(job)) for job in (silent, reports)] == [0, 1]
    assert (await watched.told(reports))[0]["message"].startswith("No step was reported for 10m")


async def test_a_job_s_own_bound_has_it_watched(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("own", replicas=2, hangAfter="30s"))
    await watched.look(29)
    assert not await watched.told(job)
    await watched.look(2)
    assert len(await watched.told(job)) == 1


async def test_the_queue_s_action_suspends_the_job_with_a_receipt_and_is_noted(site: Any) -> None:
    watched = await site("suspend")
    job = await watched.running(short("gang", replicas=2, queue="lab"))
    await watched.look(61)
    await watched.house.when(job, lambda record: record.run.suspended and record.phase == "waiting")
    (receipt,) = (await watched.store.receipts(job=job)).items
    assert receipt.message == "It showed no progress for 1m1s."
    (line,) = (await watched.store.audit(AuditFilter(actor=ACTOR))).items
    assert (line.action, line.resource, line.rule) == ("job.suspend", f"job:{job}", "hang-rule")


async def test_a_job_is_restarted_three_times_at_most(site: Any) -> None:
    watched = await site("restart")
    job = await watched.running(short("gang", replicas=2, queue="lab"))
    for number in range(MOST_RESTARTS + 1):
        async with watched.house.patience():
            while True:
                run = watched.house.control.world.jobs[job].run
                if run.attempt == number and run.state == "running" and len(watched.engine.running) == 2:
                    break
                await watched.house.control.cycled()
        await watched.look(0, 61)
    assert [each["action"] for each in await watched.told(job)] == ["warn", *["restart"] * MOST_RESTARTS]


LOOK = {"at": 0.0, "state": "S", "cpu": 0.0, "io": 0, "text": "[]"}
NONSENSE: tuple[tuple[str, list[object]], ...] = (
    ("The profiler could not run in the task: Traceback ?[31m.", ["Traceback \x1b[31m"]),
    ("The profiler in the task sent too many answers.", [{"process": 1}] * 100),
    ("The profiler in the task sent too many answers.", [{"need": "py-spy"}] * 3),
    ("The profiler in the task sent too many answers.", [{"file": str(name)} for name in range(3_000)]),
    ("The tasks answered more than 64 MiB together.", [{"x": "x" * 5 * 1024**2}] * 13),
    ("The task sent more of its flight recorders than it was asked for.", [{"file": "a", "data": "A" * 4_000_000}] * 2),
    ("The task sent no valid look at a process.", [{"process": 1e999}]),
    ("The task sent no valid look at a process.", [{"process": 10**400}]),
    ("The task sent no valid look at a process.", [{"process": 1, "looks": [LOOK | {"io": 1e999}]}]),
    (
        "py-spy's answer is not a list of threads with their frames.",
        [{"process": 1, "looks": [LOOK | {"text": json.dumps([_thread([["f", "a.py", 1e999]])])}]}],
    ),
)


@pytest.mark.parametrize(("problem", "lines"), NONSENSE)
async def test_what_a_task_sends_is_bounded_and_refused_in_one_sentence(
    site: Any, problem: str, lines: list[object]
) -> None:
    watched = await site()
    job = await watched.running(short("gang", queue="lab"))

    class Nonsense(Session):
        async def output(self) -> AsyncIterator[bytes]:
            for line in lines:
                yield (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"

    watched.engine.answer = lambda attempt: Nonsense(WAITS, WAITS)
    await watched.look(61)
    found = await watched.told(job)
    if not found:  # no process could be looked at, so it is told when the bound is over
        await watched.look(3600)
        found = await watched.told(job)
    (told,) = found
    unseen = r"(worker-0 could not|None of the \d+ ranks could) be looked at: .*\."
    assert re.fullmatch(rf"{unseen}|worker-0 could not be looked at\.|No rank moves\.", told["why"])
    summary = json.loads(_file(watched.bundles._folder / job / f"{told['bundle']}.tar.gz", "summary.json"))
    assert summary["ranks"][-1]["problem"] == problem


def _file(path: Path, name: str) -> bytes:
    with tarfile.open(path) as archive:
        found = archive.extractfile(name)
        assert found is not None
        return found.read()


async def test_bundles_have_a_quota_and_an_age_and_are_the_server_s_alone(tmp_path: Path) -> None:
    bundles, jobs = Bundles(tmp_path / "hangs", quota=1, most_seconds=100.0), [JobId("1a"), JobId("1b")]
    for job in jobs:
        await bundles.keep(job, "20261128-190000", {"a": b"x"}, 0.0)
    with pytest.raises(NotFound):
        await bundles.read("1a", "20261128-190000")
    assert (await bundles.read("1b", "20261128-190000"))[:2] == b"\x1f\x8b"
    kept = tmp_path / "hangs" / "1b"
    assert kept.stat().st_mode & 0o077 == 0 and next(kept.iterdir()).stat().st_mode & 0o077 == 0
    await bundles.clear(1e12)
    assert not kept.exists()
    for other, name in (("..", "20261128-190000"), ("1b", "../x"), ("1b", "x")):
        with pytest.raises(NotFound):
            await bundles.read(other, name)


async def test_files_that_are_too_much_for_a_bundle_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.hangs.bundles.MOST_BYTES", 10)
    bundles = Bundles(tmp_path / "hangs")
    await bundles.keep(JobId("1a"), "20261128-190000", {"a": b"x" * 8, "b": b"y" * 8, "c": b"z"}, 0.0)
    path = tmp_path / "hangs" / "1a" / "20261128-190000.tar.gz"
    assert _file(path, LEFT_OUT) == b"b\n" and _file(path, "c") == b"z"


async def test_a_gang_that_stalls_for_one_look_alone_is_not_called_hung(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("stalls", replicas=2, queue="lab"))
    looked: list[AttemptId] = []

    def answer(attempt: AttemptId) -> Session:
        looked.append(attempt)
        return Session(WAITS, WAITS) if looked.count(attempt) == 1 else Session(LOADS, WAITS)

    watched.engine.answer = answer
    await watched.look(61)
    assert len(looked) == 4 and not await watched.told(job)


async def test_a_gang_that_was_told_while_a_rank_worked_is_told_again_once_nothing_moves(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("slow", replicas=2, queue="lab"))
    watched.engine.stands[0] = LOADS, [["compile", "inductor.py", 1]]
    await watched.look(3601, 61)
    assert [each["why"] for each in await watched.told(job)] == ["worker-0 works."]
    watched.engine.stands = {1: (LOADS, LOADS)}
    with capture_logs() as said:
        await watched.look(61, 61, 3600)
    assert [each["odd"] for each in await watched.told(job)] == [["worker-1"], ["worker-0"]]
    (line,) = [each for each in said if each["event"] == "a job hangs"]
    assert line["why"].startswith("worker-1 stands elsewhere")


async def test_a_job_that_was_suspended_for_its_bound_is_not_told_again(site: Any) -> None:
    watched = await site("suspend")
    job = await watched.running(short("slow", replicas=2, queue="lab"))
    watched.engine.stands[0] = LOADS, [["compile", "inductor.py", 1]]
    await watched.look(3601)
    watched.engine.stands.clear()
    await watched.look(61, 61)
    assert [each["action"] for each in await watched.told(job)] == ["suspend"]


async def test_a_gang_of_which_no_rank_can_be_looked_at_hangs_only_beyond_its_bound(site: Any) -> None:
    watched = await site("restart")
    job = await watched.running(short("unseen", replicas=2, queue="lab"))

    def away(attempt: AttemptId) -> Session:
        raise Unavailable("no-slot", "The slot of this task does not answer.")

    watched.engine.answer = away
    with capture_logs() as said:
        await watched.look(61, 61)
    assert not await watched.told(job)
    why = "None of the 2 ranks could be looked at: The slot of this task does not answer."
    assert [each["why"] for each in said if each["event"] == "a silent job is in doubt"] == [why, why]
    await watched.look(3600)
    assert [each["why"] for each in await watched.told(job)] == [why]


async def test_a_log_that_cannot_be_read_for_a_while_is_no_sign_of_life(site: Any) -> None:
    watched = await site()
    job = await watched.running(short("gang", replicas=2, queue="lab"))
    for away in (True, False, True, False):
        watched.logs.away = away
        await watched.look(14)
    assert watched.keeper.looked == 0
    await watched.look(5)
    assert watched.keeper.looked == 1 and len(await watched.told(job)) == 1
    watched.logs.away = True
    await watched.look(5)
    assert not await watched.told(job, HUNG_OVER)
    watched.logs.away, watched.logs.size_now = False, 101
    await watched.look(5)
    assert len(await watched.told(job, HUNG_OVER)) == 1


async def test_why_a_silent_job_is_not_looked_at_or_not_judged_is_logged_once(site: Any) -> None:
    watched = await site()
    jobs = [await watched.running(short(f"gang{at}", replicas=1, queue="lab")) for at in range(3)]
    answered = asyncio.Event()

    class Slow(Session):
        async def output(self) -> AsyncIterator[bytes]:
            await answered.wait()
            async for line in super().output():
                yield line

    watched.engine.answer = lambda attempt: Slow(WAITS, WAITS)
    with capture_logs() as said:
        watched.clock.advance(61)
        for _ in range(3):
            await watched.keeper.look()
            await asyncio.sleep(0)
        watched.use[jobs[0]] = 80.0
        await watched.keeper.look()
        answered.set()
        await watched.keeper.settled()
        await watched.look(61)
    waits = [each for each in said if each["event"] == "a silent job is not looked at yet"]
    assert [(each["job"], each["why"]) for each in waits] == [(jobs[2], "2 other jobs are being looked at")]
    (unjudged,) = [each for each in said if each["event"] == "a silent job is not judged"]
    assert (unjudged["job"], unjudged["why"]) == (jobs[0], "it showed progress while it was looked at")
    assert [len(await watched.told(job)) for job in jobs] == [0, 1, 1]
