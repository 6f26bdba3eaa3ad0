"""Why: two processes that both believe to lead would give one device away twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from corral.store import LeadershipLost, Store
from tests.store.makers import ME, OTHER, Ticking

More = Callable[[], Awaitable[Store]]


async def test_the_first_leads_and_another_waits_for_the_time_to_live(
    store: Store, open_more: More, clock: Ticking
) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    other = await open_more()
    for _ in range(3):
        assert await other.lead(OTHER) is None
        clock.advance(2)
        lease = await store.renew(lease)
    clock.advance(2.9)
    assert await other.lead(OTHER) is None, "it has only just seen the last renewal"
    clock.advance(3)
    taken = await other.lead(OTHER)
    assert taken is not None and taken.epoch == lease.epoch + 1
    with pytest.raises(LeadershipLost):
        await store.renew(lease)


async def test_a_candidate_never_trusts_a_clock_but_its_own(store: Store, open_more: More, clock: Ticking) -> None:
    assert await store.lead(ME) is not None
    clock.advance(10**6)
    other = await open_more()
    assert await other.lead(OTHER) is None
    clock.advance(3)
    assert await other.lead(OTHER) is not None


async def test_a_holder_that_is_provably_gone_is_replaced_at_once(store: Store, open_more: More) -> None:
    lease = await store.lead(ME)
    asked = []
    taken = await (await open_more()).lead(OTHER, takeover=lambda holder: asked.append(holder) or True)
    assert lease is not None and taken is not None and taken.epoch == lease.epoch + 1
    assert asked == [ME]


async def test_a_released_lease_is_free_at_once(store: Store, open_more: More) -> None:
    lease = await store.lead(ME)
    assert lease is not None
    assert await store.leader() == ME
    await store.release(lease)
    assert await store.leader() is None
    other = await open_more()
    taken = await other.lead(OTHER)
    assert taken is not None
    await store.release(lease)
    assert await other.leader() == OTHER, "a deposed leader releases nothing"


async def test_the_same_holder_leads_anew_with_a_new_epoch(store: Store) -> None:
    first, second = await store.lead(ME), await store.lead(ME)
    assert first is not None and second is not None and second.epoch == first.epoch + 1
