"""Random events under the hived preset: planning changes nothing, and HiveD's state equals a recount."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.requests import ALONE, GangRequest
from corral.scheduler import GangQueued, NodesSeen, TasksReleased
from tests.examples import at_least
from tests.scheduler.machines import gang, role
from tests.scheduler.test_hived_decides import SITE, HivedLife

OTHER = SITE.replace("cellNumber: 2}]", "cellNumber: 1}]").replace("{cellAddress: n4}", "{cellAddress: n5}")
STEPS = at_least(60, 100)


class Chances:
    """Draws the next event of a life."""

    def __init__(self, life: HivedLife, seed: int) -> None:
        self.life = life
        self.draw = random.Random(seed)

    def step(self, number: int) -> None:
        """Make one random event."""
        some = [self.ends, self.life.yielded, self.sickens, self.configures, self.loses_a_task, self.is_stopped]
        at = self.draw.randrange(2 * len(some))
        if at < len(some):
            some[at]()
        else:
            self.life.submit(self.arrives(number))

    def arrives(self, number: int) -> GangRequest:
        """Submit a gang: of two roles or affinity groups, elastic, without devices, not preemptible, or outside HiveD's
        queues.
        """
        draw = self.draw
        names = ("a", "b")[: draw.choice([1, 1, 2])]
        roles = [
            role(
                draw.randrange(1, 4), draw.choice([0, 1, 1, 2, 4]), name=name, cpu_millis=draw.choice([100, 2000, 6000])
            )
            for name in names
        ]
        if draw.random() < 0.3:
            most = draw.randrange(2, 5)
            roles = [role(most, draw.choice([1, 2]), name="a", minimum=draw.randrange(1, most))]
        queue, priority = draw.choice(["prod", "test", "own", "default"]), draw.choice([-1, 0, 10, 100, 5000])
        if draw.random() < 0.3:
            groups = draw.choice([("/a", "/b"), ("/a", "/a"), ("/a", ALONE), (ALONE, ALONE)])
            pins = draw.choice([("", ""), ("", ""), ("PIN", "")]) if len(roles) > 1 and priority >= 0 else ("", "")
            roles = [
                structs.replace(each, affinity=group, pinned_cell=pinned)
                for each, group, pinned in zip(roles, groups, pins, strict=False)
            ]
        willing = draw.random() < 0.9
        return gang(f"j{number}", *roles, queue=queue, priority=priority, at=float(number), preemptible=willing)

    def ends(self) -> None:
        """End a job."""
        if self.life.running:
            self.life.end(self.draw.choice(sorted(self.life.running)))

    def is_stopped(self) -> None:
        """Stop a waiting job, perhaps with reserved cells."""
        life = self.life
        waits = [job for job in life.requests if life.queue.waiting(JobId(job)) and job not in life.running]
        if waits:
            life.end(self.draw.choice(waits))

    def sickens(self) -> None:
        """Make some nodes and devices bad, and others good again."""
        draw, seen = self.draw, self.life.inventory
        nodes = tuple(
            structs.replace(
                node,
                ready=draw.random() < 0.9,
                devices=tuple(structs.replace(each, healthy=draw.random() < 0.95) for each in node.devices),
            )
            for node in seen.nodes
        )
        self.life.planner.fold(NodesSeen(structs.replace(seen, nodes=nodes)))

    def configures(self) -> None:
        """Take cells from owners, remove one node and add another; or restore the first configuration."""
        if self.draw.random() < 0.3:
            self.life.reconfigure(self.draw.choice([SITE, OTHER]))

    def loses_a_task(self) -> None:
        """End one task of a running gang, to be retried."""
        life = self.life
        jobs = [job for job in sorted(life.running) if job not in life.leaving]
        job = JobId(self.draw.choice(jobs)) if jobs else JobId("")
        held = sorted(life.cluster.holds(job))
        if len(held) > 1:
            task, request = self.draw.choice(held), life.requests[job]
            life.planner.fold(TasksReleased(job, (task,)))
            own = next(each for each in request.roles if each.role == task.role)
            alone = structs.replace(own, indexes=(task.index,), minimum=1)
            life.planner.fold(GangQueued(structs.replace(request, roles=(alone,))))


@pytest.mark.parametrize("seed", range(at_least(2, 10)))
def test_a_life_under_hived_stays_whole(seed: int) -> None:
    """Hundreds of events: no device is given twice, no guarantee is broken, and planning's draft is a true copy."""
    life = HivedLife(lazy=seed % 2 == 0)
    chances = Chances(life, seed)
    for number in range(STEPS):
        chances.step(number)
        life.cycle(float(number))
        algorithm = life.hived.algorithm
        assert algorithm.differences() == []
        assert algorithm.broken_guarantees() == []
        assert life.hived.draft().digest() == life.hived.digest()
    twin = life.planner.fork()
    assert twin.digest() == life.planner.digest()
    assert twin.consistent()
