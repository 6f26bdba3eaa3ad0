"""Decayed usage survives a restart: a queue that has used more comes second under every control."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.control.core.pending_writes import PendingWrites
from corral.control.core.usage_history import UsageHistory
from corral.control.initial_configuration import seed
from corral.control.loop import Control
from corral.kernel.ids import AttemptId, JobId
from corral.model.accounts import User
from corral.model.queues import QueueSpec, QueueUsage
from corral.scheduler.queues.queue_tree import QueueTree
from corral.spec.configuration_file import load_document
from tests.control.harness import House, PaperEngine, short

SITE = """
{kind: Queue, name: a, halfLifeSeconds: 3600}
---
{kind: Queue, name: b, halfLifeSeconds: 3600}
---
{kind: Queue, name: other}
"""


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=1, devices=4))
    await made.open()
    await seed(made.store, load_document(SITE), file="site.yaml", clock=made.clock)
    yield made
    await made.close()


async def whole(house: House, name: str, queue: str, *, user: str = "ada") -> JobId:
    """A job that takes the whole machine when its turn comes."""
    return await house.submit(short(name, devices=4, queue=queue), user=user)


async def over(house: House, job: JobId) -> None:
    """End the job's only task."""
    await house.until(job, "running")
    house.engine.end(AttemptId(f"{job}.0.worker.0.0"), 0)
    await house.until(job, "succeeded")


async def in_line(house: House, control: Control, job: JobId) -> None:
    """Wait until control knows of a waiting job; it learns of one only after the submission."""
    async with house.patience():
        while not control.world.queue.waiting(job):
            await house.store.wakeup.wait(0.05)


@pytest.mark.parametrize("restarts", [0, 1, 2])
async def test_who_had_the_machine_before_comes_second_restarts_or_not(house: House, restarts: int) -> None:
    control = await house.begin()
    await over(house, await whole(house, "long", "a"))
    blocker = await whole(house, "blocker", "other")
    await house.until(blocker, "running")
    first, second = await whole(house, "first", "a"), await whole(house, "second", "b")
    tree = control.world.cluster.queues
    written = [tree.past_use(node) for node in tree.decaying]
    assert [usage.queue for usage in written] == ["a", "b"] and written[0].amounts["devices"] > 0
    assert await house.store.usage() == written[:1], "b has no past: nothing is written of it"
    for _ in range(restarts):
        await house.abandon()
        control = await house.begin()
        tree = control.world.cluster.queues
        assert [tree.past_use(node) for node in tree.decaying] == written
    await in_line(house, control, second)
    await over(house, blocker)
    await house.until(second, "running")
    await house.until(first, "waiting")


async def test_what_ended_jobs_attained_is_known_after_a_restart(house: House) -> None:
    control = await house.begin()
    for name in ("one", "two"):
        await over(house, await whole(house, name, "a"))
    async with house.patience():
        while control.world.cluster.history.ended.count < 2:
            await house.store.wakeup.wait(0.05)
    known = control.world.cluster.history.ended
    await house.abandon()
    control = await house.begin()
    assert control.world.cluster.history.ended == known


@pytest.mark.parametrize("restarts", [0, 1])
async def test_of_one_queue_the_user_who_had_the_machine_comes_second_restarts_or_not(
    house: House, restarts: int
) -> None:
    control = await house.begin()
    await over(house, await whole(house, "long", "other", user="ada"))
    blocker = await whole(house, "blocker", "other", user="eve")
    await house.until(blocker, "running")
    first = await whole(house, "first", "other", user="ada")
    second = await whole(house, "second", "other", user="bob")
    written = [usage for usage in await house.store.user_usage() if usage.user == "ada"]
    assert [usage.queue for usage in written] == ["other"] and written[0].amounts["devices"] > 0
    for _ in range(restarts):
        await house.abandon()
        control = await house.begin()
        assert [*control.world.cluster.queues.users.usages()][:1] == written
    await in_line(house, control, second)
    await over(house, blocker)
    await house.until(second, "running")
    await house.until(first, "waiting")


async def test_an_account_that_is_made_again_under_a_name_has_no_past(house: House) -> None:
    await house.store.add_user(User("ada"))
    control = await house.begin()
    await over(house, await whole(house, "long", "other", user="ada"))
    await house.store.remove_user("ada")
    assert await house.store.add_user(User("ada")) == "ada-2"
    blocker = await whole(house, "blocker", "other", user="eve")
    await house.until(blocker, "running")
    first = await whole(house, "first", "other", user="ada")
    second = await whole(house, "second", "other", user="bob")
    await in_line(house, control, second)
    await over(house, blocker)
    await house.until(first, "running")
    await house.until(second, "waiting")


def test_the_past_of_a_user_is_written_when_it_changes_and_forgotten_when_nothing_is_left_of_it() -> None:
    usage_history, queues = UsageHistory(), QueueTree()
    queues.remember("default", "ada", 10.0)
    queues.charge("default", "ada", (), [4000, 0, 0])
    usage_history.fold(pending := PendingWrites(), queues, 10.0)
    assert not pending.empty and list(pending.user_usage) == [("default", "ada")]
    queues.remember("default", "ada", 5000.0)
    queues.charge("default", "ada", (), [4000, 0, 0], -1)
    usage_history.fold(pending := PendingWrites(), queues, 5000.0)
    (usage,) = pending.batch(()).user_usage
    again = QueueTree()
    again.users.recall([usage])
    UsageHistory(of_users=[usage]).fold(pending := PendingWrites(), again, 6000.0)
    assert pending.empty, "what was read is not written again"
    UsageHistory(of_users=[usage]).fold(pending := PendingWrites(), again, 90 * 86_400.0)
    assert pending.batch(()).user_usage_forgotten == (("default", "ada"),)
    assert list(again.users.usages()) == []


def tree(*half_lives: float) -> QueueTree:
    return QueueTree(QueueSpec(name, half_life_seconds=each) for name, each in zip("ab", half_lives, strict=True))


def test_a_past_is_written_when_it_changes_and_forgotten_with_its_half_life() -> None:
    usage_history, queues = UsageHistory(), tree(100.0, 100.0)
    usage_history.fold(quiet := PendingWrites(), queues, 0.0)
    assert quiet.empty
    queues.charge("a", "", (), [4000, 0, 0])
    queues.remember("a", "", 50.0)
    usage_history.fold(pending := PendingWrites(), queues, 50.0)
    usage = pending.usage["a"]
    assert usage is not None and usage == queues.past_use(queues.find("a")) and list(pending.usage) == ["a"]
    usage_history.fold(quiet, queues, 50.0)
    again = UsageHistory([usage])
    queues = tree(100.0, 100.0)
    queues.recall([usage])
    again.fold(quiet, queues, 50.0)
    assert quiet.empty, "what was read is not written again"
    again.fold(pending := PendingWrites(), tree(0.0, 100.0), 50.0)
    assert pending.usage == {"a": None} and not pending.empty
    batch = pending.batch(())
    assert (batch.usage, batch.usage_forgotten) == ((), ("a",))


def test_what_a_queue_no_longer_counts_is_written_too() -> None:
    usage = QueueUsage("a", 50.0, {"devices": 2000.0, "devices/A100": 2000.0})
    usage_history, queues = UsageHistory([usage]), tree(100.0, 100.0)
    queues.recall([usage])
    usage_history.fold(pending := PendingWrites(), queues, 50.0)
    assert pending.usage == {"a": QueueUsage("a", 50.0, {"devices": 2000.0})}
