"""Channels, their codes, and the outbox of messages: each occasion once, bounded in number and age."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.accounts import User
from corral.model.facts import Fact
from corral.model.notifications.channels import (
    CODE_SECONDS,
    KEPT_SECONDS,
    MOST_CHANNELS,
    MOST_CODES,
    MOST_WRONG,
    Channel,
    Outgoing,
)
from corral.model.notifications.messages import Message
from corral.model.store_writes import FactWrite
from corral.store import Store, notification_outbox
from corral.store.notification_channels import code_place
from tests.store.makers import ME, START, batch, ended, new_job, told

SECRETS = {"c-mail": "sealed address", "c-mail:key": "sealed key"}


def channel(name: str = "mail", user: str = "ann", **fields: Any) -> Channel:
    return Channel(f"c-{name}", user, name, "webhook", "https://x/…", ("failed",), created_at=START, code_at=START, codes=1,
                   **fields)  # fmt: skip


def message(key: str, of: Channel | None = None, event: str = "failed") -> Outgoing:
    of = of or channel()
    return Outgoing(key, of.user, of.id, of.name, Message(event, START, f"Job {key}"))


async def test_a_channel_is_stored_with_its_secrets_and_goes_with_them(store: Store) -> None:
    await store.add_channel(channel(), SECRETS, message("code/1"))
    assert await store.channels_of(["ann", "bea"]) == [channel()]
    assert await store.channel_by_id("c-mail") == channel() and await store.channel_by_id("c-none") is None
    assert await store.secrets("notify:ann") == SECRETS
    with pytest.raises(Conflict, match="There is a channel mail already"):
        await store.add_channel(channel(), {}, message("code/2"))
    changed = await store.change_channel("ann", "mail", events=("started",), waiting=600, jobs="a-*")
    assert (changed.events, changed.waiting, changed.jobs) == (("started",), 600, "a-*")
    assert await store.change_channel("ann", "mail", events=None, waiting=None, jobs=None) == changed
    with pytest.raises(NotFound, match="no channel mail of yours"):
        await store.remove_channel("bea", "mail")
    await store.remove_channel("ann", "mail")
    assert await store.channels_of(["ann"]) == [] and await store.secrets("notify:ann") == {}
    (left,) = (await store.messages_of("ann")).items
    assert (left.state, left.error) == ("dropped", "The channel was removed.")


async def test_a_person_has_a_bounded_number_of_channels(store: Store) -> None:
    for number in range(MOST_CHANNELS):
        await store.add_channel(channel(f"n{number}"), {}, message(f"code/{number}"))
    with pytest.raises(Conflict, match=f"There are {MOST_CHANNELS} channels already"):
        await store.add_channel(channel("more"), {}, message("code/more"))


async def test_a_code_verifies_within_its_time_and_tries(store: Store) -> None:
    made = channel()
    await store.add_channel(made, {}, message("code/1"))
    place = code_place(made)
    assert await store.users_with_channels() == frozenset()
    for left in range(MOST_WRONG - 1, -1, -1):
        with pytest.raises(InvalidInput, match=f"not the code; {left} tries are left"):
            await store.verify_channel("ann", "mail", place, START + 1, right=False)
    with pytest.raises(Conflict, match="no longer valid"):
        await store.verify_channel("ann", "mail", place, START + 1, right=True)
    again = await store.renew_code("ann", "mail", message("code/2"), START + 2)
    assert (again.codes, again.wrong) == (2, 0)
    with pytest.raises(Conflict, match="no longer valid"):
        await store.verify_channel("ann", "mail", place, START + 3, right=True)
    with pytest.raises(Conflict, match="no longer valid"):
        await store.verify_channel("ann", "mail", code_place(again), START + 3 + CODE_SECONDS, right=True)
    right = await store.verify_channel("ann", "mail", code_place(again), START + 3, right=True)
    assert right.verified_at == START + 3
    assert await store.users_with_channels() == frozenset({"ann"})
    with pytest.raises(Conflict, match="verified already"):
        await store.renew_code("ann", "mail", message("code/3"), START + 4)


async def test_codes_to_one_address_are_bounded(store: Store) -> None:
    await store.add_channel(channel(), {}, message("code/1"))
    for number in range(2, MOST_CODES + 1):
        await store.renew_code("ann", "mail", message(f"code/{number}"), START + number)
    with pytest.raises(Conflict, match=f"{MOST_CODES} codes were sent"):
        await store.renew_code("ann", "mail", message("code/more"), START + 9)
    assert await store.messages_since("ann", "code/", START) == MOST_CODES
    assert await store.messages_since("ann", "code/", START + 5) == 1
    assert await store.messages_since("bea", "code/", START) == 0


async def test_an_account_is_deleted_with_its_channels_keys_and_messages(store: Store) -> None:
    await store.add_user(User("root", role="admin"))
    await store.add_user(User("ann"))
    await store.add_channel(channel(), SECRETS, message("code/1"))
    await store.remove_user("ann")
    assert await store.channels_of(["ann"]) == [] and await store.secrets("notify:ann") == {}
    assert (await store.messages_of("ann")).items == []


async def test_an_occasion_is_queued_once_even_by_two_controls(
    store: Store, open_more: Callable[[], Awaitable[Store]]
) -> None:
    other = await open_more()
    both = [message("event/1/c"), message("event/2/c"), message("event/1/c")]
    added = await asyncio.gather(
        store.queue_messages(both, START, cursor=7), other.queue_messages(both, START, cursor=7)
    )
    assert sorted(added) == [0, 2]
    assert [each.message.subject for each in await store.due_messages(START, 10)] == ["Job event/1/c", "Job event/2/c"]
    assert await other.setting(notification_outbox.CURSOR) == 7


async def test_a_message_is_claimed_by_one_control_and_due_again_if_it_ends(
    store: Store, open_more: Callable[[], Awaitable[Store]]
) -> None:
    other = await open_more()
    await store.queue_messages([message("event/1/c")], START)
    due = await store.due_messages(START, 10)
    mine, theirs = await store.claim_messages(due, START + 30), await other.claim_messages(due, START + 30)
    assert [each.tries for each in mine] == [1] and theirs == []
    assert await store.due_messages(START + 29, 10) == []
    assert await store.due_messages(START + 30, 10, without={"c-mail"}) == []
    (again,) = await store.due_messages(START + 30, 10)
    await store.note_messages([again.id], "sent")
    assert await store.due_messages(START + 99, 10) == []
    (row,) = (await store.messages_of("ann")).items
    assert (row.state, row.tries, row.next_try) == ("sent", 1, None)


async def test_what_has_no_room_is_dropped_and_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_outbox, "MOST_QUEUED", 3)
    monkeypatch.setattr(notification_outbox, "MOST_QUEUED_IN_ALL", 5)
    bea = channel("chat", "bea")
    assert await store.queue_messages([message(f"event/{n}/c") for n in range(5)], START) == 3
    assert await store.queue_messages([message(f"event/{n}/b", bea) for n in range(4)], START) == 2
    assert await store.queue_messages([message("event/9/c")], START + 60) == 0
    newest, *rest = (await store.messages_of("ann")).items
    assert newest.state == "dropped" and newest.error.startswith("3 messages were dropped")
    assert [each.state for each in rest] == ["queued"] * 3
    (first, *_) = (await store.messages_of("bea")).items
    assert first.error.startswith("2 messages were dropped")


async def test_history_is_bounded_in_age_and_number(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_outbox, "MOST_KEPT", 2)
    await store.queue_messages([message("event/old/c")], START)
    await store.queue_messages([message(f"event/{n}/c") for n in range(4)], START + KEPT_SECONDS)
    due = await store.due_messages(START + KEPT_SECONDS, 10)
    await store.note_messages([each.id for each in due[:4]], "sent")
    await store.forget_messages(START + KEPT_SECONDS + 1)
    left = (await store.messages_of("ann")).items
    assert [(each.subject, each.state) for each in left] == [
        ("Job event/3/c", "queued"), ("Job event/2/c", "sent"), ("Job event/1/c", "sent"),
    ]  # fmt: skip


async def test_messages_are_listed_by_pages(store: Store) -> None:
    await store.queue_messages([message(f"event/{n}/c") for n in range(5)], START)
    page = await store.messages_of("ann", limit=3)
    assert [each.subject for each in page.items] == ["Job event/4/c", "Job event/3/c", "Job event/2/c"]
    rest = await store.messages_of("ann", limit=3, after_cursor=page.next or "")
    assert [each.subject for each in rest.items] == ["Job event/1/c", "Job event/0/c"] and rest.next is None


async def test_events_that_may_be_told_come_with_their_jobs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_outbox, "_SCANNED", 3)
    lease = await store.lead(ME)
    assert lease is not None
    job = new_job("train", queue="lab", doc='{"kind":"UnifiedJob","spec":{}}')
    await store.submit(job)
    done = FactWrite(job.id, START + 5, Fact("job.completed", "the job failed", data={"code": 3}))
    await store.commit(batch(lease.epoch, facts=(told(job.id), told(job.id), told(job.id, "job.started"), done)))
    last, after, found = await store.last_seq(), 0, []
    while after < last:
        after, events = await store.job_events(after, last)
        found += events
    assert [(each.kind, each.name, each.user, each.queue) for each in found] == [
        ("job.started", "train", "ann", "lab"), ("job.completed", "train", "ann", "lab"),
    ]  # fmt: skip
    assert found[1].data == {"code": 3} and found[1].at == START + 5
    assert await store.job_documents([job.id]) == {job.id: job.doc}


async def test_jobs_of_a_deleted_account_are_not_told_to_a_later_one(store: Store) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    await store.add_user(User("root", role="admin"))
    await store.add_user(User("ann"))
    job = new_job("train")
    await store.submit(job)
    await store.commit(batch(lease.epoch, facts=(told(job.id, "job.completed"),), jobs=(ended(job),)))
    await store.remove_user("ann")
    assert (await store.job_events(0, await store.last_seq()))[1] == []
