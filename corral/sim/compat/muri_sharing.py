"""Muri-S and Muri-L (Zhao et al., SIGCOMM 2022): up to four jobs of one size take turns on the resources of the same GPUs.

An iteration of a job reads data, computes and exchanges gradients one after the other. Jobs whose iterations are shifted
against each other use different resources at a time. Which jobs share is a matching of the highest weight between groups,
whose weight is the part of all resources that the pair keeps busy; a second matching makes groups of four.

The anchor's rules are kept with two flaws: groups are made in the order of the queue and not of their weight, as the
sorted list is dropped, and a job of which no iteration was run yet is ordered by the duration of the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import permutations
from math import inf, isclose
from operator import add
from typing import Final

from corral.sim.compat.blossoms import heaviest_pairs
from corral.sim.compat.muri import Room, State
from corral.sim.compat.muri_jobs import SLOWDOWN, MuriJob, Nodes

MOST: Final = 4
"""Jobs that share GPUs, and kinds of resource that the anchor counts."""

SLOWER: Final = {2: 1.33 / SLOWDOWN, 3: 1.5 / SLOWDOWN, 4: 1.37 / SLOWDOWN}
"""An iteration of so many jobs in turns takes this multiple of what their profiles say."""

_TURNS: Final = 8
"""Steps of a schedule of four that are computed: two rounds."""

Stages = tuple[float, ...]
Group = list[State]


def seconds_together(jobs: Sequence[Stages]) -> float:
    """Return the seconds in which each of two to four jobs runs an iteration, in the best of all orders.

    In step i the job i + 1 uses the network, i + 2 the GPUs, and i + 3 the processors since the step before, each counted
    modulo four.
    """
    shortest = min(_period(order) for order in permutations(jobs))
    if len(jobs) == 2:
        one, other = jobs
        apart = max(one[0], other[1] + other[2]) + max(other[0], one[1] + one[2])
        shortest = min(shortest, apart)
    return shortest


def _period(order: Sequence[Stages]) -> float:
    count = len(order)
    done = [0.0] * (_TURNS + 1)
    for step in range(_TURNS):
        ends = done[step + 1]
        for ahead, stage, begun in ((1, 2, step), (2, 1, step), (3, 0, step - 1)):
            turn = (step + ahead) % MOST
            if begun >= 0 and turn < count:
                ends = max(ends, done[begun] + order[turn][stage])
        done[step + 1] = ends
        if step >= MOST:
            period = ends - done[step - 3]
            if isclose(period, done[step] - done[step - MOST], rel_tol=1e-3) and period > 0:
                return period
    return done[_TURNS] - done[_TURNS - MOST]


class Interleaving:
    """How well jobs go together; answers are kept, as jobs of one model and size are alike."""

    def __init__(self) -> None:
        self._periods: dict[tuple[Stages, ...], float] = {}
        self._busy: dict[tuple[Stages, ...], float] = {}
        self._pairs: dict[tuple[tuple[Stages, ...], ...], list[int]] = {}

    def pace(self, jobs: Sequence[MuriJob]) -> float:
        """Return the seconds of an iteration of each of the jobs."""
        if len(jobs) == 1:
            return jobs[0].iteration_seconds
        return self._seconds(tuple(job.stages for job in jobs))

    def pairs(self, groups: Sequence[tuple[Stages, ...]]) -> list[int]:
        """Return the partner of each group in a matching of the highest weight, or -1. O(groups^3) for a new question."""
        asked = tuple(groups)
        if asked not in self._pairs:
            weights = [
                [
                    self._use(one + other) if at != to and len(one) + len(other) <= MOST else 0.0
                    for to, other in enumerate(asked)
                ]
                for at, one in enumerate(asked)
            ]
            self._pairs[asked] = heaviest_pairs(weights)
        return self._pairs[asked]

    def _seconds(self, jobs: tuple[Stages, ...]) -> float:
        alike = tuple(sorted(jobs))
        if alike not in self._periods:
            self._periods[alike] = seconds_together(alike)
        return self._periods[alike] * SLOWER[len(jobs)]

    def _use(self, jobs: tuple[Stages, ...]) -> float:
        """Return the part of all resources that is busy; the order of the sum is the anchor's."""
        if jobs not in self._busy:
            worked = reduce(add, (reduce(add, stages) for stages in jobs))
            self._busy[jobs] = worked / (self._seconds(jobs) * MOST)
        return self._busy[jobs]


class MuriOrder:
    """Muri-S when `durations_known`: the least remaining GPU-seconds first; else Muri-L: the least attained ones."""

    rounds_times = True

    def __init__(self, *, durations_known: bool, dissolves: bool = False) -> None:
        self.durations_known = durations_known
        self.dissolves = dissolves
        self.interleaving = Interleaving()

    def admit(self, state: State) -> None:
        """Take the duration of the trace as the remaining time of a job that never ran."""
        state.remaining_seconds = state.job.declared

    def leave(self, state: State) -> None:
        """Do nothing: the order is made anew at each event."""

    def next_change(self, live: Sequence[State], now: float) -> float:
        """Return infinity: only events change the order."""
        return inf

    def choose(self, live: list[State], nodes: Nodes, now: float) -> set[int]:
        """Choose jobs for four times the GPUs, group them until they fit, and place the groups in order."""
        live.sort(key=self._rank)
        groups = self._fitting(self._in_order(self._grouped(self._candidates(live, nodes), nodes)), nodes)
        group_of = {state.number: group for group in groups for state in group}
        live.sort(key=lambda state: state.job.gpus, reverse=True)
        room = Room(nodes)
        chosen: set[int] = set()
        for state in live:
            group = group_of.get(state.number)
            if group is None or state.number in chosen or not room.take(state.job.gpus):
                continue
            chosen.update(each.number for each in group)
            pace = self.interleaving.pace([each.job for each in group])
            for each in group:
                each.pace = pace
                each.lost = reduce(add, (mate.job.overhead for mate in group))
        return chosen

    def _rank(self, state: State) -> float:
        if self.durations_known:
            return state.remaining_seconds * state.job.gpus
        return state.executed * state.job.gpus

    def _candidates(self, live: Sequence[State], nodes: Nodes) -> dict[int, list[State]]:
        """Return by size the first jobs of the order, four for each that would fit alone."""
        by_size: dict[int, list[State]] = {}
        for state in live:
            by_size.setdefault(state.job.gpus, []).append(state)
        taken = dict.fromkeys(by_size, 0)
        passed = dict.fromkeys(by_size, 0)
        room = Room(nodes)
        for state in live:
            size = state.job.gpus
            passed[size] += 1
            if passed[size] > taken[size] and room.take(size):
                taken[size] = min(taken[size] + MOST, len(by_size[size]))
        return {size: states[: taken[size]] for size, states in by_size.items()}

    def _grouped(self, candidates: dict[int, list[State]], nodes: Nodes) -> dict[int, list[Group]]:
        groups = {size: [[state] for state in states] for size, states in candidates.items()}
        wanted = sum(size * len(states) for size, states in candidates.items())
        for _ in range(MOST):
            merged: dict[int, list[Group]] = {}
            for size, several in groups.items():
                if several:
                    merged[size], wanted = self._merged(several, size, wanted, nodes.gpus)
            groups = merged
            if wanted <= nodes.gpus:
                break
        return groups

    def _merged(self, groups: list[Group], size: int, wanted: int, capacity: int) -> tuple[list[Group], int]:
        """Merge matched groups in order while more GPUs are wanted than there are."""
        partners = self.interleaving.pairs([tuple(state.job.stages for state in group) for group in groups])
        merged: list[Group] = []
        for at, partner in enumerate(partners):
            if partner < 0:
                merged.append(groups[at])
            elif partner < at:
                if wanted > capacity:
                    merged.append(groups[partner] + groups[at])
                    wanted -= size
                else:
                    merged += [groups[partner], groups[at]]
        return merged, wanted

    def _in_order(self, groups: dict[int, list[Group]]) -> list[Group]:
        """Return the groups by the first job of each; `dissolves` takes those apart that are slower than turns."""
        found: list[Group] = []
        for group in (group for several in groups.values() for group in several):
            one_by_one = reduce(add, (state.job.iteration_seconds for state in group))
            if self.dissolves and self.interleaving.pace([state.job for state in group]) / one_by_one > 1:
                found += [[state] for state in group]
            else:
                found.append(group)
        found.sort(key=lambda group: min(self._rank(state) for state in group))
        return found

    def _fitting(self, groups: Sequence[Group], nodes: Nodes) -> list[Group]:
        room = Room(nodes)
        return [group for group in groups if room.take(group[0].job.gpus)]
