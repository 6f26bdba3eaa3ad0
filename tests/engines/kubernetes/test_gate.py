"""The gate allows fewer concurrent calls while the API server falls behind, and more when it recovers."""

from __future__ import annotations

import asyncio

import pytest

from corral.engines.kubernetes.api.concurrency_limit import LEAST, Gate
from corral.kernel.errors import NotFound, Unavailable


async def fail(gate: Gate, error: Exception) -> None:
    with pytest.raises(type(error)):
        async with gate.call():
            raise error


async def test_no_more_calls_are_out_at_once_than_the_width() -> None:
    gate, out, most = Gate(3), 0, 0

    async def call() -> None:
        nonlocal out, most
        async with gate.call():
            out += 1
            most = max(most, out)
            await asyncio.sleep(0)
            out -= 1

    await asyncio.gather(*(call() for _ in range(20)))
    assert (most, out) == (3, 0)


async def test_calls_that_fail_together_narrow_it_once() -> None:
    gate = Gate(32)
    await asyncio.gather(*(fail(gate, Unavailable("kubernetes-timeout", "slow")) for _ in range(32)))
    assert gate.width == 16


async def test_a_clear_answer_does_not_narrow_it_and_success_widens_it_again() -> None:
    gate = Gate(32)
    await fail(gate, NotFound("kubernetes-not-found", "no such pod"))
    assert gate.width == 32
    await fail(gate, Unavailable("kubernetes-timeout", "slow"))
    for _ in range(1000):
        async with gate.call():
            pass
    assert gate.width == 32


async def test_it_never_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.engines.kubernetes.api.concurrency_limit._ROUND_SECONDS", 0.0)
    gate = Gate(32)
    for _ in range(20):
        await fail(gate, Unavailable("kubernetes-timeout", "slow"))
    assert gate.width == LEAST


async def test_who_is_cancelled_leaves_its_place_to_others() -> None:
    gate, held, release = Gate(1), asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with gate.call():
            held.set()
            await release.wait()

    async def pass_through() -> None:
        async with gate.call():
            pass

    holder = asyncio.create_task(hold())
    await held.wait()
    impatient = asyncio.create_task(pass_through())
    patient = asyncio.create_task(pass_through())
    await asyncio.sleep(0)
    impatient.cancel()
    holder.cancel()
    await asyncio.gather(holder, impatient, return_exceptions=True)
    await asyncio.wait_for(patient, 120)
