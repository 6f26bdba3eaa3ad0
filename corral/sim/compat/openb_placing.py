"""Placement of pods on GPU nodes one by one, with the six scores of table E.

A score depends on a pod's shape and on one node. The table of scores by shape and node is kept; a placement renews one
column. Ties go to the first node of a shuffled order. GPUs of a node are kept in ascending order of what is left, as no
score depends on their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from corral.sim.compat.openb import Machine, Shape, Typical
from corral.sim.traces.openb import MILLI, MOST_GPUS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CPU = 128_000
"""Thousandths of processors by which scores are normalised."""
MOST_MILLI = MILLI * MOST_GPUS
"""Thousandths of GPUs by which scores are normalised."""
UNFIT = -1
"""The score of a node on which the pod does not fit."""


class Shapes:
    """All shapes of a workload as arrays, one entry a shape."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.cpu = np.array([shape.cpu for shape in shapes], dtype=np.int64)
        self.memory = np.array([shape.memory for shape in shapes], dtype=np.int64)
        self.gpus = np.array([shape.gpus for shape in shapes], dtype=np.int64)
        self.milli = np.array([shape.milli for shape in shapes], dtype=np.int64)
        self.asked = self.gpus * self.milli
        self.affinity = np.array([affinity(shape) for shape in shapes], dtype=np.int64)


def affinity(shape: Shape) -> int:
    """Return the class by which GPU clustering groups pods: 0 no GPU, -1 part of one, otherwise the number of GPUs."""
    return -1 if shape.gpus == 1 and shape.milli < MILLI else shape.gpus


@dataclass
class NodeState:
    """What is left of a node; `left` is in ascending order, in thousandths of each GPU."""

    cpu: int
    memory: int
    left: Ints
    affinities: set[int]

    @property
    def idle(self) -> int:
        """Return the number of GPUs that nobody uses."""
        return int((self.left == MILLI).sum())

    def take(self, shape: Shape, gpu: int) -> None:
        """Give the pod a part of GPU number `gpu`, or as many idle GPUs as it wants."""
        self.cpu -= shape.cpu
        self.memory -= shape.memory
        if affinity(shape) == -1:
            self.left[gpu] -= shape.milli
        elif shape.gpus:
            self.left[len(self.left) - shape.gpus :] = 0
        self.left.sort()
        if shape.gpus:
            self.affinities.add(affinity(shape))


class Score(Protocol):
    """The rating of one node for all shapes, 0 to 100; the highest wins."""

    def scores(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return one score a shape, meaningful only where the shape fits."""

    def gpu(self, node: NodeState, shape: Shape) -> int:
        """Return the GPU of the node for a pod that wants a part of one."""


def tightest_gpu(node: NodeState, shape: Shape) -> int:
    """Return the GPU with the least left that suffices."""
    return int(np.searchsorted(node.left, shape.milli))


def fits(node: NodeState, shapes: Shapes) -> NDArray[np.bool_]:
    """Return for each shape whether the node has room for it."""
    largest = int(node.left[-1]) if len(node.left) else 0
    partial = (shapes.affinity == -1) & (shapes.milli <= largest)
    whole = (shapes.affinity != -1) & (shapes.gpus <= node.idle)
    fitting: NDArray[np.bool_] = (shapes.cpu <= node.cpu) & (shapes.memory <= node.memory) & (partial | whole)
    return fitting


def allocated_shares(
    pods: Sequence[Shape], machines: Sequence[Machine], score: Score | None, seed: int
) -> tuple[Floats, Floats]:
    """Place the pods in order; returns, after each pod, the GPUs asked for so far and those allocated.

    Both are shares of the cluster's GPUs. Without a score each pod goes to a random node and a random GPU that fit. `seed`
    shuffles the order of nodes, which breaks ties. O(nodes + shapes) a pod, beside the score.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    nodes = [
        NodeState(machines[at].cpu, machines[at].memory, np.full(machines[at].gpus, MILLI, dtype=np.int64), set())
        for at in draw.permutation(len(machines))
    ]
    kinds = sorted(set(pods))
    number = {shape: index for index, shape in enumerate(kinds)}
    shapes = Shapes(kinds)
    table = np.empty((len(kinds), len(nodes)), dtype=np.int64)
    renewed: dict[tuple[object, ...], Ints] = {}
    for at, node in enumerate(nodes):
        table[:, at] = _column(node, shapes, score, renewed)
    taken = np.zeros(len(pods))
    for index, pod in enumerate(pods):
        row = table[number[pod]]
        best = _random_node(row, draw) if score is None else int(row.argmax())
        if row[best] != UNFIT:
            node = nodes[best]
            if affinity(pod) == -1:
                node.take(pod, _random_gpu(node, pod, draw) if score is None else score.gpu(node, pod))
            else:
                node.take(pod, 0)
            table[:, best] = _column(node, shapes, score, renewed)
            taken[index] = pod.gpus * pod.milli
    total = MILLI * sum(machine.gpus for machine in machines)
    return np.cumsum([pod.gpus * pod.milli for pod in pods]) / total, np.cumsum(taken) / total


def allocated_at(percent: int, asked: Floats, allocated: Floats) -> float:
    """Return the mean share allocated while the share asked for rounds to `percent`, as FGD's analysis reports it."""
    return float(allocated[np.rint(asked * 100) == percent].mean())


def _random_node(row: Ints, draw: np.random.Generator) -> int:
    choices = np.flatnonzero(row != UNFIT)
    return int(choices[draw.integers(len(choices))]) if len(choices) else 0


def _random_gpu(node: NodeState, pod: Shape, draw: np.random.Generator) -> int:
    return int(draw.integers(tightest_gpu(node, pod), len(node.left)))


def _column(node: NodeState, shapes: Shapes, score: Score | None, renewed: dict[tuple[object, ...], Ints]) -> Ints:
    key = (node.cpu, node.memory, node.left.tobytes(), frozenset(node.affinities))
    known = renewed.get(key)
    if known is None:
        rated = np.zeros(len(shapes.cpu), dtype=np.int64) if score is None else score.scores(node, shapes)
        known = renewed[key] = np.where(fits(node, shapes), rated, UNFIT)
    return known


class BestFit:
    """The node with the least left afterwards, processors and GPUs weighted equally."""

    def scores(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return 100 less the normalised remainder."""
        left = (node.cpu - shapes.cpu) / MOST_CPU * 0.5 + (node.left.sum() - shapes.asked) / MOST_MILLI * 0.5
        rated: Ints = np.trunc((1.0 - left) * 100).astype(np.int64)
        return rated

    def gpu(self, node: NodeState, shape: Shape) -> int:
        """Return the tightest GPU."""
        return tightest_gpu(node, shape)


class DotProduct:
    """The smallest product of what is left and what is asked for, after Tetris (Grandl et al., SIGCOMM 2014)."""

    def scores(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return 100 less half the product of the vectors (processors, GPUs), normalised by the largest node."""
        cpu = node.cpu / MOST_CPU * (shapes.cpu / MOST_CPU)
        gpu = int(node.left.sum()) / MOST_MILLI * (shapes.asked / MOST_MILLI)
        return np.trunc((1.0 - (cpu + gpu) / 2) * 100).astype(np.int64)

    def gpu(self, node: NodeState, shape: Shape) -> int:
        """Return the tightest GPU."""
        return tightest_gpu(node, shape)


class Clustering:
    """Nodes that already hold pods of the same number of GPUs, fuller ones first (Gandiva; Xiao et al., OSDI 2018)."""

    def scores(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return 0 to 100 in four bands: the same class alone, the same among others, an idle node, other classes."""
        within = 25 * (MOST_MILLI - int(node.left.sum())) // MOST_MILLI
        same = np.array([int(kind) in node.affinities for kind in shapes.affinity])
        if not node.affinities:
            return np.where(shapes.affinity == 0, 0, within + 25)
        rated = np.where(same, within + (75 if len(node.affinities) == 1 else 50), within)
        return np.where(shapes.affinity == 0, 0, rated)

    def gpu(self, node: NodeState, shape: Shape) -> int:
        """Return the tightest GPU."""
        return tightest_gpu(node, shape)


class Packing:
    """GPUs in use first, then idle GPUs of nodes in use, then idle nodes (MLaaS; Weng et al., NSDI 2022)."""

    def scores(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return 0 to 100 in three bands, 100 to 50, 50 to 33 and below."""
        idle = node.idle
        if idle == len(node.left):
            rated = np.full(len(shapes.cpu), max(33 - idle, idle), dtype=np.int64)
            return np.where(shapes.milli == 0, 0, rated)
        first = np.minimum(np.searchsorted(node.left, shapes.milli), len(node.left) - 1)
        tightest = node.left[first]
        shared = np.maximum(100 - tightest * 100 // MILLI // 10, 50)
        fresh = np.maximum(50 - shapes.gpus, 33)
        return np.where(shapes.milli == 0, 0, np.where(tightest == MILLI, fresh, shared))

    def gpu(self, node: NodeState, shape: Shape) -> int:
        """Return the tightest GPU."""
        return tightest_gpu(node, shape)


class FragmentationGradient:
    """FGD: the node and the GPU whose expected fragmentation grows least (Weng et al., ATC 2023).

    A node's fragmentation is the expectation, over the typical pods, of the GPU thousandths that the pod cannot use: all
    that is left where the pod does not fit, else what is left on GPUs with too little. O(shapes x typical pods x GPUs).
    """

    def __init__(self, typical: Sequence[Typical]) -> None:
        self.cpu = np.array([pod.cpu for pod in typical], dtype=np.int64)
        self.gpus = np.array([pod.gpus for pod in typical], dtype=np.int64)
        self.milli = np.array([pod.milli for pod in typical], dtype=np.int64)
        self.share = np.array([pod.share for pod in typical])

    def usable(self, left: Ints) -> Floats:
        """Return what each typical pod can use of GPU states, weighted by its share, if processors suffice.

        `left` has a row per state; the result has a row per state and a column per typical pod.
        """
        suffices = left[:, :, None] >= self.milli[None, None, :]
        enough = (suffices.sum(axis=1) >= self.gpus) & (self.milli > 0)
        usable: Floats = np.where(enough, (left[:, :, None] * suffices).sum(axis=1), 0) * self.share
        return usable

    def scores(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return the score of each shape with the GPU that suits it best."""
        rated: Ints = self._rated(node, shapes).max(axis=1)
        return rated

    def gpu(self, node: NodeState, shape: Shape) -> int:
        """Return the first GPU with the best score."""
        return int(self._rated(node, Shapes([shape]))[0].argmax())

    def _rated(self, node: NodeState, shapes: Shapes) -> Ints:
        """Return the scores by shape and GPU; a shape without part of a GPU has one in the first column."""
        wanted, which = np.unique(shapes.affinity * (MILLI + 1) * 2 + shapes.milli, return_inverse=True)
        states, valid = self._states(node, shapes, which, len(wanted))
        usable = self.usable(states.reshape(-1, states.shape[2])).reshape(states.shape[0], states.shape[1], -1)
        now = float((self.usable(node.left[None, :])[0] * (node.cpu >= self.cpu)).sum())
        before = float(node.left.sum()) * float(self.share.sum()) - now
        suffices = (node.cpu - shapes.cpu)[:, None] >= self.cpu[None, :]
        after = states.sum(axis=2)[which] * self.share.sum() - np.einsum("st,sgt->sg", suffices, usable[which])
        rated = np.trunc(100 / (1 + np.exp((after - before) / 1000))).astype(np.int64)
        return np.where(valid[which], rated, UNFIT)

    def _states(
        self, node: NodeState, shapes: Shapes, which: NDArray[np.intp], kinds: int
    ) -> tuple[Ints, NDArray[np.bool_]]:
        """Return what each kind of request leaves of the GPUs, by the GPU chosen, and which choices are possible."""
        count = max(len(node.left), 1)
        states = np.tile(node.left, (kinds, count, 1))
        valid = np.zeros((kinds, count), dtype=np.bool_)
        first = {int(kind): index for index, kind in reversed(list(enumerate(which)))}
        for kind, index in first.items():
            gpus, milli = int(shapes.gpus[index]), int(shapes.milli[index])
            if shapes.affinity[index] == -1:
                valid[kind] = node.left >= milli
                states[kind, np.arange(count), np.arange(count)] -= np.where(valid[kind], milli, 0)
            elif gpus <= node.idle:
                valid[kind, 0] = True
                if gpus:
                    states[kind, 0, len(node.left) - gpus :] = 0
        return states, valid
