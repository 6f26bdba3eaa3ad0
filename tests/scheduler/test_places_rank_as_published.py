"""The built-in *place* parts choose as the published scores of `corral/sim/compat` do, on gangs of one task."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Device, Node
from corral.model.requests import DeviceRequest, FractionRequest, GangRequest
from corral.scheduler import Cluster, Policy, TasksReleased, find_place, find_policy, gang_placed
from corral.scheduler.cluster.node_room import DeviceRoom, NodeRoom
from corral.scheduler.placement.shape import task_shape
from corral.scheduler.planners.builtin.planning import plan
from corral.scheduler.policy.faults import CheckedPlace
from corral.scheduler.policy.fragmentation import Expected, Typical
from corral.scheduler.policy.fragmentation import FragmentationGradient as FragmentationGradientPart
from corral.scheduler.policy.place import Place
from corral.scheduler.policy.registry import PLACES
from corral.scheduler.policy.vector_places import Largest
from corral.sim.compat.openb import Shape
from corral.sim.compat.openb import Typical as Published
from corral.sim.compat.openb_placing import (
    MOST_CPU,
    BestFit,
    DotProduct,
    FragmentationGradient,
    NodeState,
    Score,
    Shapes,
    fits,
)
from corral.sim.traces.openb import MILLI, MOST_GPUS
from tests.examples import examples
from tests.scheduler.machines import cluster, gang, place, queue, role
from tests.scheduler.test_a_part_chooses_the_node import placed_by
from tests.scheduler.test_nothing_is_ever_broken import live

PUBLISHED: dict[str, Score] = {"best-fit": BestFit(), "dot-product": DotProduct()}
LARGEST = Largest(MOST_CPU, MOST_GPUS * 1_000_000)
NEAR = 2
"""Ranks that are closer may differ in a published score only by rounding."""

whole = st.builds(
    lambda cpu, gpus: Shape(cpu, 0, gpus, MILLI if gpus else 0), st.integers(0, 64_000), st.integers(0, 8)
)
shapes = st.one_of(whole, st.builds(Shape, st.integers(0, 64_000), st.just(0), st.just(1), st.integers(1, MILLI - 1)))
states = st.builds(
    lambda cpu, left: NodeState(cpu, 0, np.array(sorted(left), dtype=np.int64), set()),
    st.integers(0, MOST_CPU),
    st.lists(st.one_of(st.sampled_from([0, MILLI]), st.integers(0, MILLI)), max_size=MOST_GPUS),
)


def requested(shape: Shape, job: str = "job") -> GangRequest:
    """A gang of one task that asks for what the pod does."""
    part = FractionRequest(shape.milli * 1000, shape.milli * 1000)
    ask = DeviceRequest(1, share=part) if shape.gpus == 1 and shape.milli < MILLI else DeviceRequest(shape.gpus)
    return gang(job, role(ask=ask, cpu_millis=shape.cpu))


def room(state: NodeState, shape: Shape) -> NodeRoom:
    """The same node as Corral shows it to a part."""
    devices = (DeviceRoom(at, "", int(left) * 1000, shape.milli * 1000) for at, left in enumerate(state.left))
    return NodeRoom("local/n", state.cpu, 0, tuple(devices))


def check_order(part: Place, context: Any, score: Score, nodes: list[NodeState], shape: Shape) -> None:
    """Nodes on which the shape fits have the order of their published scores."""
    kinds, ask = Shapes([shape]), task_shape(requested(shape).roles[0])
    fitting = [node for node in nodes if fits(node, kinds)[0]]
    rated = sorted((part.rank(ask, room(node, shape), context), -int(score.scores(node, kinds)[0])) for node in fitting)
    for (rank, better), (later, worse) in pairwise(rated):
        assert better <= worse or later - rank <= NEAR
    assert all(0 <= rank < 2**24 for rank, _ in rated)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(sorted(PUBLISHED)), st.lists(states, min_size=2, max_size=6), shapes)
def test_ranks_have_the_order_of_the_published_scores(name: str, nodes: list[NodeState], shape: Shape) -> None:
    check_order(find_place(name), LARGEST, PUBLISHED[name], nodes, shape)


typical = st.dictionaries(
    shapes.map(lambda shape: shape._replace(cpu=shape.cpu // 4)), st.integers(0, 4), min_size=1, max_size=5
)


@settings(max_examples=examples(300), deadline=None)
@given(typical, st.lists(states.filter(lambda node: len(node.left) > 0), min_size=2, max_size=6), shapes)
def test_fragmentation_grows_as_published(tasks: dict[Shape, int], nodes: list[NodeState], shape: Shape) -> None:
    """`tasks` are typical tasks, each with the power of two that is its weight."""
    total, part = sum(2**power for power in tasks.values()), FragmentationGradientPart()
    score = FragmentationGradient(
        [Published(task.cpu, task.gpus, task.milli, 2**power / total) for task, power in tasks.items()]
    )
    expected = Expected(
        tuple((Typical(task.cpu, task.gpus, task.milli * 1000), 2**power) for task, power in tasks.items())
    )
    check_order(part, expected, score, nodes, shape)
    kinds, ask = Shapes([shape]), task_shape(requested(shape).roles[0])
    for node in nodes:
        if ask.share is not None and fits(node, kinds)[0]:
            chosen, rated = part.device(ask, room(node, shape), expected), score._rated(node, kinds)[0]
            assert set(chosen) == set(np.flatnonzero(node.left >= shape.milli).tolist())
            assert all(rated[better] >= rated[worse] - 1 for better, worse in pairwise(chosen))


def machines(source: random.Random) -> Cluster:
    """A cluster whose largest node has what the published scores are normalised by."""
    sizes = [(MOST_CPU, MOST_GPUS), *((source.choice([16_000, 64_000]), source.choice([0, 2, 4])) for _ in range(7))]
    return cluster(
        *(
            Node(
                f"local/n{at}",
                devices=tuple(Device(number, f"n{at}:{number}") for number in range(gpus)),
                cpu_millis=cpu,
                memory_bytes=2**40,
            )
            for at, (cpu, gpus) in enumerate(sizes)
        )
    )


def state_of(target: Cluster) -> tuple[list[NodeState], list[list[int]]]:
    """What is left of each node as the published code keeps it, and the device of each entry."""
    (index,) = target.engines.values()
    found, order = [], []
    for at, node in enumerate(index.tree.nodes):
        used, free = index.shared.at.get(at, {}), index.free[at]
        left = [
            MILLI - used[each.index].compute // 1000 if each.index in used else MILLI * (free >> each.index & 1)
            for each in node.devices
        ]
        ordered = sorted(range(len(left)), key=lambda number: left[number])
        found.append(NodeState(index.cpu[at], 0, np.array([left[number] for number in ordered], dtype=np.int64), set()))
        order.append(ordered)
    return found, order


def a_pod(source: random.Random) -> Shape:
    cpu = source.choice([0, 1000, 3500, 8000, 12_000])
    gpus, milli = source.choice([(0, 0), (1, 100), (1, 250), (1, 330), (1, 500), (1, MILLI), (2, MILLI), (4, MILLI)])
    return Shape(cpu, 0, gpus, milli)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_each_gang_of_one_task_goes_to_a_node_with_the_best_published_score(name: str, seed: int) -> None:
    source, score = random.Random(f"{name}{seed}"), PUBLISHED[name]
    target, running, placed = machines(source), list[str](), 0
    names = [node.name for node in target.nodes()]
    placed_by(target, find_place(name))
    for number in range(60):
        if running and source.random() < 0.3:
            job = running.pop(source.randrange(len(running)))
            target.apply(TasksReleased(JobId(job), (TaskKey("worker", 0),)))
        pod = a_pod(source)
        nodes, order = state_of(target)
        request, kinds = requested(pod, f"job-{number}"), Shapes([pod])
        rated = {at: int(score.scores(node, kinds)[0]) for at, node in enumerate(nodes) if fits(node, kinds)[0]}
        found = place(target, request)
        assert (found is None) == (not rated)
        if found is None:
            continue
        (task,) = found.tasks
        at = names.index(task.node)
        assert rated[at] == max(rated.values()), (number, pod)
        if task.share is not None:
            expected = nodes[at].left[score.gpu(nodes[at], pod)]
            assert nodes[at].left[order[at].index(task.devices[0])] == expected
        target.apply(gang_placed(request, found, 0.0))
        running.append(request.job)
        placed += 1
    assert placed > 20 and target.consistent()


def test_random_fit_spreads_over_nodes_and_devices_and_depends_on_the_state_only() -> None:
    nodes = [Node(f"local/n{at}", devices=tuple(Device(i, f"{at}:{i}") for i in range(4))) for at in range(20)]
    held = []
    for _ in range(2):
        target = placed_by(cluster(*nodes), find_place("random-fit"))
        for number in range(40):
            request = requested(Shape(0, 0, 1, 250), f"job-{number}")
            found = place(target, request)
            assert found is not None
            target.apply(gang_placed(request, found, 0.0))
        held.append(target.digest())
        (index,) = target.engines.values()
        assert len(index.shared.at) > 8, "packing would use three of twenty nodes"
        devices = [sum(number in used for used in index.shared.at.values()) for number in range(4)]
        assert min(devices) > 2
    assert held[0] == held[1]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_part_that_fills_nodes_places_equal_gangs_together_as_one_by_one(name: str) -> None:
    placed = 0
    for seed in range(5):
        source = random.Random(f"{name}{seed}")
        pods = [pod for pod in (a_pod(source) for _ in range(12)) if pod.milli in (0, MILLI)]
        waiting = queue(*(requested(pod, f"job-{at}-{copy}") for at, pod in enumerate(pods) for copy in range(6)))
        together, alone = (
            plan(machines(source), waiting.fork(), Policy("by", place=part), 0.0).placements
            for source, part in (
                (random.Random(seed), find_place(name)),
                (random.Random(seed), CheckedPlace(name, find_place(name), False, fills=False)),
            )
        )
        assert together == alone
        placed += len(together)
    assert placed > 50


@pytest.mark.parametrize("name", sorted(PLACES.keys() - {"tightest"}))
def test_nothing_is_broken_by_a_built_in_part(name: str) -> None:
    live(3, policy=replace(find_policy(), place=find_place(name)))


def test_typical_tasks_are_the_most_frequent_ones_that_run_and_wait() -> None:
    part = find_place("fragmentation-gradient")
    target = machines(random.Random(0))
    many, few = requested(Shape(1000, 0, 1, 500)), requested(Shape(0, 0, 2, MILLI))
    found = part.prepare(target, [(many, 99), (few, 9), (requested(Shape(5000, 0, 0, 0)), 1)], 0.0)
    assert found == Expected(((Typical(1000, 1, 500_000), 64), (Typical(0, 2, 1_000_000), 8))), "1 of 73 is below 5 %"
    running = place(target, many)
    assert running is not None
    target.apply(gang_placed(many, running, 0.0))
    assert part.prepare(target, [(many, 98), (few, 10)], 1.0) == found, "a start changes nothing"
    assert part.prepare(target, [], 1.0) == Expected(((Typical(1000, 1, 500_000), 1),))
    by_bytes = gang("bytes", role(ask=DeviceRequest(1, model="a", share=FractionRequest(memory_bytes=5))))
    assert part.prepare(cluster(), [(by_bytes, 1)], 0.0) == Expected(((Typical(0, 1, 1_000_000, "a"), 1),))


@pytest.mark.parametrize("seed", range(4))
def test_the_count_of_running_tasks_follows_starts_growth_and_ends(seed: int) -> None:
    """It equals a count of all running gangs after each change, in the cluster and in copies of it."""
    source, part = random.Random(seed), find_place("fragmentation-gradient")
    target, grown, ended = machines(source), 0, 0
    was, before = target, dict(target.gangs.asked())
    for number in range(80):
        running = [each.job for each in target.gangs.by_job.values()]
        choice = source.random()
        if running and choice < 0.3:
            job = source.choice(running)
            target.apply(TasksReleased(job, tuple(target.holds(job))[: source.randint(1, 2)]))
            ended += job not in target.gangs.by_job
        elif running and choice < 0.5:
            job = source.choice(running)
            more = gang(job, role(name=f"more-{number}", ask=DeviceRequest(), minimum=0, cpu_millis=500))
            if (found := place(target, more)) is not None:
                target.apply(gang_placed(more, found, float(number)))
                grown += 1
        else:
            request = requested(a_pod(source), f"job-{number}")
            if (found := place(target, request)) is not None:
                target.apply(gang_placed(request, found, float(number)))
        counted = Counter[tuple[int, DeviceRequest]]()
        for each in target.gangs.by_job.values():
            for one in each.request.roles if each.request else ():
                counted[one.cpu_millis, one.devices] += len(one.indexes)
        assert target.gangs.asked() == counted
        waiting = [(each.request, 1) for each in target.gangs.by_job.values() if each.request]
        assert part.prepare(target, (), 0.0) == part.prepare(machines(random.Random(seed)), waiting, 0.0)
        if number == 40:
            was, before = target, dict(target.gangs.asked())
            target = target.fork()
            assert target.gangs.asked() == before
    assert was.gangs.asked() == before, "the copy alone went on"
    assert grown > 3 and ended > 3


def test_fgd_leaves_whole_devices_to_the_jobs_that_need_them() -> None:
    """Parts of devices go to the node that is too small for the wide job, all to one device."""
    sizes = {"a": 4, "b": 3}
    target = cluster(
        *(
            Node(f"local/{name}", devices=tuple(Device(at, f"{name}:{at}") for at in range(count)), cpu_millis=64_000)
            for name, count in sizes.items()
        )
    )
    parts = [requested(Shape(0, 0, 1, 250), f"part-{number}") for number in range(3)]
    policy = Policy("fgd", place=find_place("fragmentation-gradient"))
    placed = plan(target, queue(*parts, requested(Shape(0, 0, 4, MILLI), "wide")), policy, 0.0).placements
    where = {each.job: (each.placement.tasks[0].node, each.placement.tasks[0].devices) for each in placed}
    assert where.pop(JobId("wide")) == ("local/a", (0, 1, 2, 3))
    assert len(where) == 3 and len(set(where.values())) == 1
    assert {node for node, _ in where.values()} == {"local/b"}
