"""Themis' finish-time fairness in the convex form that Muri's simulator solves at each event (table A).

Themis (Mahajan et al., NSDI 2020) bounds the ratio of a job's finish time to its finish time alone. Muri's simulator solves
it without the auction, as Gavel does, with one flaw that is kept here: the share of the cluster stands where the throughput
on that share is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from corral.sim.compat.muri import State, first_fit
from corral.sim.compat.muri_jobs import Nodes

Floats = NDArray[np.float64]

HALVINGS = 60
"""Steps of each bisection: the bracket shrinks to 1e-18 of its width."""


def fairest_fractions(waited: Floats, work: Floats, gpus: Floats, capacity: float) -> Floats:
    """Return the fractions x of time, 0 to 1, that minimise max(waited + work / x) with sum(gpus x) <= capacity.

    `waited` and `work` are in units of each job's own finish time. Where the optimum is not unique, the analytic centre of
    the optimal set is returned, to which the interior-point solver of the anchor tends. O(jobs) a step of the bisections.
    """
    bound = float(np.max(waited + work))
    if float(gpus @ (work / (bound - waited))) > capacity:
        return _by_capacity(waited, work, gpus, capacity, bound)
    return _centre(work / (bound - waited), gpus, capacity)


def _by_capacity(waited: Floats, work: Floats, gpus: Floats, capacity: float, low: float) -> Floats:
    high = low
    while float(gpus @ (work / (high - waited))) > capacity:
        high *= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float(gpus @ (work / (middle - waited))) > capacity:
            low = middle
        else:
            high = middle
    fractions: Floats = work / (high - waited)
    return fractions


def _centre(least: Floats, gpus: Floats, capacity: float) -> Floats:
    """Maximise sum(2 log(x - least) + log(1 - x)) + log(capacity - sum(gpus x)) over x.

    It is the barrier of the problem with the cones of 1 / x solved for: the optimum fulfils
    2 / (x - least) - 1 / (1 - x) = price gpus with price = 1 / (capacity - sum(gpus x)).
    """
    room = 1 - least

    def fractions(price: float) -> Floats:
        # With z = x - least: cost z^2 - (3 + cost room) z + 2 room = 0; the smaller root, in its stable form.
        cost = price * gpus
        b = 3 + cost * room
        found: Floats = least + 4 * room / (b + np.sqrt(b * b - 8 * cost * room))
        return found

    low, high = 0.0, 1.0
    while (slack := capacity - float(gpus @ fractions(high))) <= 0 or 1 / slack > high:
        high *= 4
        if high > 1e12:
            return least
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slack = capacity - float(gpus @ fractions(middle))
        if slack <= 0 or 1 / slack > middle:
            low = middle
        else:
            high = middle
    return fractions(high)


class Themis:
    """Jobs in order of their fair fraction over the time received, with the anchor's deficits; it keeps state by job."""

    rounds_times = False

    def __init__(self) -> None:
        self.alone_so_far: dict[int, float] = {}
        self.before: dict[int, tuple[float, float]] = {}
        self.due: dict[int, float] = {}
        self.last = 0.0

    def admit(self, state: State) -> None:
        """Begin the job's accounts."""
        self.alone_so_far[state.number] = 0.0
        self.due[state.number] = 0.0

    def leave(self, state: State) -> None:
        """Drop the job's accounts."""
        for account in (self.alone_so_far, self.due, self.before):
            account.pop(state.number, None)

    def choose(self, live: list[State], nodes: Nodes, now: float) -> set[int]:
        """Solve for the fractions, place by priority, then place what was chosen again with the largest jobs first."""
        chosen: set[int] = set()
        if live:
            fractions = self._fractions(live, nodes, now)
            keys = {}
            for state, fraction in zip(live, fractions, strict=True):
                received = state.executed
                urgency = fraction * 1e9 if received == 0 else fraction / received
                keys[state.number] = (urgency, self.due[state.number] - received, fraction)
                self.due[state.number] += fraction * (now - self.last)
            live.sort(key=lambda state: keys[state.number], reverse=True)
            picked = first_fit(live, nodes)
            live.sort(key=lambda state: state.job.gpus, reverse=True)
            chosen = first_fit([state for state in live if state.number in picked], nodes)
        self.last = now
        return chosen

    def next_change(self, live: Sequence[State], now: float) -> float:
        """Return infinity: only events change the order."""
        return inf

    def _fractions(self, live: Sequence[State], nodes: Nodes, now: float) -> list[float]:
        share = ceil(nodes.gpus / len(live))
        gpus, waited, work = [], [], []
        for state in live:
            alone = min(1.0, share / state.job.gpus)
            if state.number in self.before:
                remaining, rate = self.before[state.number]
                self.alone_so_far[state.number] += (remaining - state.remaining) / rate
            self.before[state.number] = (state.remaining, alone)
            finish_alone = self.alone_so_far[state.number] + state.remaining / alone
            gpus.append(float(state.job.gpus))
            waited.append((now - state.job.submitted) / finish_alone)
            work.append(state.remaining_seconds / finish_alone)
        solved = fairest_fractions(np.array(waited), np.array(work), np.array(gpus), float(nodes.gpus))
        found: list[float] = solved.tolist()
        return found
