"""Requests about stored jobs become intents, or are refused with the reason."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated, Unavailable
from corral.kernel.ids import JobId, TaskKey, attempt_id
from corral.kernel.tokens import mint_job_token
from corral.model.metrics.told_scalars import ToldScalar
from corral.model.outcome import Completion, ExitClass
from corral.model.placement import TaskPlacement
from corral.model.records import ExitView, JobFilter, rfc3339
from corral.model.runs import JobRun, RoleCount, TaskRun, WorkReport
from corral.model.states import JobState, TaskState
from corral.model.store_writes import AttemptWrite, ControlBatch, IntentKind, JobWrite, TaskWrite
from corral.model.summary import summarize
from corral.service.actor import Actor
from corral.service.jobs import task_connections
from corral.service.jobs.job_detail import HIDDEN
from corral.service.service import Service
from corral.spec.errors import SpecError
from corral.storage.log_files import LogStore
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY, ROOT, START, FakeControl, job_text

ELASTIC = job_text("wide").replace("replicas: 1", "replicas: {min: 1, max: 4}")


async def _submit(service: Service, text: str = "", actor: Actor = ANN) -> JobId:
    detail = (await service.submission.submit(actor, text or job_text())).detail
    assert detail is not None
    return JobId(detail.id)


async def _place(
    store: Store, epoch: int, job: JobId, *, attempt: int = 0, state: TaskState = TaskState.PREPARING
) -> None:
    """Store, as control would, that an attempt of the job's task was placed or waits for a place."""
    stored = await store.load_job(job)
    assert stored is not None
    run = JobRun(job, JobState.PREPARING, attempt=attempt, roles={"worker": RoleCount(1, 1)})
    task = TaskRun("worker", 0, state)
    await store.commit(
        ControlBatch(
            epoch,
            jobs=(JobWrite(job, run, "starting", summarize(stored.summary, run, "starting"), live=True),),
            tasks=(TaskWrite(job, TaskKey("worker", 0), task),),
        )
    )


async def _run(store: Store, epoch: int, job: JobId, *, attempt: int = 0, end: Completion | None = None) -> None:
    """Store, as control would, that the job runs on node n1 or has ended."""
    stored = await store.load_job(job)
    assert stored is not None
    count = RoleCount(1, 1, running=0 if end else 1, failed=1 if end else 0)
    run = JobRun(
        job,
        JobState.COMPLETED if end else JobState.RUNNING,
        attempt=attempt,
        roles={"worker": count},
        started_at=START + 1,
        ended_at=START + 2 if end else None,
        completion=end,
    )
    task = TaskRun(
        "worker", 0, TaskState.COMPLETED if end else TaskState.RUNNING, started_at=START + 1, host="127.0.0.1",
        ports={"http": (8080,)}, placement=TaskPlacement("worker", 0, "local/n1", (1,)), completion=end,
    )  # fmt: skip
    phase = "failed" if end else "running"
    await store.commit(
        ControlBatch(
            epoch,
            jobs=(JobWrite(job, run, phase, summarize(stored.summary, run, phase), live=end is None),),
            tasks=(TaskWrite(job, TaskKey("worker", 0), task),),
            attempts=(
                AttemptWrite(attempt_id(job, attempt, "worker", 0, 0), "local/n1", ended_at=START + 2 if end else None),
            ),
        )
    )


FAILED = Completion(9, "Killed", ExitClass.UNKNOWN, "it was killed")


async def test_each_wish_becomes_an_intent_of_its_actor(service: Service, store: Store) -> None:
    job = await _submit(service, ELASTIC)
    await service.job_commands.scale(ANN, "wide", replicas=2)
    await service.job_commands.restart(ROOT, job)
    await service.job_commands.stop(ANN, "ann~wide")
    intents = await store.intents(0)
    assert [(intent.kind, intent.actor, intent.data) for intent in intents] == [
        (IntentKind.SUBMITTED, "ann", {}),
        (IntentKind.SCALE, "ann", {"role": "worker", "replicas": 2}),
        (IntentKind.RESTART, "root", {}),
        (IntentKind.STOP, "ann", {}),
    ]


async def test_scaling_stays_within_the_documents_bounds(service: Service) -> None:
    await _submit(service, ELASTIC)
    for replicas in (0, 5):
        with pytest.raises(SpecError):
            await service.job_commands.scale(ANN, "wide", replicas=replicas)
    with pytest.raises(InvalidInput):
        await service.job_commands.scale(ANN, "wide", replicas=2, role="other")


async def test_only_owner_and_administrators_change_a_job(service: Service) -> None:
    job = await _submit(service)
    for attempt in (
        service.job_commands.stop(BOB, job),
        service.job_commands.restart(BOB, job),
        service.job_commands.delete(BOB, job),
        service.job_commands.scale(BOB, job, replicas=1),
    ):
        with pytest.raises(Forbidden):
            await attempt
    with pytest.raises(Forbidden):
        await service.task_logs.of_task(BOB, job, "worker", 0)
    with pytest.raises(Forbidden):
        await service.task_connections.open_exec(BOB, job, "worker", 0)


async def test_a_job_that_is_over_is_not_stopped_but_deleted(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service)
    with pytest.raises(Conflict) as refused:
        await service.job_commands.delete(ANN, job)
    assert refused.value.code == "job-live"
    await _run(store, epoch, job, end=FAILED)
    for attempt in (service.job_commands.stop(ANN, job), service.job_commands.scale(ANN, job, replicas=1)):
        with pytest.raises(Conflict) as refused:
            await attempt
        assert refused.value.code == "job-over"
    await service.job_commands.delete(ANN, job)
    assert (await store.intents(0))[-1].kind == IntentKind.DELETE


async def test_a_delete_with_stop_waits_for_the_end(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service)
    deleting = asyncio.create_task(service.job_commands.delete(ANN, job, stop=True))
    while (await store.intents(0))[-1].kind != IntentKind.STOP:
        await asyncio.sleep(0.01)
    await _run(store, epoch, job, end=FAILED)
    await deleting
    assert (await store.intents(0))[-1].kind == IntentKind.DELETE


async def test_a_delete_gives_up_on_a_job_that_does_not_end(
    service: Service, store: Store, clock: VirtualClock
) -> None:
    job = await _submit(service)
    deleting = asyncio.create_task(service.job_commands.delete(ANN, job, stop=True))
    while (await store.intents(0))[-1].kind != IntentKind.STOP:
        await asyncio.sleep(0.01)
    clock.advance(120)
    with pytest.raises(Conflict) as refused:
        await deleting
    assert refused.value.code == "still-stopping"


async def test_the_detail_shows_places_counts_and_the_end(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service)
    await _run(store, epoch, job)
    detail = await service.jobs.get(ANN, job)
    assert (detail.state, detail.tasks.running, detail.started_at) == ("running", 1, "2023-11-14T22:13:21.000Z")
    (place,) = detail.placement
    assert (place.node, place.devices, place.host, place.ports) == ("local/n1", (1,), "127.0.0.1", {"http": (8080,)})
    assert (await service.jobs.placement(ANN, job)).items == [place]
    assert (await service.explanations.explain(ANN, job)).message == "It runs: 1 of 1 task."
    await _run(store, epoch, job, end=FAILED)
    detail = await service.jobs.get(BOB, job)
    assert detail.exit == ExitView(9, "Killed", "unknown", "it was killed") and detail.roles[0].failed == 1
    assert detail.retries_left == 0


async def test_the_environment_is_its_owners_to_read(service: Service) -> None:
    job = await _submit(service, job_text().replace("command:", "env: {PASSWORD: hunter2}\n    command:"))
    for actor, shown in ((ANN, "hunter2"), (ROOT, "hunter2"), (BOB, HIDDEN)):
        for document in (await service.jobs.document(actor, job), (await service.jobs.get(actor, job)).document):
            assert document["spec"]["roles"][0]["env"]["PASSWORD"] == shown


async def test_a_job_is_found_by_everybody_under_its_name(service: Service) -> None:
    mine, theirs = await _submit(service, job_text("x")), await _submit(service, job_text("x"), BOB)
    assert (await service.jobs.get(ANN, "x")).id == mine
    assert (await service.jobs.get(BOB, "x")).id == theirs
    assert (await service.jobs.get(ROOT, "bob~x")).id == theirs
    assert (await service.jobs.get(ROOT, "x")).id == theirs
    with pytest.raises(NotFound):
        await service.jobs.get(ANN, "y")
    with pytest.raises(NotFound):
        await service.jobs.get(ANN, "ann~y")


async def test_a_waiting_job_is_explained_by_control_and_only_by_it(
    service: Service, fake_control: FakeControl, store: Store, epoch: int
) -> None:
    job = await _submit(service)
    with pytest.raises(Unavailable):
        await service.explanations.explain(ANN, job)
    binding = {"code": "not-enough-devices", "message": "2 of 4 devices are free.", "counts": {"free": 2}}
    fake_control.answers[f"/explain/{job}"] = {"binding": binding, "others": [], "ahead": 3, "possible": True}
    found = await service.explanations.explain(ANN, job)
    assert found.message == "2 of 4 devices are free." and found.reasons is not None and found.reasons.ahead == 3
    fake_control.answers[f"/explain/{job}"] = None
    assert (await service.explanations.explain(ANN, job)).reasons is not None
    await _run(store, epoch, job)
    assert "1 of 1" in (await service.explanations.explain(ANN, job)).message


async def test_a_waiting_job_is_told_when_it_may_start_and_what_would_help(
    service: Service, fake_control: FakeControl, clock: VirtualClock
) -> None:
    first, job = await _submit(service, job_text("first")), await _submit(service, job_text("second"))
    change = {
        "path": "roles.worker.replicas",
        "from": 4,
        "to": 2,
        "message": "It would start now with 2 tasks instead of 4.",
    }
    other = {"path": "priority", "from": 10, "to": 11, "message": f"It would start as soon as job {first} had yielded."}
    estimate = {
        "basis": "at-latest",
        "message": "When it has ended.",
        "at": clock.now() + 90.0,
        "after": [first, "gone"],
    }
    fake_control.answers[f"/explain/{job}"] = {
        "binding": {"code": "not-enough-devices", "message": f"Behind job {first}.", "counts": {}},
        "outlook": {"estimate": estimate, "changes": [change, other]},
    }
    found = await service.explanations.explain(ANN, job)
    assert found.message == "Behind job first.", "people know jobs by their names"
    assert found.estimate is not None
    assert (found.estimate.basis, found.estimate.seconds, found.estimate.at) == (
        "at-latest",
        90.0,
        rfc3339(clock.now() + 90.0),
    )
    assert [each.id for each in found.estimate.after] == [first]
    spoken = other | {"message": "It would start as soon as job first had yielded."}
    assert list(msgspec.to_builtins(found)["changes"]) == [change, spoken]


async def test_a_job_that_waits_for_others_names_them(service: Service, store: Store, epoch: int) -> None:
    first = await _submit(service, job_text("first"))
    later = await _submit(service, job_text("later", more="dependsOn: [{job: first, condition: ended}]\n"))
    found = await service.explanations.explain(ANN, later)
    assert found.message == "Waits for first (waiting) to end." and [job.id for job in found.ahead] == [first]
    await _run(store, epoch, first, end=FAILED)
    assert (await service.explanations.explain(ANN, later)).ahead == ()


async def test_ranks_follow_the_topology_from_the_leading_task_on(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service, job_text(replicas=4))
    await _run(store, epoch, job)
    for index, order in enumerate((2, 3, 0, 1)):
        task = TaskRun("worker", index, TaskState.RUNNING, placement=TaskPlacement("worker", index, "n", order=order))
        await store.commit(ControlBatch(epoch, tasks=(TaskWrite(job, task.key, task),)))
    ranks = {0: 0, 1: 1, 2: 2, 3: 3}
    assert {place.index: place.rank for place in (await service.jobs.get(ANN, job)).placement} == ranks
    first = await service.jobs.placement(ANN, job, limit=1)
    rest = await service.jobs.placement(ANN, job, limit=9, after=first.next or "")
    assert {place.index: place.rank for place in [*first.items, *rest.items]} == ranks


async def test_events_are_paged_by_their_number(service: Service) -> None:
    job = await _submit(service, ELASTIC)
    for _ in range(4):
        await service.job_commands.scale(ANN, job, replicas=2)
    first = await service.events.of_job(ANN, job, limit=2)
    rest = await service.events.of_job(ANN, job, limit=10, after=first.next or "")
    assert [event.seq for event in [*first.items, *rest.items]] == [1, 2, 3, 4, 5] and rest.next is None
    for odd in ("x", "\N{SUPERSCRIPT TWO}"):
        with pytest.raises(InvalidInput):
            await service.events.of_job(ANN, job, after=odd)
    assert await service.events.last() == 5
    assert [event.seq for event in await service.events.after(3)] == [4, 5]


async def test_an_unknown_state_is_no_filter(service: Service) -> None:
    with pytest.raises(InvalidInput):
        await service.jobs.page(ANN, JobFilter(phases=("done",)))


async def test_a_job_knows_its_started_peers_and_reports(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    assert (await service.runtime_calls.peers(actor)).complete is False
    await _run(store, epoch, job)
    own = attempt_id(job, 0, "worker", 0, 0)
    peers = await service.runtime_calls.peers(actor, attempt=own)
    assert peers.complete and [(peer.role, peer.host) for peer in peers.peers] == [("worker", "127.0.0.1")]
    with pytest.raises(Conflict):
        await service.runtime_calls.peers(actor, attempt=attempt_id(job, 7, "worker", 0, 0))
    with pytest.raises(NotFound):
        await service.runtime_calls.peers(actor, attempt=attempt_id(JobId("other"), 0, "worker", 0, 0))
    with pytest.raises(Forbidden):
        await service.runtime_calls.peers(ANN)
    await service.runtime_calls.report(actor, {"attempt": own, "kind": "staged", "message": "2 files"})
    event = (await service.events.after(0))[-1]
    assert (event.kind, event.message, event.role, event.attempt) == ("runtime.staged", "2 files", "worker", own)
    with pytest.raises(InvalidInput):
        await service.runtime_calls.report(actor, {"message": "x" * 20_000})


async def test_what_the_tasks_of_one_job_report_is_bounded_in_all(
    service: Service, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.service.jobs.runtime_calls.REPORTS_OF_A_JOB", 40_000)
    job, other = await _submit(service), await _submit(service, job_text("other"))
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    for _ in range(2):
        await service.runtime_calls.report(actor, {"kind": "noise", "filler": "x" * 15_000})
    with pytest.raises(Conflict, match="as many reports as it may"):
        await service.runtime_calls.report(actor, {"kind": "noise", "filler": "x" * 15_000})
    await service.runtime_calls.report(
        await service.authentication.authenticate(mint_job_token(KEY, other, START + 1000)), {"kind": "heard"}
    )
    told = [event.kind for event in await service.events.after(0) if event.kind.startswith("runtime.")]
    assert told == ["runtime.noise", "runtime.noise", "runtime.heard"]


async def test_the_token_of_a_job_ends_with_its_job(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service)
    token = mint_job_token(KEY, job, START + 1000)
    await _run(store, epoch, job)
    assert (await service.authentication.authenticate(token)).job == job
    await _run(store, epoch, job, end=FAILED)
    with pytest.raises(Unauthenticated, match="is over"):
        await service.authentication.authenticate(token)


async def test_refusals_of_one_caller_fill_no_audit_log(service: Service, store: Store, clock: VirtualClock) -> None:
    job = await _submit(service)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))

    async def refused(times: int) -> list[dict[str, object]]:
        for _ in range(times):
            with pytest.raises(Forbidden):
                await service.job_commands.stop(actor, job)
        lines = (await store.audit(limit=1000)).items
        return [line.detail for line in lines if not line.allowed]

    assert len(await refused(100)) == 60
    clock.advance(61)
    assert (await refused(1))[0] == {"unwritten": 40}


async def test_a_job_tells_of_its_checkpoints_and_of_nobody_elses(
    service: Service, store: Store, epoch: int, clock: VirtualClock
) -> None:
    job = await _submit(service)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    await _run(store, epoch, job)
    own = attempt_id(job, 0, "worker", 0, 0)
    clock.advance(100)
    await service.runtime_calls.checkpointed(actor, attempt=own, age_seconds=30)
    (told,) = [event for event in await service.events.after(0) if event.kind == "job.checkpointed"]
    assert (told.at, told.attempt, told.actor) == (rfc3339(START + 70), own, "runtime")
    await service.runtime_calls.checkpointed(actor, attempt=own, age_seconds=30)
    await service.runtime_calls.checkpointed(actor, attempt=own, age_seconds=86_400)
    assert [event for event in await service.events.after(0) if event.kind == "job.checkpointed"] == [told]
    with pytest.raises(Conflict, match="over"):
        await service.runtime_calls.checkpointed(actor, attempt=attempt_id(job, 1, "worker", 0, 0), age_seconds=0)
    for attempt, error in ((attempt_id(JobId("other"), 0, "worker", 0, 0), NotFound), ("nonsense", InvalidInput)):
        with pytest.raises(error):
            await service.runtime_calls.checkpointed(actor, attempt=attempt, age_seconds=0)
    with pytest.raises(Forbidden):
        await service.runtime_calls.checkpointed(ANN, attempt=own, age_seconds=0)


async def test_a_job_tells_of_its_work_and_of_nobody_elses(
    service: Service, store: Store, epoch: int, clock: VirtualClock
) -> None:
    job = await _submit(service)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    await _run(store, epoch, job)
    own = attempt_id(job, 0, "worker", 0, 0)
    clock.advance(100)
    report = WorkReport(START + 70, 0.5, step=5.0)
    await service.runtime_calls.work_reported(actor, attempt=own, report=report)
    (told,) = [event for event in await service.events.after(0) if event.kind == "job.work-reported"]
    assert (told.at, told.attempt, told.actor) == (rfc3339(START + 70), own, "runtime")
    with pytest.raises(Conflict, match="over"):
        await service.runtime_calls.work_reported(actor, attempt=attempt_id(job, 1, "worker", 0, 0), report=report)
    for attempt, error in ((attempt_id(JobId("other"), 0, "worker", 0, 0), NotFound), ("nonsense", InvalidInput)):
        with pytest.raises(error):
            await service.runtime_calls.work_reported(actor, attempt=attempt, report=report)
    with pytest.raises(Forbidden):
        await service.runtime_calls.work_reported(ANN, attempt=own, report=report)


async def test_a_task_tells_curves_of_its_own_job_alone(
    service: Service, store: Store, epoch: int, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await _submit(service)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    await _run(store, epoch, job)
    own = attempt_id(job, 0, "worker", 0, 0)
    asked: list[tuple[str, Any]] = []

    async def request(path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        asked.append((path, body))
        return 0

    monkeypatch.setattr(service.context.control, "request", request)
    told = [ToldScalar("runs", "loss", 5.0, 0.25)]
    await service.runtime_calls.scalars_told(actor, attempt=own, scalars=told)
    assert asked == [("/scalars", {"attempt": own, "scalars": [["runs", "loss", 5.0, 0.25]]})]
    with pytest.raises(Conflict, match="over"):
        await service.runtime_calls.scalars_told(actor, attempt=attempt_id(job, 1, "worker", 0, 0), scalars=told)
    with pytest.raises(NotFound):
        await service.runtime_calls.scalars_told(actor, attempt=attempt_id(JobId("other"), 0, "w", 0, 0), scalars=told)
    with pytest.raises(InvalidInput, match="cannot be printed"):
        await service.runtime_calls.scalars_told(actor, attempt=own, scalars=[ToldScalar("a\n", "loss", 5.0, 0.25)])
    with pytest.raises(Forbidden):
        await service.runtime_calls.scalars_told(ANN, attempt=own, scalars=told)
    assert len(asked) == 1


async def test_what_other_tasks_of_a_gang_reported_goes_with_the_next_report_that_is_stored(
    service: Service, store: Store, epoch: int, clock: VirtualClock
) -> None:
    job = await _submit(service)
    actor = await service.authentication.authenticate(mint_job_token(KEY, job, START + 1000))
    await _run(store, epoch, job)
    for seconds, index, step in ((0, 0, 1.0), (1, 1, 2.0), (2, 0, 2.0), (11, 0, 3.0), (30, 0, 9.0)):
        clock.advance(START + 100 + seconds - clock.now())
        report = WorkReport(clock.now(), step=step, waited=seconds / 2)
        await service.runtime_calls.work_reported(actor, attempt=attempt_id(job, 0, "worker", index, 0), report=report)
        (told,) = [each for each in await store.intents(0) if each.kind == IntentKind.WORK_REPORTED]
        others = {0: None, 1: None, 2: None, 11: [["worker", 1, 2.0, START + 101, None, 0.5]], 30: None}[seconds]
        assert told.data.get("others") == others


async def test_a_log_is_the_latest_attempts_and_a_missing_one_ends_with_its_attempt(
    service: Service, store: Store, logs: LogStore, epoch: int
) -> None:
    job = await _submit(service)
    with pytest.raises(NotFound):
        await service.task_logs.of_task(ANN, job, "worker", 7)
    early = await service.task_logs.of_task(ANN, job, "worker", 0)
    assert await early.size() == 0
    await early.close()
    await _run(store, epoch, job)
    log = await service.task_logs.of_task(ANN, job, "worker", 0)
    assert await log.size() == 0
    assert await log.wait(0, 0.01)
    path, _ = logs.prepare(attempt_id(job, 0, "worker", 0, 0))
    with open(path, "wb") as file:
        file.write(b"hello\n")
    assert await log.wait(0, 1) and await log.read(0, 100) == (0, b"hello\n")
    await log.close()
    with pytest.raises(NotFound, match="has no attempt"):
        await service.task_logs.of_task(ANN, job, "worker", 0, attempt=attempt_id(job, 0, "worker", 0, 5))
    other = await _submit(service, job_text("silent"))
    await _run(store, epoch, other)
    silent = await service.task_logs.of_task(ANN, other, "worker", 0, attempt=attempt_id(other, 0, "worker", 0, 0))
    await _run(store, epoch, other, end=FAILED)
    assert not await silent.wait(0, 1)
    await silent.close()
    with pytest.raises(NotFound):
        await service.task_logs.of_task(ANN, job, "worker", 0, attempt=attempt_id(job, 0, "worker", 1, 0))
    (merged,) = await service.task_logs.of_job(ANN, job)
    assert merged[:2] == ("worker", 0)
    await merged[2].close()


async def test_streams_that_are_kept_apart_are_both_in_the_jobs_log(
    service: Service, store: Store, logs: LogStore, epoch: int
) -> None:
    job = await _submit(service)
    await _run(store, epoch, job)
    for path in logs.prepare(attempt_id(job, 0, "worker", 0, 0), split=True):
        with open(path, "wb") as file:
            file.write(b"said\n")
    found = await service.task_logs.of_job(ANN, job)
    assert [(role, index, log.stream) for role, index, log in found] == [
        ("worker", 0, "stdout"),
        ("worker", 0, "stderr"),
    ]
    for _, _, log in found:
        await log.close()
    with pytest.raises(InvalidInput):
        await service.task_logs.of_task(ANN, job, "worker", 0)


async def test_a_terminal_opens_only_in_a_running_task(
    service: Service, store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_connections, "_START_PAUSES", (0.0,))
    job = await _submit(service)
    with pytest.raises(NotFound):
        await service.task_connections.open_exec(ANN, job, "worker", 0)
    await _run(store, epoch, job)
    assert await service.task_connections.open_exec(ANN, job, "worker", 0) == attempt_id(job, 0, "worker", 0, 0)
    await _run(store, epoch, job, end=FAILED)
    with pytest.raises(Conflict):
        await service.task_connections.open_exec(ANN, job, "worker", 0)


async def test_a_terminal_waits_for_a_task_that_is_just_starting(
    service: Service, store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_connections, "_START_PAUSES", (0.005,) * 12_000)
    job = await _submit(service)
    looked, look = asyncio.Event(), store.task

    async def task(*named: Any) -> TaskRun | None:
        found = await look(*named)
        looked.set()
        return found

    async def still_waits() -> None:
        for _ in range(2):
            looked.clear()
            await looked.wait()
        assert not opening.done()

    monkeypatch.setattr(store, "task", task)
    opening = asyncio.create_task(service.task_connections.open_exec(ANN, job, "worker", 0))
    await still_waits()  # control has not read the job
    await _place(store, epoch, job, attempt=1)
    await still_waits()  # its start is asked for; its output may be there
    await _run(store, epoch, job, attempt=1)
    assert await opening == attempt_id(job, 1, "worker", 0, 0)


async def test_a_terminal_does_not_wait_for_a_task_that_has_no_place(
    service: Service, store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_connections, "_START_PAUSES", (3600.0,))
    job = await _submit(service)
    await _place(store, epoch, job, state=TaskState.CREATION_REQUESTED)
    with pytest.raises(Conflict, match=r"Task worker-0 is not running \(creation-requested\)"):
        await service.task_connections.open_exec(ANN, job, "worker", 0)
