"""Refused calls about claims are repeated with growing delays, without end; in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, cast

import pytest

from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.devices.claim_allocation import Claiming
from corral.engines.kubernetes.devices.claim_reconciler import Tending
from corral.engines.kubernetes.devices.claim_state import UNUSED_SECONDS, ClaimBook
from corral.engines.kubernetes.pods.calls import PodCalls
from corral.engines.kubernetes.watch.object_copy import Change
from corral.kernel.errors import Forbidden
from tests.engines.kubernetes.test_claim_book import NAMESPACE, SERVER, claim, plan, pod
from tests.engines.kubernetes.virtual_time import virtually


class Refusing:
    """Refuses every call and records its time."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def ask(self, call: Call, *_: Any, **__: Any) -> bytes:
        self.asked.append(asyncio.get_running_loop().time())
        raise Forbidden("kubernetes-forbidden", f"Corral may not {call}.")


@pytest.mark.parametrize("used", [True, False])
def test_a_claim_that_may_not_be_written_is_tried_ever_later(used: bool) -> None:
    cluster = Refusing()

    async def work() -> None:
        calls, book = cast(PodCalls, cluster), ClaimBook(SERVER, NAMESPACE)
        claiming = Claiming(calls, book, server=SERVER, namespace=NAMESPACE)
        made = claim(plan(0))
        book.fold_claim(Change(made), 0.0)
        if used:
            book.fold_pod(Change(pod("p", made.metadata.name)), 0.0)
        there = frozenset({"p"})
        tending = Tending(
            calls, book, claiming, namespace=NAMESPACE, fail=lambda attempt, why: None, pods=lambda: there
        )
        running = asyncio.ensure_future(tending.run())
        await asyncio.sleep(UNUSED_SECONDS + 600.0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    virtually(work())
    waits = [after - before for before, after in itertools.pairwise(cluster.asked)]
    assert 20 <= len(cluster.asked) <= 40
    assert waits[0] < 1.0 and all(29.0 <= wait <= 31.0 for wait in waits[-10:])
