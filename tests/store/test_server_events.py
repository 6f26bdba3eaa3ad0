"""The server's own events are stored beside those of jobs, the latest thousand of them."""

from __future__ import annotations

from corral.model.store_writes import ServerEvent
from corral.store import Store
from tests.store.makers import START, new_job


async def test_the_latest_come_first_page_by_page_and_the_stream_has_them_too(store: Store) -> None:
    job = await store.submit(new_job())
    told = [ServerEvent(START + n, f"server.{what}", f"number {n}", "front") for n, what in enumerate("ab")]
    await store.tell_of_server(told)
    first = await store.events_of_server(limit=1)
    second = await store.events_of_server(limit=1, after_cursor=first.next or "")
    assert [(each.kind, each.message, each.actor, each.job) for each in (*first.items, *second.items)] == [
        ("server.b", "number 1", "front", ""),
        ("server.a", "number 0", "front", ""),
    ]
    assert second.next is None
    stream = await store.events(0)
    assert [each.kind for each in stream][-2:] == ["server.a", "server.b"]
    assert {each.job for each in stream} > {""} and job


async def test_a_server_that_is_often_unwell_fills_nothing_and_jobs_keep_their_events(store: Store) -> None:
    await store.submit(new_job())
    for _ in range(11):
        await store.tell_of_server([ServerEvent(START, "server.degraded", "again")] * 100)
    kept = [each for each in await store.events(0, 1000) if each.kind == "server.degraded"]
    assert len(kept) <= 1000
    assert (await store.events(0))[0].kind == "job.submitted"
    assert len(await store.events(0, 1000)) == 1000
