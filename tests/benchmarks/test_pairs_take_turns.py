"""Tasks that measure their ways in turn: each waits for its turn, and who is gone is not waited for at the end."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from corral.benchmarks.programs import pairs
from corral.benchmarks.programs.given import Given, NotMeasurable
from tests.reserved import free_port


def task(rank: int, addresses: tuple[str, ...]) -> Given:
    return Given(rank, len(addresses), 0, addresses, {}, ())


def test_a_task_waits_for_its_turn_without_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large gang its first turn and its next one are further apart than a peer may be away."""
    doors: dict[str, socket.socket] = {}
    limits: list[float | None] = []
    make = socket.create_server

    def made(address: tuple[str, int], *, backlog: int) -> socket.socket:
        return doors.setdefault(f"{address[0]}:{address[1]}", make(address, backlog=backlog))

    def way(address: str) -> tuple[float, float]:
        with pairs.reach(address) as there:
            there.sendall(b"figure\n")
            figure = float(pairs.line(there))
        limits.extend(doors[each].gettimeout() for each in addresses[1:] if each in doors)
        return figure, 2 * figure

    monkeypatch.setattr(socket, "create_server", made)
    addresses = tuple(f"127.0.0.1:{free_port()}" for _ in range(3))
    with ThreadPoolExecutor(3) as threads:
        tasks = [
            threads.submit(pairs.in_turn, task(rank, addresses), way, lambda _, caller: caller.sendall(b"3\n"))
            for rank in range(3)
        ]
        first, *others = [each.result(60) for each in tasks]
    assert first["pair_1_2_lat"] == first["max_pair_lat"] == 3 and first["min_pair_bw"] == 6
    assert others == [{}, {}]
    assert set(limits) == {None}


def test_tasks_that_are_gone_are_not_waited_for_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = 0.0

    def sleep(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    def lacks() -> None:
        raise NotMeasurable("There is nothing to measure.")

    monkeypatch.setattr(pairs, "time", SimpleNamespace(monotonic=lambda: passed, sleep=sleep))
    addresses = tuple(f"127.0.0.1:{free_port()}" for _ in range(3))
    with pytest.raises(NotMeasurable):
        pairs.in_turn(task(0, addresses), lambda _: (1.0, 1.0), lambda _, __: None, lacks)
    assert 1 < passed < 15, "each may be late by a little"
