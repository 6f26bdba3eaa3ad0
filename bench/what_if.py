"""A what-if question about 500 nodes with 4,000 jobs that run or wait: both courses, a day forward, with no arrivals."""

from __future__ import annotations

import asyncio
import json
import random
import time
from types import SimpleNamespace
from typing import Any, Final

from bench.core import BEGIN, idle_driver, plain_loop
from corral.control.core.core import Core
from corral.control.core.driver import Work
from corral.control.core.new_jobs import stored_job
from corral.control.forecast.forecasts import Moment
from corral.control.what_if.changes import Changes, changes_of
from corral.control.what_if.course import play
from corral.control.what_if.questions import Questions
from corral.kernel.ids import job_id
from corral.model.store_writes import NewJob
from corral.model.what_if import AddedNodes, Question
from corral.spec.job_reader import load_job

_NODES: Final = 500
_JOBS: Final = 4000
_DAY: Final = 86_400.0
_SHAPES: Final = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8))
"""Tasks, and devices of each, of a job; small ones are as frequent as large ones."""
_SHORTEST, _LONGEST = 600, 6 * 3600


def measure() -> dict[str, float]:
    """Seconds of processor time of a question with one seed, its waiting jobs, and the fixed loop in milliseconds.

    `answered` are the seconds until `Questions` has both courses, which it plays in a process each.
    """
    core, waiting = _core()
    now = BEGIN + 1.0
    question = Question(_DAY, (0,), add_nodes=(AddedNodes(4, "local/node1"),))
    begun = time.process_time()
    changes = changes_of(question, core, now, core.policy, lambda clusters: ())
    before = play(core, Changes(), (), now=now, horizon=_DAY, seed=0)
    after = play(core, changes, (), now=now, horizon=_DAY, seed=0)
    used = time.process_time() - begun
    begun = time.perf_counter()
    found = asyncio.run(_questions(core, now).answer(question))
    answered = time.perf_counter() - begun
    if [len(each.starts) for each in (*found.before, *found.after)] != [len(before.starts), len(after.starts)]:
        raise RuntimeError("a question's processes have played other courses")
    if not 0 < len(before.starts) <= len(after.starts):
        raise RuntimeError(
            f"{len(before.starts)} of {waiting} waiting jobs started, with more nodes {len(after.starts)}"
        )
    return {
        "seconds": used,
        "answered": answered,
        "waiting": waiting,
        "started": len(before.starts),
        "loop": plain_loop() * 1000,
    }


def _questions(core: Core, now: float) -> Questions:
    """Questions about a core of which no course is known yet."""
    moment = Moment(now, "", "", ())

    async def present() -> Moment:
        return moment

    forecasts: Any = SimpleNamespace(moment=present, of=lambda moment: None)
    presenter: Any = SimpleNamespace(described=lambda clusters: ())
    return Questions(forecasts, lambda: core, default=lambda: core.policy, presenter=presenter)


def _core() -> tuple[Core, int]:
    """A core with all jobs submitted, and how many of them wait."""
    driver = idle_driver(_NODES)
    driver.works = lambda job, attempt: Work(_DAY)
    draw = random.Random(1)
    for number in range(_JOBS):
        driver.at(BEGIN, _job(number, draw))
    driver.run(BEGIN + 1.0)
    jobs = driver.core.world.jobs.values()
    return driver.core, sum(job.run.started_at is None for job in jobs)


def _job(number: int, draw: random.Random) -> NewJob:
    tasks, devices = draw.choice(_SHAPES)
    role = {"replicas": tasks, "resources": {"cpu": 1, "devices": devices}, "command": ["true"]}
    file = {
        "name": f"job-{number}",
        "framework": "shell",
        "maxDuration": draw.randint(_SHORTEST, _LONGEST),
        "roles": {"worker": role},
    }
    document = load_job(json.dumps(file))
    return stored_job(
        job_id(int(BEGIN * 1000), number + 1), BEGIN, document.to_json(),
        name=document.name, user=f"user{number % 20}", queue="default", priority=document.priority,
    )  # fmt: skip
