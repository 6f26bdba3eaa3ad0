"""A what-if question about 500 nodes with 4,000 jobs that run or wait: both courses, a day forward, with no arrivals."""

from __future__ import annotations

import asyncio
import json
import random
import time
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from bench.core import BEGIN, idle_driver, plain_loop
from corral.control.core.core import Core
from corral.control.core.driver import Work
from corral.control.core.new_jobs import stored_job
from corral.control.forecast.forecasts import Moment
from corral.control.what_if.changes import Changes, changes_of
from corral.control.what_if.course import play
from corral.control.what_if.forked import USUAL
from corral.control.what_if.questions import Questions
from corral.kernel.ids import job_id
from corral.model.store_writes import NewJob
from corral.model.what_if import AddedNodes, Courses, PastRun, Question
from corral.spec.job_reader import load_job

_NODES: Final = 500
_JOBS: Final = 4000
_DAY: Final = 86_400.0
_SHAPES: Final = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8))
"""Tasks, and devices of each, of a job; small ones are as frequent as large ones."""
_SHORTEST, _LONGEST = 600, 6 * 3600
_SEEDS: Final = 10
_LIMITS: Final = USUAL._replace(seconds=600.0)
"""A slow machine is to report a figure that misses its bound, and not a refusal."""


def measure() -> dict[str, float]:
    """Seconds until a question with one seed, and with ten, is answered; processor seconds of both courses of one.

    `Questions` plays the courses in as many processes as there are processors. Seeds differ only where run times are
    drawn, so the jobs of `ten seeds` have no `maxDuration`; `ten equal` is the question with one seed asked for ten.
    `loop` is the fixed loop in milliseconds.
    """
    core, waiting = _core(bounded=True)
    now = BEGIN + 1.0
    question = Question(_DAY, (0,), add_nodes=(AddedNodes(4, "local/node1"),))
    begun = time.process_time()
    changes = changes_of(question, core, now, core.policy, lambda clusters: ())
    before = play(core, Changes(), (), now=now, horizon=_DAY, seed=0)
    after = play(core, changes, (), now=now, horizon=_DAY, seed=0)
    used = time.process_time() - begun
    answered, found = _answered(core, question)
    if [len(each.starts) for each in (*found.before, *found.after)] != [len(before.starts), len(after.starts)]:
        raise RuntimeError("a question's processes have played other courses")
    if not 0 < len(before.starts) <= len(after.starts):
        raise RuntimeError(
            f"{len(before.starts)} of {waiting} waiting jobs started, with more nodes {len(after.starts)}"
        )
    seeds = msgspec.structs.replace(question, seeds=tuple(range(_SEEDS)))
    equal, found = _answered(core, seeds)
    if any(each != found.after[0] for each in found.after):
        raise RuntimeError("courses without draws differ by seed")
    del core
    ten, found = _answered(_core(bounded=False)[0], seeds)
    if len({str(each.starts) for each in found.after}) != _SEEDS:
        raise RuntimeError("courses with draws do not differ by seed")
    return {
        "answered": answered,
        "ten seeds": ten,
        "ten equal": equal,
        "seconds": used,
        "waiting": waiting,
        "started": len(before.starts),
        "loop": plain_loop() * 1000,
    }


def _answered(core: Core, question: Question) -> tuple[float, Courses]:
    """Seconds until a question is answered, and its courses."""
    begun = time.perf_counter()
    found = asyncio.run(_questions(core).answer(question))
    return time.perf_counter() - begun, found


def _questions(core: Core) -> Questions:
    """Questions about a core of which no course is known yet, after as many ended jobs as there are."""
    draw = random.Random(2)
    past = [PastRun("", "", "default", 1.0, float(draw.randint(_SHORTEST, _LONGEST))) for _ in range(_JOBS)]
    moment = Moment(BEGIN + 1.0, "", "", tuple(past))

    async def present() -> Moment:
        return moment

    forecasts: Any = SimpleNamespace(moment=present, of=lambda moment: None)
    presenter: Any = SimpleNamespace(described=lambda clusters: ())
    return Questions(forecasts, lambda: core, default=lambda: core.policy, presenter=presenter, limits=_LIMITS)


def _core(*, bounded: bool) -> tuple[Core, int]:
    """A core with all jobs submitted, with a `maxDuration` or without, and how many of them wait."""
    driver = idle_driver(_NODES)
    driver.works = lambda job, attempt: Work(_DAY)
    draw = random.Random(1)
    for number in range(_JOBS):
        driver.at(BEGIN, _job(number, draw, bounded=bounded))
    driver.run(BEGIN + 1.0)
    jobs = driver.core.world.jobs.values()
    return driver.core, sum(job.run.started_at is None for job in jobs)


def _job(number: int, draw: random.Random, *, bounded: bool) -> NewJob:
    tasks, devices = draw.choice(_SHAPES)
    role = {"replicas": tasks, "resources": {"cpu": 1, "devices": devices}, "command": ["true"]}
    seconds = draw.randint(_SHORTEST, _LONGEST)
    file: dict[str, object] = {"name": f"job-{number}", "framework": "shell", "roles": {"worker": role}}
    if bounded:
        file["maxDuration"] = seconds
    document = load_job(json.dumps(file))
    return stored_job(
        job_id(int(BEGIN * 1000), number + 1), BEGIN, document.to_json(),
        name=document.name, user=f"user{number % 20}", queue="default", priority=document.priority,
    )  # fmt: skip
