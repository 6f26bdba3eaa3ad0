"""What a task did with its machine is told in figures; a planted cause is the first advice, its healthy twin has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.kernel.errors import InvalidInput
from corral.profiles.advice import Given
from corral.profiles.kinds import read
from corral.profiles.system import SystemReport, read_system
from corral.profiles.system_advice import advise_system
from corral.profiles.taken import Taken

MIB = 2**20
BUSY = {"ran": 1.0, "waited": 0.0, "disk": 0.0, "ready": 1.0}
ASKED = {"worker-0": Given(2000, 0)}


def facts(*threads: dict[str, float], seconds: float = 2.0, hit: float = 0.0, **rises: float) -> dict[str, Any]:
    """What a task answers whose threads did this in each second, and whose other counters rose by so much in all."""
    sums = {name: seconds * sum(each[name] for each in threads) for name in ("ran", "waited")}
    first = {"at": 0.0, "resident": 100.0 * MIB}
    last = {"at": seconds, "resident": 100.0 * MIB, **sums, "user": sums["ran"], **rises}
    listed = [{**each, "ran": seconds * each["ran"], "waited": seconds * each["waited"]} for each in threads]
    return {"looks": [first, last], "threads": listed, "processors": 4, "limits": {}, "devices": [], "hit": hit}


def told(*threads: dict[str, float], **rises: float) -> SystemReport:
    return read_system("worker-0", json.dumps(facts(*threads, **rises)))


def first(report: SystemReport, given: dict[str, Given] | None = None) -> tuple[str, float]:
    found = advise_system([report], ASKED if given is None else given)
    return (found[0].subject, round(found[0].gain, 2)) if found else ("", 0.0)


THROTTLED = {"periods": 20, "throttled": 15, "throttled_seconds": 1.0}
READS = {"read": 900 * MIB, "rchar": 1000 * MIB}
QUEUED = {**BUSY, "ran": 0.5, "waited": 0.5}
WAITS = {**BUSY, "ran": 0.4, "disk": 0.6}

PLANTED: dict[str, tuple[SystemReport, tuple[str, float], SystemReport]] = {
    "one thread where two were given": (told(BUSY), ("one-thread", 0.5), told(BUSY, BUSY)),
    "page-cache misses": (
        told(WAITS, **READS), ("page-cache", 0.6), told({**BUSY, "ran": 0.6}, read=0, rchar=1000 * MIB),
    ),
    "waits for writes": (
        told(WAITS, written=900 * MIB), ("disk", 0.6), told({**BUSY, "ran": 0.6}, written=900 * MIB),
    ),
    "held back": (told(BUSY, BUSY, **THROTTLED), ("throttling", 0.25), told(BUSY, BUSY, periods=20)),
    "others on the node": (
        told(QUEUED, QUEUED), ("run-queue", 0.5), told(BUSY, BUSY),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("planted", "advice", "healthy"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_cause_is_the_first_advice_and_its_healthy_twin_has_none(
    planted: SystemReport, advice: tuple[str, float], healthy: SystemReport
) -> None:
    assert first(planted) == advice
    assert advise_system([healthy], ASKED) == []


@pytest.mark.parametrize(
    ("kernel", "missed", "gain"),
    [(0.3, 1000, 0.6 + 0.2), (0.3, 500, 0.6 + 0.1), (0.1, 1000, 0.6), (0.05, 1000, 0.6), (0.9, 1000, 1.0)],
    ids=["all missed", "half missed", "copies alone", "less than copies", "no more than all"],
)
def test_what_the_kernel_does_to_fetch_what_was_missed_is_gained_beside_the_waits(
    kernel: float, missed: float, gain: float
) -> None:
    """Copies of the 1,000 MiB that were asked for take a tenth of the time, and stay."""
    reads = {"read": missed * MIB, "rchar": 1000 * MIB}
    waits = told({**WAITS, "kernel": kernel * 2}, hit=0.1 * 2 / (1000 * MIB), **reads)
    assert first(waits) == ("page-cache", round(gain, 2))
    assert first(told({**WAITS, "kernel": kernel * 2}, **reads)) == ("page-cache", 0.6), "copies were not measured"


def test_one_thread_is_no_cause_where_one_processor_was_given_or_little_is_done() -> None:
    assert first(told(BUSY), {"worker-0": Given(1000, 0)}) == ("", 0.0)
    assert first(told({**BUSY, "ran": 0.3})) == ("", 0.0)


def test_a_group_with_a_limit_counts_as_so_many_processors() -> None:
    answer = {**facts(BUSY), "limits": {"processors": 1.0}}
    assert first(read_system("worker-0", json.dumps(answer)), {}) == ("", 0.0)


def test_devices_are_told_by_use_and_memory_and_healthy_ones_have_no_advice() -> None:
    looks = [[at / 5, 0, 40, 20_000, 80_000] for at in range(10)]
    idle = read_system("worker-0", json.dumps({**facts(BUSY, BUSY), "devices": looks}))
    found = advise_system([idle], ASKED)
    assert [(each.subject, round(each.gain, 2), each.of) for each in found] == [
        ("device-use", 0.6, "time"), ("memory-slack", 0.69, "memory"),
    ]  # fmt: skip
    assert {each.name for each in idle.curves} >= {"device 0 in use", "device 0 memory"}
    busy = [[at / 5, 0, 97, 70_000, 80_000] for at in range(10)]
    healthy = read_system("worker-0", json.dumps({**facts(BUSY, BUSY), "devices": busy}))
    assert advise_system([healthy], ASKED) == []


def test_figures_are_the_rise_of_counters_in_a_second() -> None:
    found = {each.name: (each.unit, each.points[-1]) for each in told(BUSY, read=10.0 * MIB, voluntary=80).curves}
    assert found["read from the disk"] == ("MiB/s", 5.0)
    assert found["voluntary switches"] == ("/s", 40.0)
    assert found["memory of the processes"] == ("MiB", 100.0)
    assert "throttled" not in found  # what stays at zero is not drawn


GOOD = facts(BUSY)
HOSTILE = {
    "not JSON": "nonsense",
    "one look": json.dumps({**GOOD, "looks": GOOD["looks"][:1]}),
    "back in time": json.dumps({**GOOD, "looks": [{"at": 2.0}, {"at": 1.0}]}),
    "no time": json.dumps({**GOOD, "looks": [{}, {"at": 1.0}]}),
    "negative": json.dumps({**GOOD, "looks": [{"at": 0.0}, {"at": 1.0, "ran": -1}]}),
    "huge": json.dumps({**GOOD, "limits": {"memory": 1e19}}),
    "no processor": json.dumps({**GOOD, "processors": 0}),
    "odd device": json.dumps({**GOOD, "devices": [[0, -2, 0, 0, 0]]}),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_answer_about_a_machine_is_refused_in_one_sentence(text: str) -> None:
    found, problem = read(Taken("worker-0", 0, text=text), "system")
    assert found is None
    assert problem.startswith("What the task told of its machine") and problem.count(".") == 1
    with pytest.raises(InvalidInput):
        read_system("worker-0", text)
