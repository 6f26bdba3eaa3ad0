"""The control core in virtual time: one-task jobs over ten days, as a simulator plays them, with the in-memory store."""

from __future__ import annotations

import json
import random
import time
from typing import Final

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.memory_store import MemoryStore
from corral.control.core.new_jobs import stored_job
from corral.kernel.ids import JobId, job_id
from corral.launcher import LaunchPolicy
from corral.model.inventory import Device, Inventory, Node
from corral.model.store_writes import NewJob
from corral.scheduler import find_policy
from corral.spec.job_reader import load_job

_SECONDS: Final = 10 * 86_400.0
_USERS: Final = 20
_JOBS_PER_NODE: Final = 1250
_LOAD: Final = 0.8
"""The part of all device-seconds that the jobs use."""
BEGIN: Final = 1e9
_LOOP: Final = 5_000_000


def measure() -> dict[str, float]:
    """Milliseconds of processor time a job, and how much dearer a job is among four times as many."""
    few, steps = play(20_000)
    many, _ = play(80_000)
    return {"job": few * 1000, "growth": many / few, "steps": steps, "loop": plain_loop() * 1000}


def play(count: int) -> tuple[float, float]:
    """Seconds of processor time, and steps, per job of `count` jobs that a cluster of their size runs to their ends."""
    driver, seconds = idle_driver(count // _JOBS_PER_NODE), dict[JobId, float]()
    driver.works = lambda job, attempt: Work(seconds[job.id])
    draw = random.Random(1)
    length = (count // _JOBS_PER_NODE) * 8 * _SECONDS * _LOAD / count
    for number in range(count):
        job = _job(number, BEGIN + draw.random() * _SECONDS)
        seconds[job.id] = draw.expovariate(1 / length)
        driver.at(job.created_at, job)
    begun = time.process_time()
    driver.run()
    used = time.process_time() - begun
    ended = sum(1 for each in driver.store.facts if each.fact.kind == "job.completed")
    if ended != count:
        raise RuntimeError(f"{ended} of {count} jobs ended")
    return used / count, driver.steps / count


def plain_loop() -> float:
    """Processor seconds of a fixed loop of plain Python, to compare machines."""
    begun, total = time.process_time(), 0
    for number in range(_LOOP):
        total += number * number % 7
    return time.process_time() - begun


def idle_driver(nodes: int) -> Driver:
    """A driver of a core with so many nodes of 8 devices, and no job; the caller sets what attempts do."""
    machines = tuple(
        Node(
            name=f"local/node{at}",
            cells=(("rack", f"rack{at // 8}"),),
            devices=tuple(Device(index, f"{at}:{index}", described=True) for index in range(8)),
            cpu_millis=64_000,
            memory_bytes=2**38,
        )
        for at in range(nodes)
    )
    begun = Recovered(Configured(find_policy()), machines=(MachinesSeen(Inventory("local", machines)),))
    return Driver(Core(begun, LaunchPolicy(), Machines(), BEGIN), MemoryStore(), lambda job, attempt: Work(0.0), BEGIN)


_FILE: Final = {
    "name": "job-x",
    "framework": "shell",
    "roles": {"worker": {"replicas": 1, "resources": {"cpu": 1, "devices": 1}, "command": ["true"]}},
}
_DOCUMENT: Final = load_job(json.dumps(_FILE))
_TEXT: Final = _DOCUMENT.to_json()


def _job(number: int, at: float) -> NewJob:
    identity, name, user = job_id(int(at * 1000), number), f"job-{number}", f"user{number % _USERS}"
    text = _TEXT.replace("job-x", name)
    return stored_job(identity, at, text, name=name, user=user, queue="default", priority=_DOCUMENT.priority)
