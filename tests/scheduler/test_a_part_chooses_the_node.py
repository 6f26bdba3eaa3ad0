"""A policy's *place* part chooses among the nodes with room, and decides nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.requests import DeviceRequest, NodeRules
from corral.scheduler import Cluster, Policy, TasksReleased, find_policy, gang_placed
from corral.scheduler.cluster.node_room import NodeRoom
from corral.scheduler.cluster.ranked_slots import Placing
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.policy.faults import MOST_FAULTS, CheckedPlace
from corral.scheduler.policy.place import Place, Tightest, Waiting
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import cluster, gang, node, place, role
from tests.scheduler.oracle import broken, fits
from tests.scheduler.test_nothing_is_ever_broken import SEEDS, decided, live
from tests.scheduler.test_parts_of_devices import QUARTER, sharing, start, where
from tests.scheduler.test_the_oracle_agrees import ALONE, GangPlacer, asked, world


@dataclass(frozen=True)
class Ranked:
    """A part without a context whose nodes are ranked by `rank_of`."""

    changes_with_time = False
    fills = False

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        return None

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        return self.rank_of(shape, node)

    def rank_of(self, shape: TaskShape, node: NodeRoom) -> int:
        """A number that says nothing, but changes with each change of the node."""
        return crc32(repr((shape, node)).encode()) >> 8

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        return sorted((each.number for each in node.devices), key=lambda number: crc32(repr((number, node)).encode()))


class AsWithout(Ranked):
    """For tasks that need devices only, the order that the default part has."""

    def rank_of(self, shape: TaskShape, node: NodeRoom) -> int:
        free = node.left // 1_000_000
        return free // shape.devices * 1000 + free


class Emptiest(Ranked):
    """The emptiest node, and of it the last device."""

    def rank_of(self, shape: TaskShape, node: NodeRoom) -> int:
        return 2**23 - node.left // 1000

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        return [each.number for each in reversed(node.devices)]


def placed_by(target: Cluster, part: Place) -> Cluster:
    """The cluster, whose nodes the part chooses."""
    for index in target.engines.values():
        index.place_by(Placing(part, part.prepare(target, (), 0.0)))
    return target


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4), st.sampled_from(["", "rack", "node"])), max_size=12))
def test_the_ranks_of_the_default_part_give_its_placements(wanted: list[tuple[int, int, str]]) -> None:
    nodes = [node(f"n{at}", 2 + at % 4 * 2, rack=f"r{at % 3}") for at in range(9)]
    plain, ranked = cluster(*nodes), placed_by(cluster(*nodes), AsWithout())
    for number, (tasks, devices, level) in enumerate(wanted):
        request = gang(f"job-{number}", role(tasks, devices), required=level)
        found = place(plain, request)
        assert place(ranked, request) == found
        if found is not None:
            for target in (plain, ranked):
                target.apply(gang_placed(request, found, 0.0))
        if number % 3 == 2 and plain.gangs.by_job:
            job = next(iter(plain.gangs.by_job))
            ended = TasksReleased(job, tuple(plain.holds(job)))
            for target in (plain, ranked):
                target.apply(ended)
        assert ranked.consistent() and ranked.digest() == plain.digest()


class Farthest(Ranked):
    """The node whose number is farthest from the one that was prepared."""

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        assert isinstance(context, int)
        return 100 - abs(int(node.node.removeprefix("local/n")) - context)


def test_what_a_part_prepares_anew_ranks_the_nodes_again() -> None:
    """Nodes are ranked by the last context also where others changed in between; an equal one keeps the ranks."""
    part, source = Farthest(), random.Random(5)
    kept, asked = (
        cluster(*(node(f"n{at}", 4) for at in range(9))),
        [role(1, 1), role(1, 2), role(1, ask=DeviceRequest(1, share=QUARTER))],
    )
    (index,) = kept.engines.values()
    for number in range(60):
        context = source.choice([0, 8])
        fresh = kept.fork()
        for target in (kept, fresh):
            for each in target.engines.values():
                if target is fresh:
                    each._ranked = {}
                each.place_by(Placing(part, context))
        request = gang(f"job-{number}", asked[number % 3])
        found = place(kept, request)
        assert found == place(fresh, request)
        assert found is None or abs(int(found.tasks[0].node.removeprefix("local/n")) - context) >= 4
        held = [*index._ranked.values()]
        index.place_by(Placing(part, context))
        assert [*index._ranked.values()] == held and kept.consistent()
        if found is not None:
            kept.apply(gang_placed(request, found, 0.0))
        if len(kept.gangs.by_job) > 6:
            job = source.choice(sorted(kept.gangs.by_job))
            kept.apply(TasksReleased(job, tuple(kept.holds(job))))


def test_the_default_part_needs_no_ranks() -> None:
    life = Life([node("n1")])
    life.submit(gang("job", role(2)))
    life.cycle(0.0)
    assert life.policy.place == Tightest()
    (index,) = life.cluster.engines.values()
    assert index.placing is None and not index._ranked


@pytest.mark.parametrize("asking", ALONE)
def test_what_fits_does_not_depend_on_the_part(asking: GangPlacer) -> None:
    for seed in range(examples(40)):
        source = random.Random(f"several{asking.__name__}{seed}")
        machines = world(source, spare=True)
        (first,), fields = asking(source)
        others = [structs.replace(asking(source)[0][0], role=f"v{at}") for at in range(source.randint(0, 1))]
        request = asked((first, *others), fields)
        target = placed_by(machines.cluster(), Ranked())
        before, found = target.digest(), place(target, request)
        assert target.digest() == before and target.consistent()
        assert (found is not None) == fits(machines, request), seed
        assert found is None or broken(machines, request, found) == [], seed


def test_nothing_is_broken_where_a_part_ranks_nodes_by_a_hash() -> None:
    policy = replace(find_policy(), place=CheckedPlace("hash", Ranked(), False))
    for seed in (0, SEEDS, *range(1, examples(3))):
        life, _ = live(seed, policy=policy)
        assert life.policy is policy, "it was not switched off"


def test_decisions_by_a_part_do_not_depend_on_what_was_forked_between() -> None:
    policy = replace(find_policy(), place=Ranked())
    once = live(1, policy=policy)[1]
    assert once == live(1, restarts=True, policy=policy)[1] != decided(1)


def test_a_part_chooses_node_and_device() -> None:
    life = Life([node("n1"), node("n2", 2)], policy=Policy("emptiest", place=Emptiest()))
    for number in range(2):
        life.submit(gang(f"j{number}", role(ask=sharing(QUARTER)), at=float(number)))
    life.settle(0.0)
    held = [
        (hold.node, hold.devices) for number in range(2) for hold in life.cluster.holds(JobId(f"j{number}")).values()
    ]
    assert held == [("local/n1", 8), ("local/n1", 8)], "3.75 devices are still more than 2"
    for number in range(3):
        life.submit(gang(f"whole{number}", role(), at=float(number)))
    life.settle(1.0)
    nodes = [next(iter(life.cluster.holds(JobId(f"whole{number}")).values())).node for number in range(3)]
    assert nodes == ["local/n1", "local/n1", "local/n2"], "3.5 and 2.5 are more than 2, 1.5 is not"


def test_spread_parts_keep_their_order() -> None:
    target = placed_by(cluster(node("n1", 2), node("n2", 2)), AsWithout())
    found = [where(start(target, gang(f"j{at}", role(ask=sharing(QUARTER, spread=True)))))[0] for at in range(4)]
    assert len(set(found)) == 4


class Failing(Ranked):
    """A part that answers, or raises, what it was given."""

    def __init__(self, rank: object = 0, devices: object = (), context: object = None) -> None:
        self.answers = {"rank": rank, "device": devices, "prepare": context}

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        return self._answer("prepare")

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        return self._answer("rank")  # type: ignore[return-value]

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        return self._answer("device")  # type: ignore[return-value]

    def _answer(self, method: str) -> object:
        answer = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Failing(context=RuntimeError("no context")), "raised RuntimeError: no context"),
        (Failing(rank=ValueError("no rank")), "raised ValueError: no rank"),
        (Failing(rank=1.0), "gave node local/n1 the rank 1.0, not a whole number below 2**24"),
        (Failing(rank=2**24), "the rank 16777216"),
        (Failing(rank=-1), "the rank -1"),
        (Failing(devices=KeyError("gpu")), "raised KeyError: 'gpu'"),
        (Failing(devices=[0, 0]), "gave the devices [0, 0], which are not all of node local/n1, each once"),
        (Failing(devices=[9]), "the devices [9]"),
    ],
)
def test_a_plan_is_made_without_a_part_that_fails(part: Failing, said: str) -> None:
    life = Life([node("n1")], policy=Policy("bad", place=CheckedPlace("bad", part, False)))
    for number in range(4):
        life.submit(gang(f"job{number}", role(2, ask=sharing(QUARTER))))
        found = life.cycle(float(number))
        assert [placed.job for placed in found.placements] == [f"job{number}"]
        assert [fault.part for fault in found.faults] == ["place"] * (number < MOST_FAULTS)
        assert all(said in fault.message for fault in found.faults)
    assert life.policy.place == Tightest(), "it was switched off after three plans"


class LastNode(Ranked):
    """The last node."""

    def rank_of(self, shape: TaskShape, node: NodeRoom) -> int:
        return 1000 - int(node.node[-1])


class Broken(LastNode):
    """A part that fails beside plans."""

    def rank_of(self, shape: TaskShape, node: NodeRoom) -> int:
        raise ValueError("broken")


def reserved(part: Place) -> Life:
    """Two half full nodes; the first of the queue waits for a whole one, and a job for three devices of the first node."""
    life = Life([node("n1"), node("n2")], policy=replace(find_policy("fifo"), place=part))
    life.submit(gang("r1", role(1, 2, nodes=NodeRules(include=("n1",))), max_duration_seconds=100))
    life.submit(gang("r2", role(1, 2, nodes=NodeRules(include=("n2",))), max_duration_seconds=100))
    life.cycle()
    life.submit(gang("head", role(1, 4), at=1.0), gang("job", role(1, 3, nodes=NodeRules(include=("n1",))), at=2.0))
    life.cycle(3.0)
    return life


def test_what_is_found_beside_plans_takes_the_part_too() -> None:
    """Where the part keeps the second node for the head, a job starts on what is left of the first one."""
    found = {}
    for part in (Tightest(), LastNode()):
        life = reserved(part)
        reasons = life.planner.explain(JobId("job"), life.now)
        assert reasons is not None
        before = life.planner.digest()
        changes = life.planner.smallest_changes(JobId("job"), reasons, life.now)
        assert life.planner.digest() == before and life.cluster.consistent()
        found[type(part)] = [(each.path, each.after) for each in changes]
    fewer = ("roles.worker.resources.devices", 2)
    assert fewer in found[LastNode] and fewer not in found[Tightest], found


def test_a_part_that_fails_beside_plans_gives_way_to_the_default_part() -> None:
    life = reserved(Tightest())
    life.planner.policy = replace(life.policy, place=CheckedPlace("broken", Broken(), changes_with_time=False))
    reasons = life.planner.explain(JobId("job"), life.now)
    assert reasons is not None and reasons.binding.code != "starts-now"
    assert life.cluster.consistent() and all(index.placing is None for index in life.cluster.engines.values())
