"""No two live attempts have the same port, and no port is given on which another program listens."""

from __future__ import annotations

import socket

import pytest

from corral.engines.local.ports import DEFAULT_RANGE, PortLedger, ephemeral_range
from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.model.launch import PortRequest
from tests.engines.local_harness import Harness, attempt, launch
from tests.reserved import first_of_free


@pytest.fixture
def ten_free() -> int:
    """The first of ten ports that are free on this machine now."""
    return first_of_free(10)


def test_ports_are_given_once_until_they_are_released(ten_free: int) -> None:
    ledger = PortLedger(ten_free, ten_free + 9)
    first = ledger.take([PortRequest("a", 4), PortRequest("b", 4)])
    numbers = [*first["a"], *first["b"]]
    assert len(set(numbers)) == 8 and all(ten_free <= number <= ten_free + 9 for number in numbers)
    with pytest.raises(Unavailable, match="widen"):
        ledger.take([PortRequest("c", 3)])
    assert len(ledger.take([PortRequest("c", 2)])["c"]) == 2, "a refused request must keep nothing"
    ledger.release(first)
    assert sorted(ledger.take([PortRequest("d", 8)])["d"]) == sorted(numbers)


def test_a_port_that_something_listens_on_is_passed_over(ten_free: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", ten_free))
        other.listen()
        ledger = PortLedger(ten_free, ten_free + 1)
        assert ledger.take([PortRequest("a")])["a"] == (ten_free + 1,)


def test_the_default_range_is_not_the_kernels_own_for_clients() -> None:
    low, _ = ephemeral_range()
    if low < DEFAULT_RANGE[0]:
        pytest.skip("this machine's ephemeral range is widened")
    assert DEFAULT_RANGE[1] < low


@pytest.mark.parametrize("bounds", [(80, 90), (30_000, 20_000), (60_000, 70_000)])
def test_a_range_that_is_none_is_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="no range"):
        PortLedger(*bounds)


async def test_live_tasks_never_share_and_ended_ones_give_back(local: Harness, ten_free: int) -> None:
    local.engine._ports = PortLedger(ten_free, ten_free + 3)
    for index in (0, 1):
        await local.engine.start(launch("sleep", "1000", task=index, ports=(PortRequest("p", 2),)))
    given = [await local.started(attempt(index)) for index in (0, 1)]
    assert len({port for started in given for port in started.ports["p"]}) == 4
    with pytest.raises(Unavailable, match="No port"):
        await local.engine.start(launch("true", task=2, ports=(PortRequest("p"),)))
    for index in (0, 1):
        await local.engine.stop(attempt(index), grace_seconds=5)
        await local.exited(attempt(index))
    assert (await local.run("true", task=2, ports=(PortRequest("p", 4),))).code == 0


async def test_only_ports_that_a_running_attempt_was_given_are_reached(local: Harness) -> None:
    await local.engine.start(launch("sleep", "1000", ports=(PortRequest("p"),)))
    given = (await local.started(attempt())).ports["p"][0]
    local.engine.check_port(attempt(), given)
    for run, port in ((attempt(), given + 1), (attempt(1), given)):
        with pytest.raises(NotFound):
            await local.engine.connect(run, port)
    with pytest.raises(NotFound, match="was not given port 22"):
        local.engine.check_port(attempt(), 22)
    await local.engine.stop(attempt(), grace_seconds=0)
    await local.exited(attempt())
    with pytest.raises(NotFound, match="is not running"):
        local.engine.check_port(attempt(), given)


def test_a_port_that_is_asked_for_by_its_number_is_given_or_waited_for(ten_free: int) -> None:
    ledger = PortLedger(ten_free, ten_free + 4)
    taken = ledger.take([PortRequest("web", 2, start=ten_free + 6), PortRequest("any")])
    assert taken["web"] == (ten_free + 6, ten_free + 7)
    assert ten_free <= taken["any"][0] <= ten_free + 4
    with pytest.raises(Unavailable, match="in use"):
        ledger.take([PortRequest("free"), PortRequest("other", 1, start=ten_free + 7)])
    ledger.release(taken)
    assert ledger.take([PortRequest("other", 1, start=ten_free + 7)])["other"] == (ten_free + 7,)
    assert len(ledger.take([PortRequest("all", 5)])["all"]) == 5, "a refused request must keep nothing"
