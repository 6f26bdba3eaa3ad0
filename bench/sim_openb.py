"""One run of FGD on the openb cluster under Corral's own rules: processor time in all, of its scores and of the launcher.

Pods and clones of them come until they ask for 130 % of the devices, as in table E; seed 0. Scores and launcher are
measured in a second run, whose clocks make it slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple, ParamSpec, TypeVar

from bench.core import plain_loop
from bench.played import DATA, alone
from corral import launcher
from corral.scheduler import find_policy
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.node_room import NodeRoom
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.policy.fragmentation import FragmentationGradient
from corral.scheduler.policy.place import Waiting
from corral.sim.honest.openb_rows import NODES, PODS, clones, read_pods, read_site
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import WHOLE

_DEMAND: Final = 130
"""Percent of the devices that all pods ask for."""

Answer = TypeVar("Answer")
P = ParamSpec("P")


class Run(NamedTuple):
    """Processor seconds of a run, and of its parts where they were measured; how many pods came and started."""

    seconds: float
    scores: float
    launcher: float
    pods: int
    started: int


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-openb`."""
    run, parts = alone(play), alone(play, apart=True)
    return {
        "run": run.seconds,
        "scoring": parts.scores,
        "launcher": parts.launcher,
        "rest": parts.seconds - parts.scores - parts.launcher,
        "pods": run.pods,
        "started": run.started,
        "loop": plain_loop() * 1000,
    }


def play(*, apart: bool = False) -> Run:
    """Play seed 0; with `apart` measure scores and launcher."""
    site, pods = read_site(DATA / NODES), read_pods(DATA / PODS)
    jobs = clones(pods, site.devices * WHOLE * _DEMAND // 100, 0)
    scores, moves = Clock(), Clock()
    policy = replace(find_policy("fifo"), place=Timed(scores) if apart else FragmentationGradient())
    simulation = Simulation(jobs, site, policy, Knobs(told=False))
    if apart:
        launcher.create, launcher.step = moves.timed(launcher.create), moves.timed(launcher.step)
    begun = time.process_time()
    started = simulation.started_by(len(jobs))
    return Run(time.process_time() - begun, scores.seconds, moves.seconds, len(jobs), len(started))


class Clock:
    """Adds up the processor seconds of calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[P, Answer]) -> Callable[P, Answer]:
        """Return a function that does the same and is counted."""

        def counted(*arguments: P.args, **named: P.kwargs) -> Answer:
            begun = time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.thread_time() - begun

        return counted


@dataclass(frozen=True)
class Timed:
    """The part `fragmentation-gradient`, with a clock."""

    clock: Clock
    part: FragmentationGradient = field(default_factory=FragmentationGradient)
    changes_with_time: ClassVar[bool] = FragmentationGradient.changes_with_time
    fills: ClassVar[bool] = FragmentationGradient.fills

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        """Return what the part prepares."""
        return self.clock.timed(self.part.prepare)(cluster, waiting, now)

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return the part's rank."""
        return self.clock.timed(self.part.rank)(shape, node, context)

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        """Return the part's devices."""
        return self.clock.timed(self.part.device)(shape, node, context)
