"""Random events with every rule in force: no bound is exceeded, no index drifts, and the cluster comes to rest."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest

from corral.kernel.draw import draw, draw_integer
from corral.model.inventory import Device, Node
from corral.model.plan import Plan
from corral.model.queues import CellQuota, QueueSpec, Reclaim
from corral.model.requests import DeviceRequest, FractionRequest, GangRequest
from corral.scheduler import BuiltinPlanner, NodesSeen, Policy, PriorityOrder, find_policy
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.policy.allot import AsManyAsFit
from corral.scheduler.policy.faults import CheckedAllot, CheckedOrder, CheckedPreempt
from corral.scheduler.preemption.rules import ByRules
from tests.examples import at_least, examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role

QUEUES = (
    QueueSpec("top", limit={"devices": 20}),
    QueueSpec("a", "top", deserved={"devices": 6}, min_runtime_seconds=5.0, user_limit={"devices": 8}),
    QueueSpec("b", "top", deserved={"devices": 4}, borrowing_limit={"devices": 6}, weight=2.0),
    QueueSpec("c", guaranteed={"devices": 2}, deserved={"devices": 4}, reclaim=Reclaim.LOWER_PRIORITY),
    QueueSpec("d", lending_limit={"devices": 1}, deserved={"devices": 2}, half_life_seconds=50.0),
)
OWNERS = (
    QueueSpec("a", cells=(CellQuota("rack", 1),)),
    QueueSpec("b", cells=(CellQuota("node", 1),), limit={"devices": 12}),
    QueueSpec("c", min_runtime_seconds=30.0),
    QueueSpec("d", "c", deserved={"devices": 4}),
)
STEPS = at_least(100, 250)
"""Events of a life. The first hundred see every rule of preemption and take a sixth of the time of 250."""
SEEDS = 20
PARTS = (
    FractionRequest(500_000),
    FractionRequest(250_000),
    FractionRequest(300_000, 700_000),
    FractionRequest(100_000),
)
"""Device fractions, used in lives from seed `SEEDS` on, which also have machines with slices."""
SLICES = 2
"""Slices of each sliced device."""


def machines(seed: int = 0) -> list[Node]:
    plain = [node(f"n{rack}{at}", 4, rack=f"r{rack}") for rack in range(3) for at in range(2)]
    return [cut(each) if seed >= SEEDS and at % 2 else each for at, each in enumerate(plain)]


def cut(whole: Node) -> Node:
    """The same machine with devices that can be given in slices."""
    slices = (
        Device(
            len(whole.devices) + number,
            f"{whole.name}:s{number}",
            model="slice",
            cells=parent.cells,
            parent=parent.index,
        )
        for number, parent in enumerate(each for each in whole.devices for _ in range(SLICES))
    )
    return msgspec.structs.replace(whole, devices=(*whole.devices, *slices))


def request(seed: int, step: int) -> GangRequest:
    def of(kind: str, count: int) -> int:
        return draw_integer(seed, step, kind) % count

    most = 1 + of("tasks", 6)
    devices = (0, 1, 1, 2)[of("devices", 4)]
    least = max(1, most - 3) if of("elastic", 3) == 0 else most
    part = PARTS[of("part", 4)] if seed >= SEEDS and devices == 1 and of("parted", 3) else None
    model = "slice" if seed >= SEEDS and devices and of("sliced", 3) == 0 else ""
    return gang(
        f"job{step:04}",
        role(most, minimum=least, cpu_millis=500, ask=DeviceRequest(devices, model=model, share=part)),
        at=float(step),
        queue="abcd"[of("queue", 4)],
        user=("ada", "bob")[of("user", 2)],
        priority=(-1, 1, 10, 100)[of("priority", 4)],
        required=("", "", "node", "rack")[of("level", 4)] if devices else "",
        max_duration_seconds=(0, 0, 40)[of("bound", 3)],
        preemptible=of("preemptible", 6) > 0,
    )


def change_health(life: Life, seen: dict[str, Node], seed: int, step: int) -> None:
    name = sorted(seen)[draw_integer(seed, step, "node") % len(seen)]
    sick = draw_integer(seed, step, "sick") % 8
    devices = tuple(msgspec.structs.replace(each, healthy=each.index != sick) for each in seen[name].devices)
    ready = draw_integer(seed, step, "ready") % 4 > 0
    seen[name] = msgspec.structs.replace(seen[name], devices=devices, ready=ready)
    life.planner.fold(NodesSeen(inventory(*seen.values())))


def bounds_hold(life: Life) -> None:
    """Check the bounds without the scheduler's own sums, from the holders of devices and fractions."""
    used: dict[str, Fraction] = {}
    by_user: dict[tuple[str, str], Fraction] = {}
    taken: set[tuple[str, int]] = set()
    for job in life.running:
        asked = life.requests[job]
        held = Fraction(0)
        for hold in life.cluster.holds(asked.job).values():
            parts = {part.device: part for part in (hold.extra.shares if hold.extra else ())}
            for device in indexes(hold.devices):
                share = Fraction(max(parts[device][1:]), 1_000_000) if device in parts else Fraction(1)
                held += share / (SLICES if device >= 4 else 1)
                taken.add((hold.node, device))
        spec = life.cluster.queues.specs.get(asked.queue)
        while spec is not None:
            used[spec.name] = used.get(spec.name, Fraction(0)) + held
            by_user[spec.name, asked.user] = by_user.get((spec.name, asked.user), Fraction(0)) + held
            spec = life.cluster.queues.specs.get(spec.parent)
    assert not any(at >= 4 and (name, (at - 4) // SLICES) in taken for name, at in taken), "a device and its slice"
    for name, spec in life.cluster.queues.specs.items():
        assert life.cluster.queues.nodes[name].used[0] == used.get(name, 0) * 1000
        if not any(gang.guaranteed and gang.queue == name for gang in life.cluster.gangs.by_job.values()):
            assert used.get(name, 0) <= spec.limit.get("devices", 1000)
        for (queue, _), held in by_user.items():
            assert queue != name or held <= spec.user_limit.get("devices", 1000)


def live(seed: int, *, restarts: bool = False, policy: Policy | None = None, steps: int = STEPS) -> tuple[Life, str]:
    """A life of random events, and a hash of all its decisions."""
    life, said = Life(machines(seed), OWNERS if seed % 2 else QUEUES, policy), blake2b(digest_size=16)
    seen = {each.name: each for each in machines(seed)}
    for step in range(steps):
        kind = draw_integer(seed, step, "kind") % 10
        if kind < 4:
            life.submit(request(seed, step))
        elif kind == 4 and life.running:
            life.end(sorted(life.running)[int(draw(seed, step, "ends") * len(life.running))])
        elif kind == 5:
            life.yielded()
        elif kind == 6 and step % 3 == 0:
            change_health(life, seen, seed, step)
        else:
            if restarts:
                life.planner = BuiltinPlanner(life.cluster.fork(), life.queue, life.policy)
            said.update(_said(life.cycle(float(step))))
            bounds_hold(life)
        assert not life.cluster.ownership.shortfalls()
    if (restarts, policy, steps) == (False, None, STEPS):
        _FIRST.setdefault(seed, said.hexdigest())
    return life, said.hexdigest()


def decided(seed: int) -> str:
    """The hash of the decisions of this process's first plain life of a seed; it is lived if there was none."""
    return _FIRST[seed] if seed in _FIRST else live(seed)[1]


_FIRST: dict[int, str] = {}
"""What `decided` returns, by seed. A life takes seconds, so the tests below compare with one that was lived already."""


def _said(found: Plan) -> bytes:
    return msgspec.json.encode((found.placements, found.evictions), order="deterministic")


@pytest.mark.parametrize("seed", [*range(examples(SEEDS)), *range(SEEDS, SEEDS + examples(10))])
def test_a_life_of_random_events_breaks_nothing_and_comes_to_rest(seed: int) -> None:
    life, _ = live(seed)
    for name in {each.name for each in life.cluster.nodes()}:
        assert name
    life.planner.fold(NodesSeen(inventory(*machines(seed))))
    life.settle(1000.0, cycles=60)
    life.settle(1000.0, cycles=2)


@pytest.mark.parametrize("seed", range(at_least(2, 4)))
def test_the_same_events_decide_the_same_whatever_was_forked_between(seed: int) -> None:
    assert decided(seed) == live(seed)[1] == live(seed, restarts=True)[1]


def test_the_same_events_decide_the_same_whatever_the_order_of_dictionaries_and_sets() -> None:
    """String hashes differ in every process, and with them the order of sets."""
    asked = f"from {__name__} import live; print(*(live(seed, steps={STEPS})[1] for seed in range(2)))"
    expected = [decided(seed) for seed in range(2)]
    root = Path(__file__).parents[2]
    for hashing in ("1", "2")[: at_least(1, 2)]:
        environment = {**os.environ, "PYTHONHASHSEED": hashing, "PYTHONPATH": str(root)}
        told = subprocess.run(
            [sys.executable, "-c", asked], env=environment, cwd=root, capture_output=True, text=True, check=True
        )
        assert told.stdout.split() == expected


def test_the_same_events_decide_the_same_however_many_threads_decide() -> None:
    alone = decided(2)
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(lambda seed: live(seed)[1], [2] * 3)) == {alone}


def test_the_default_parts_behind_the_checks_of_installed_ones_decide_the_same() -> None:
    checked = replace(
        find_policy(),
        order=CheckedOrder("order", PriorityOrder(), False),
        allot=CheckedAllot("allot", AsManyAsFit(), False),
        preempt=CheckedPreempt("preempt", ByRules(), False),
    )
    for seed in (*range(at_least(1, 6)), *range(SEEDS, SEEDS + at_least(1, 4))):
        life, said = live(seed, policy=checked)
        assert said == decided(seed) and life.policy is checked, "no part of it was switched off"
