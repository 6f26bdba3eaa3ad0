"""Lives that are played side by side with the same gangs, on three nodes, to compare their plans."""

from __future__ import annotations

from collections.abc import Callable

from corral.kernel.draw import draw_integer
from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.plan import Plan
from corral.model.requests import GangRequest
from corral.scheduler import Policy, Queue
from tests.scheduler.life import Life
from tests.scheduler.machines import node

Drawn = Callable[[int, int, int], GangRequest]
"""The gang of a seed, a second, and a number within that second."""


class LifeWithQueue(Life):
    """A life with another queue."""

    def __init__(self, policy: Policy, queue: Queue) -> None:
        super().__init__(machines(), policy=policy)
        self.planner.queue = queue
        self.queue.history = self.cluster.history
        self.configure()


def machines() -> list[Node]:
    return [node(f"n{number}") for number in range(3)]


def second_of(life: Life, seed: int, second: int, drawn: Drawn, *, most: int, submits: bool) -> Plan:
    """Submit one to `most` gangs, end what is over in this second, and plan."""
    life.now = float(second)
    over = {job for end, job in life.cluster.ends if end <= life.now}
    over |= {JobId(job) for job, since in life.running.items() if life.now - since > 15}
    life.end(*sorted(over))
    if draw_integer(seed, second) % 3 == 0:
        life.yielded()
    if submits:
        life.submit(*(drawn(seed, second, at) for at in range(1 + draw_integer(seed, second, 9) % most)))
    return life.cycle(life.now)
