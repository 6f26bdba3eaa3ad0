"""The beginning of Kueue's trace, one cohort, on the scheduler alone: the preempted workloads and their preemptors."""

from __future__ import annotations

import heapq

from bench.kueue_15000 import KINDS, QUEUES, UNITS
from corral.kernel.ids import JobId
from corral.model.plan import Rule
from corral.model.queues import QueueSpec, Reclaim, WithinQueue
from corral.model.requests import GangRequest
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

SECONDS = 4.0
UNIT = 1000


def cohort() -> list[QueueSpec]:
    own = [
        QueueSpec(
            f"q{at}",
            "cohort",
            deserved={"cpu": 20 * UNIT},
            borrowing_limit={"cpu": 100 * UNIT},
            reclaim=Reclaim.ANY,
            within_queue=WithinQueue.LOWER_PRIORITY,
        )
        for at in range(QUEUES)
    ]
    return [QueueSpec("cohort", limit={"cpu": UNITS * UNIT}), *own]


def arrivals() -> list[tuple[float, str, GangRequest]]:
    return sorted(
        (at * every, f"q{queue}-{kind}-{at:03}", _workload(queue, kind, at))
        for queue in range(QUEUES)
        for kind, (count, every, *_) in enumerate(KINDS)
        for at in range(count)
        if at * every < SECONDS
    )


def _workload(queue: int, kind: int, at: int) -> GangRequest:
    _, every, units, _, priority = KINDS[kind]
    asked = role(1, 0, cpu_millis=units * UNIT)
    return gang(f"q{queue}-{kind}-{at:03}", asked, at=at * every, queue=f"q{queue}", priority=priority)


def test_large_workloads_have_lower_priorities_of_their_queue_yield_and_all_get_done() -> None:
    life = Life([node("n1", 0, cpu_millis=UNITS * UNIT)], cohort())
    waiting, ends, since = arrivals(), list[tuple[float, str, float]](), dict[str, float]()
    wanted, done = len(waiting), 0
    while waiting or ends:
        now = min(each[0][0] for each in (waiting, ends) if each)
        while waiting and waiting[0][0] == now:
            life.submit(waiting.pop(0)[2])
        while ends and ends[0][0] == now:
            _, job, begun = heapq.heappop(ends)
            if since.get(job) == begun:
                life.end(JobId(job))
                done += 1
        found = life.cycle(now)
        while found.placements or found.evictions:
            for placed in found.placements:
                since[placed.job] = now
                heapq.heappush(ends, (now + KINDS[int(placed.job[3])][3], placed.job, now))
            for eviction in found.evictions:
                del since[eviction.job]
            life.yielded()
            found = life.cycle(now)
        assert life.cluster.queues.nodes["cohort"].used[1] <= UNITS * UNIT
    assert done == wanted
    rules = [rule for _, rule in life.rules()]
    assert rules.count(Rule.PRIORITY) > 10, "what a quota keeps back has lower priorities of its queue yield"
    for receipt in life.receipts:
        loser, winner = life.requests[receipt.job], life.requests[str(receipt.by)]
        assert (loser.queue == winner.queue) == (receipt.rule is Rule.PRIORITY)
        assert loser.queue != winner.queue or loser.priority < winner.priority
