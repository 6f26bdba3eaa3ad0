"""The event loop of Muri's simulator (Zhao et al., SIGCOMM 2022) with its orders SRTF, SRSF, Tiresias-L and Themis.

At each event every running job loses its start overhead, whether it was preempted or not. The order is then made anew, the
cluster is emptied, and jobs are placed in order; one that does not fit is skipped. A job that ends does not pay the
overhead of its last stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, isclose
from typing import Protocol

from corral.sim.compat.muri_jobs import MuriJob, Nodes

TIRESIAS_LIMITS: tuple[float, ...] = (3250.0, 7200.0)
"""GPU-seconds at which Tiresias-L moves a job to the next of its queues."""


class State:
    """The progress of one job. Times are in seconds of the simulated clock."""

    __slots__ = (
        "executed",
        "job",
        "lost",
        "number",
        "pace",
        "queue",
        "remaining",
        "remaining_seconds",
        "running",
        "since",
    )

    def __init__(self, number: int, job: MuriJob, now: float) -> None:
        self.number = number
        self.job = job
        self.remaining = float(job.iterations)
        self.remaining_seconds = job.iterations * job.iteration_seconds
        self.executed = 0.0
        self.since = now
        self.running = False
        self.queue = 0
        self.pace = job.iteration_seconds
        """Seconds that an iteration takes now; more than its own where the job shares its GPUs."""
        self.lost = job.overhead
        """Seconds that the job loses at each event at which it runs."""

    def advance(self, now: float) -> None:
        """Account for the time since the last event; a running job loses its overhead first."""
        if self.running:
            worked = max(now - self.since - self.lost, 0)
            self.executed = self.executed + now - self.since
            self.remaining -= worked / self.pace
            self.remaining_seconds = self.remaining * self.job.iteration_seconds
        self.since = now


class Order(Protocol):
    """Says which jobs run after an event, and when it must be asked again without an event."""

    rounds_times: bool
    """Whether an end and an arrival at almost the same time are one event, at the time of the arrival."""

    def admit(self, state: State) -> None:
        """Take in a job that arrived."""

    def leave(self, state: State) -> None:
        """Let go of a job that ended."""

    def choose(self, live: list[State], nodes: Nodes, now: float) -> set[int]:
        """Return the numbers of the jobs to run; it may reorder `live`, which the next event sees."""

    def next_change(self, live: Sequence[State], now: float) -> float:
        """Return when the order changes by itself; infinite if it does not."""


def completions(jobs: Sequence[MuriJob], nodes: Nodes, order: Order) -> tuple[list[float], int]:
    """Play the jobs to their ends; returns the time at which each ends, in seconds, and the number of events.

    O(events x live jobs).
    """
    arrivals = sorted(range(len(jobs)), key=lambda index: jobs[index].submitted)
    ends = [0.0] * len(jobs)
    live: list[State] = []
    ending: list[State] = []
    next_end, next_change, arrived, events = inf, inf, 0, 0
    while arrived < len(arrivals) or live:
        next_arrival = jobs[arrivals[arrived]].submitted if arrived < len(arrivals) else inf
        now = min(next_end, next_arrival)
        if order.rounds_times and isclose(next_end, next_arrival, abs_tol=1e-4) and now < inf:
            next_end = now = next_arrival
        changed_only = now > next_change
        if changed_only:
            now = next_change
        if now == inf:
            raise ValueError("A job fits nowhere in the cluster.")
        if not changed_only and next_end == now:
            for state in ending:
                ends[state.number] = now
                live.remove(state)
                order.leave(state)
        if not changed_only:
            while arrived < len(arrivals) and jobs[arrivals[arrived]].submitted == now:
                state = State(arrivals[arrived], jobs[arrivals[arrived]], now)
                live.append(state)
                order.admit(state)
                arrived += 1
        for state in live:
            state.advance(now)
        chosen = order.choose(live, nodes, now)
        next_end, ending = _next_ends(live, chosen, now)
        next_change = order.next_change(live, now)
        events += 1
    return ends, events


def _next_ends(live: Sequence[State], chosen: set[int], now: float) -> tuple[float, list[State]]:
    soonest, ending = inf, []
    for state in live:
        state.running = state.number in chosen
        if state.running:
            end = now + state.remaining * state.pace
            if end < soonest:
                soonest, ending = end, [state]
            elif end == soonest:
                ending.append(state)
    return soonest, ending


class Room:
    """The free GPUs of an empty cluster, by node, given away by first fit."""

    def __init__(self, nodes: Nodes) -> None:
        self.whole = nodes.gpus_per_node
        self.free = [nodes.gpus_per_node] * nodes.count
        self.left = nodes.gpus

    def take(self, wanted: int) -> bool:
        """Take up to a node's GPUs on the first node with room, more on whole idle nodes; returns whether they fit."""
        if wanted > self.left:
            return False
        if wanted <= self.whole:
            at = next((node for node, room in enumerate(self.free) if room >= wanted), -1)
            if at < 0:
                return False
            self.free[at] -= wanted
        else:
            idle = [node for node, room in enumerate(self.free) if room == self.whole]
            needed = ceil(wanted / self.whole)
            if len(idle) < needed:
                return False
            for node in idle[:needed]:
                self.free[node] = 0
        self.left -= wanted
        return True


def first_fit(live: Sequence[State], nodes: Nodes) -> set[int]:
    """Return the jobs that fit, in order; one that does not is skipped."""
    room = Room(nodes)
    chosen = set()
    for state in live:
        if room.take(state.job.gpus):
            chosen.add(state.number)
            if not room.left:
                break
    return chosen


class ShortestFirst:
    """SRTF, or SRSF when `by_service`: the remaining time, multiplied by the GPUs; ties keep their former order."""

    rounds_times = False

    def __init__(self, *, by_service: bool) -> None:
        self.by_service = by_service

    def admit(self, state: State) -> None:
        """Do nothing: the order is made anew at each event."""

    def leave(self, state: State) -> None:
        """Do nothing: the order is made anew at each event."""

    def choose(self, live: list[State], nodes: Nodes, now: float) -> set[int]:
        """Sort `live` and place it by first fit."""
        if self.by_service:
            live.sort(key=lambda state: state.remaining_seconds * state.job.gpus)
        else:
            live.sort(key=lambda state: state.remaining_seconds)
        return first_fit(live, nodes)

    def next_change(self, live: Sequence[State], now: float) -> float:
        """Return infinity: only events change the order."""
        return inf


class TiresiasL:
    """Discretised two-dimensional LAS (Gu et al., NSDI 2019) as Muri's simulator has it.

    A job moves down a queue when its GPU-seconds reach the queue's limit. Within a queue running jobs come before waiting
    ones. The cluster is one count of GPUs: no job is kept out by fragmentation.
    """

    rounds_times = False

    def __init__(self, limits: Sequence[float] = TIRESIAS_LIMITS) -> None:
        self.limits = tuple(limits)
        self.queues: list[list[State]] = [[] for _ in range(len(self.limits) + 1)]

    def admit(self, state: State) -> None:
        """Put the job at the end of the first queue."""
        self.queues[0].append(state)

    def leave(self, state: State) -> None:
        """Take the job out of its queue."""
        self.queues[state.queue].remove(state)

    def choose(self, live: list[State], nodes: Nodes, now: float) -> set[int]:
        """Demote, then take each job in queue order whose GPUs are free."""
        for state in live:
            below = state.running and state.queue < len(self.limits)
            if below and state.executed * state.job.gpus >= self.limits[state.queue]:
                self.queues[state.queue].remove(state)
                state.queue += 1
                self.queues[state.queue].append(state)
        left = nodes.gpus
        chosen = set()
        for queue in self.queues:
            for state in queue:
                if state.job.gpus <= left:
                    left -= state.job.gpus
                    chosen.add(state.number)
        for index, queue in enumerate(self.queues):
            run = [state for state in queue if state.number in chosen]
            self.queues[index] = run + [state for state in queue if state.number not in chosen]
        return chosen

    def next_change(self, live: Sequence[State], now: float) -> float:
        """Return when the first running job reaches the limit of its queue, rounded up to a whole second of service."""
        return min(
            (
                ceil(self.limits[state.queue] / state.job.gpus) - state.executed + now
                for state in live
                if state.running and state.queue < len(self.limits)
            ),
            default=inf,
        )
