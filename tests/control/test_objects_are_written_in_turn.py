"""Writes to one object are ordered, versioned and rate limited: no newer state is lost, and no API server is flooded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from corral.control.bridge.bridge import ref_of
from corral.control.bridge.object_writer import MOST_AT_ONCE, Writer
from corral.kernel.errors import Conflict, Unavailable
from corral.kernel.ids import JobId
from corral.model.kubernetes_objects import ObjectRef
from corral.spec.job_objects import Condition, Document, ObjectState, RoleState, TaskState, UnifiedJobKind
from tests.control.bridged import Bridged, spec
from tests.control.paper_objects import PaperObjects

KIND = UnifiedJobKind()


class Hand:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


class One:
    """One fake object and its writer."""

    def __init__(self, kind: UnifiedJobKind = KIND) -> None:
        self.kind, self.objects, self.clock = kind, PaperObjects(), Hand()
        self.uid = self.objects.create("one", spec(4))
        self.writer = Writer(self.objects, self.clock)  # type: ignore[arg-type]

    @property
    def document(self) -> Mapping[str, Any]:
        return self.objects.objects[self.uid]

    @property
    def ref(self) -> ObjectRef:
        return ref_of(self.kind, self.document)

    async def show(self, running: int, phase: str = "starting", *, tasks: int = 0, total: int = 4) -> float | None:
        state = ObjectState(
            job="j",
            phase=phase,
            generation=1,
            roles=(RoleState("worker", 4, total, running),),
            tasks=tuple(TaskState("worker", index, "running") for index in range(tasks)),
            conditions=(Condition("Running", "True" if phase == "running" else "False", phase.capitalize()),),
        )
        return await self.writer.show(self.kind, self.ref, self.document, state)


async def test_counts_are_written_once_a_second_and_a_phase_at_once() -> None:
    one = One()
    assert await one.show(0) is None
    for running in (1, 2, 3):
        one.clock.time += 0.1
        assert await one.show(running) == pytest.approx(1 - 0.1 * running)
    assert one.objects.writes == 1
    assert await one.show(4, "running") is None
    assert one.objects.writes == 2
    one.clock.time += 1.5
    assert await one.show(3, "running") is None
    assert one.document["status"]["roles"][0]["running"] == 3


class EachTask(UnifiedJobKind):
    """Shows every task; records the threads that it runs in."""

    wants_tasks = True

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def status(self, state: ObjectState, document: Document) -> dict[str, Any]:
        self.threads.append(threading.current_thread())
        return super().status(state, document) | {"tasks": len(state.tasks)}


async def test_a_status_of_many_tasks_is_made_beside_the_loop_and_seldom() -> None:
    kind = EachTask()
    one, many = One(kind), MOST_AT_ONCE + 1
    await one.show(1, tasks=many, total=many)
    await one.show(1, tasks=3)
    beside, within = kind.threads
    assert beside is not threading.main_thread()
    assert within is threading.main_thread()
    one.clock.time += 1.2
    assert await one.show(2, total=many) == pytest.approx(1 + many / 1000 - 1.2)


async def test_the_tasks_of_a_job_are_not_even_read_for_what_would_be_put_off(
    bridged: Bridged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.control.bridge.object_writer.COUNTS_SECONDS", 3600.0)
    await bridged.abandon()
    bridged.kinds = (EachTask(),)
    await bridged.begin()
    reads = 0
    job_tasks = bridged.bridge._reconciler._store.job_tasks

    async def counted(*given: Any, **named: Any) -> Any:
        nonlocal reads
        reads += 1
        return await job_tasks(*given, **named)

    monkeypatch.setattr(bridged.bridge._reconciler._store, "job_tasks", counted)
    uid = bridged.objects.create("many", spec(2))
    await bridged.until(lambda: bridged.status(uid).get("phase") == "running")
    await bridged.quiet()
    before = reads
    for _ in range(5):
        bridged.bridge._mark(uid)
        await bridged.quiet()
    assert reads == before


async def test_what_its_own_writes_made_of_an_object_is_known_before_it_is_seen() -> None:
    one = One()
    seen = dict(one.document, metadata=dict(one.document["metadata"]))
    await one.writer.own(one.kind, one.ref, seen, {"paper/a": 1}, keep=True)
    await one.writer.show(one.kind, one.ref, seen, ObjectState(job="j", phase="running"))
    assert one.objects.refused == 0
    one.objects.scale(one.uid, 3)
    with pytest.raises(Conflict):
        await one.writer.show(one.kind, one.ref, seen, ObjectState(job="j", phase="failed"))
    assert one.document["status"]["phase"] == "running"


async def test_a_status_that_comes_late_from_one_that_led_is_refused(bridged: Bridged) -> None:
    """The first bridge is paused with `running` in flight; meanwhile the second one has written `succeeded`."""
    bridged.objects.holding = lambda fields: fields.get("status", {}).get("phase") == "running"
    uid = bridged.objects.create("late", spec())
    late = await bridged.objects.held.get()
    bridged.objects.holding = lambda fields: False
    await bridged.abandon()
    await bridged.begin()
    bridged.house.engine.end(await bridged.until(lambda: next(iter(bridged.house.engine.running), None)), 0)
    await bridged.until(lambda: bridged.status(uid).get("phase") == "succeeded")
    with pytest.raises(Conflict):
        late()
    assert bridged.status(uid)["phase"] == "succeeded"


async def test_targets_that_come_late_from_one_that_led_are_refused(bridged: Bridged) -> None:
    bridged.objects.holding = lambda fields: bool(fields.get("spec"))
    uid = bridged.objects.create("late", spec(2))
    late = await bridged.objects.held.get()
    bridged.objects.holding = lambda fields: False
    await bridged.abandon()
    await bridged.begin()
    await bridged.until(lambda: bridged.targets(uid) == 2)
    bridged.objects.scale(uid, 4)
    await bridged.until(lambda: bridged.targets(uid) == 4)
    with pytest.raises(Conflict):
        late()
    assert bridged.targets(uid) == 4


async def test_a_scale_never_goes_over_the_edit_of_another(bridged: Bridged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.bridge.bridge._LOOK_SECONDS", 0.02)
    uid = bridged.objects.create("edited", spec(1))
    job = JobId(await bridged.until(lambda: bridged.status(uid).get("jobId")))
    await bridged.until(lambda: bridged.targets(uid) == 1)
    await bridged.quiet()
    bridged.objects.mute_next()
    bridged.objects.scale(uid, 3)  # the watcher is not told of it yet
    with pytest.raises(Unavailable, match="changed by others"):
        await bridged.bridge.scale(job, 2)
    assert bridged.objects.objects[uid]["spec"]["replicaSpec"]["replicas"] == 3
    bridged.objects.again()
    await bridged.until(lambda: bridged.targets(uid) == 3)
    await bridged.quiet()
    assert await bridged.bridge.scale(job, 2)
    await bridged.until(lambda: bridged.targets(uid) == 2)
