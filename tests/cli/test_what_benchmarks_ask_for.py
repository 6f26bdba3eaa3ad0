"""A benchmark asks for what is free on its node; on YARN for what a container may have beside the jobs' masters."""

from __future__ import annotations

from typing import Any, cast

import pytest

from corral.cli.benchmark_run import machine_of

GIB = 1024**3


def asked(engine: str, cpu_millis: int, memory_gib: int, *, tasks: int = 0) -> tuple[int, float]:
    """What is asked for of a node with so much free: thousandths of a processor, and GiB."""
    node: dict[str, Any] = {
        "name": f"{engine}/n1",
        "engine": engine,
        "tasks": tasks,
        "free": {"cpuMillis": cpu_millis, "memoryBytes": memory_gib * GIB, "devices": 0},
        "devices": [],
        "labels": {},
    }
    machine = machine_of(cast(Any, node))
    return machine.cpu_millis, machine.memory_bytes / GIB


@pytest.mark.parametrize(
    ("engine", "cpu_millis", "memory_gib", "told"),
    [
        ("local", 64_000, 500, (64_000, 400)),
        ("kubernetes", 7_600, 10, (7_600, 8)),
        ("yarn", 64_000, 500, (4_000, 8)),
        ("yarn", 7_000, 5, (3_000, 4)),
        ("yarn", 1_000, 5, (1_000, 4)),
    ],
)
def test_what_is_free_is_asked_for_as_far_as_the_engine_gives_it_to_one_task(
    engine: str, cpu_millis: int, memory_gib: int, told: tuple[int, float]
) -> None:
    assert asked(engine, cpu_millis, memory_gib) == told


@pytest.mark.parametrize("engine", ["local", "yarn"])
def test_little_is_asked_for_of_a_node_that_is_in_use(engine: str) -> None:
    assert asked(engine, 60_000, 400, tasks=2) == (1_000, 2)
