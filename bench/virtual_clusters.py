"""Time the scheduler on machines owned by virtual clusters, from 4,096 to 65,536 devices (HiveD's own benchmark).

Plans are carried out at once: preempted gangs have ended, and wait again, before the next gang arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from time import process_time

from bench.described import gang, machines
from bench.stats import percentile
from corral.kernel.draw import draw, draw_integer
from corral.model.plan import Eviction, GangPlacement
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import (
    BuiltinPlanner,
    GangPlaced,
    GangQueued,
    NodesSeen,
    QueuesConfigured,
    VirtualRun,
    find_policy,
)

SEED = 2026
POLICY = find_policy()
"""The default policy of `corral up`."""
OWNERS = 8
CHURN = 2000
"""Gangs that arrive after the machines are full."""
CROWDED = 90
"""Percent of devices held in the crowded run, where migrations and preemptions are often searched for."""

SECONDS_BETWEEN = 30.0
"""Seconds between two gangs: the mean run time is a day on 65,536 devices, an hour and a half on 4,096."""


def places() -> dict[str, float]:
    """Milliseconds a gang on 4,096 to 65,536 devices, and the ratio of the largest to the smallest."""
    found = {f"place-{8 * nodes}": place(nodes) for nodes in (512, 2048, 8192)}
    out = {f"{name}-mean": fmean(times) for name, (_, times) in found.items()}
    build, times = found["place-65536"]
    out["place-65536-p99"] = percentile(times, 0.99)
    out["place-growth"] = out["place-65536-mean"] / out["place-4096-mean"]
    out["build-65536"] = build
    out["place-4096-crowded-mean"] = fmean(place(512, CROWDED)[1])
    return out


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of processor time."""
    begun = process_time()
    work()
    return (process_time() - begun) * 1000


def place(nodes: int, percent: int = 75) -> tuple[float, list[float]]:
    """Place random gangs of 1 to 64 devices: until `percent` of the devices are held, then as many end as arrive.

    Returns the milliseconds to build the indexes, and those of each gang. The machines belong to 8 virtual clusters,
    each of which owns an eighth of the nodes, wherever they are. A gang goes to one that would hold at most nine tenths
    of its devices with it, or else to the emptiest.
    """
    inventory = machines(nodes, nodes // 16)
    owners = tuple(QueueSpec(f"vc{at}", cells=(CellQuota("node", nodes // OWNERS),)) for at in range(OWNERS))
    churn, most = Churn(), nodes * 8 * percent // 100

    def build() -> None:
        churn.planner.fold(NodesSeen(inventory))
        churn.planner.fold(QueuesConfigured(owners))

    built, times, number, full = timed(build), list[float](), 0, False
    while len(times) < CHURN:
        number += 1
        devices = 1 << draw_integer(SEED, number) % 7
        owner = churn.owner(draw_integer(SEED, number, 8), devices, nodes)
        request = gang(number, tasks=max(1, devices // 8), devices=min(8, devices), queue=owner)
        full = full or churn.held >= most
        if full:
            churn.thin(number, most)
        took = timed(lambda request=request: churn.submit(request))  # type: ignore[misc]
        churn.settle()
        if full:
            times.append(took)
    return built, times


class Churn(VirtualRun):
    """Gangs that arrive, run, are preempted and end."""

    def __init__(self) -> None:
        super().__init__(BuiltinPlanner(policy=POLICY))
        self.held = 0
        """Devices held."""
        self._used = [0] * OWNERS
        self._running: list[GangRequest] = []
        self._started: list[GangRequest] = []
        self._yielding: list[Eviction] = []

    def owner(self, drawn: int, devices: int, room: int) -> str:
        """A virtual cluster that holds at most nine tenths of its `room` with `devices` more, or else the emptiest."""
        able = [at for at in range(OWNERS) if self._used[at] + devices <= 0.9 * room]
        able = able or [self._used.index(min(self._used))]
        return f"vc{able[drawn % len(able)]}"

    def thin(self, number: int, most: int) -> None:
        """End running gangs, one by one, until at most `most` devices are held."""
        while self.held > most:
            ended = self._running.pop(int(draw(SEED, number, "ends", self.held) * len(self._running)))
            self.end(ended.job)
            self._count(ended, -1)

    def submit(self, request: GangRequest) -> None:
        """Queue a gang, run one cycle and apply its plan."""
        self.planner.fold(GangQueued(request))
        self.now += SECONDS_BETWEEN
        self._yielding += self.cycle().evictions

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Note that a gang runs; none of them is elastic."""
        if event.request is not None:
            self._started.append(event.request)

    def settle(self) -> None:
        """Count placed gangs as running; end the preempted ones and queue them again."""
        for request in self._started:
            self._running.append(request)
            self._count(request, 1)
        self._started.clear()
        gone = {eviction.job for eviction in self._yielding}
        for request in [request for request in self._running if request.job in gone]:
            self._running.remove(request)
            self.give_way(request.job)
            self._count(request, -1)
        self._yielding.clear()

    def _count(self, request: GangRequest, sign: int) -> None:
        devices = len(request.tasks) * request.roles[0].devices.count
        self.held += sign * devices
        self._used[int(request.queue.removeprefix("vc"))] += sign * devices
