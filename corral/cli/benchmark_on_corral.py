"""Play a workload for schedulers as jobs of a Corral server, and read their times from it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from corral.benchmarks.pace import AT_ONCE, Played, submit_at_pace
from corral.benchmarks.suite.jobs import LABEL
from corral.benchmarks.workloads.outcome import Life
from corral.kernel.errors import Conflict, NotFound, Unavailable

if TYPE_CHECKING:
    from corral.benchmarks.workloads.document import Arrival
    from corral.client.aio import AsyncClient
    from corral.client.schema import JobSummary

_ACTIVE: Final = ("waiting", "starting", "running", "stopping")
_PAGE: Final = 500
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Asked:
    """What each task asks for, and where its job goes."""

    resource: str
    """`cpu` or `devices`."""
    unit_millis: int
    """Thousandths of it in a unit."""
    queues: tuple[str, ...]
    """The workload's queues in turn; empty: the default queue."""
    image: str
    wait_seconds: float
    """How long nothing may happen before the rest is stopped."""
    keep: bool
    """Whether the ended jobs stay in the list of jobs."""


def document_of(arrival: Arrival, name: str, run: str, asked: Asked) -> dict[str, Any]:
    """Return the job document of one gang."""
    kind = arrival.kind
    millis = kind.units * asked.unit_millis
    resources: dict[str, Any] = {"memory": "16Mi", "cpu": "1m"}
    resources |= {"devices": millis / 1000} if asked.resource == "devices" else {"cpu": f"{millis}m"}
    role = {"replicas": kind.tasks, "command": ["sleep", f"{kind.runs:g}"], "resources": resources}
    return {
        "name": name,
        "framework": "shell",
        "labels": {LABEL: run},
        "priority": kind.priority,
        "roles": {"worker": role | ({"image": asked.image} if asked.image else {})},
    } | ({"queue": asked.queues[arrival.queue % len(asked.queues)]} if asked.queues else {})


class OnCorral:
    """One run of a workload; its jobs have the label `corral.dev/benchmark` with the run's name."""

    def __init__(
        self, client: AsyncClient, run: str, arrivals: Sequence[Arrival], asked: Asked, played: Played
    ) -> None:
        """`played` is filled."""
        self._client, self._run, self._arrivals, self._asked = client, run, arrivals, asked
        self._names = {f"{run}-{number}": arrival for number, arrival in enumerate(arrivals)}
        self._played = played

    async def play(self, *, speed: float, tell: Callable[[str], None]) -> None:
        """Submit everything, wait until all has ended, stop what is left, and remove it. Raises CorralError."""
        total = len(self._arrivals)
        try:
            self._played.capacity = await self._capacity()
            told = _counter(tell, total)
            self._played.late = await submit_at_pace(self._arrivals, self._submit, speed=speed, tell=told)
            await self._wait(tell)
        finally:
            await self._stop_rest()
            self._played.lives = await self._lives()
            if not self._asked.keep:
                await self._remove(tell)

    async def _submit(self, number: int) -> None:
        name = f"{self._run}-{number}"
        document = document_of(self._arrivals[number], name, self._run, self._asked)
        await self._client.submit(json.dumps(document), idempotency_key=name)

    async def _capacity(self) -> int:
        """The units of all nodes that are ready and open."""
        units, after = 0, ""
        while True:
            page = await self._client.nodes(limit=_PAGE, after=after)
            for node in page["items"]:
                if node["ready"] and node["cordon"] is None:
                    total = node["total"]
                    millis = total["devices"] * 1000 if self._asked.resource == "devices" else total["cpuMillis"]
                    units += int(millis // self._asked.unit_millis)
            after = page.get("next") or ""
            if not after:
                return units

    async def _wait(self, tell: Callable[[str], None]) -> None:
        left, since = -1, time.monotonic()
        while True:
            counts = dict.fromkeys(_ACTIVE, 0)
            async for job in self._jobs(_ACTIVE):
                counts[job["state"]] += 1
            now = sum(counts.values())
            if not now:
                return
            if now != left:
                left, since = now, time.monotonic()
            if time.monotonic() - since > self._asked.wait_seconds:
                sentence = f"{now} gangs are stopped: none ended for {self._asked.wait_seconds:g} seconds."
                self._played.problems.append(sentence)
                return
            tell(f"{counts['waiting']} gangs wait, {counts['running']} run")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _jobs(self, states: Sequence[str]) -> AsyncIterator[JobSummary]:
        after = ""
        while True:
            page = await self._client.jobs(state=states, label=f"{LABEL}={self._run}", limit=_PAGE, after=after)
            for job in page["items"]:
                yield job
            after = page.get("next") or ""
            if not after:
                return

    async def _stop_rest(self) -> None:
        for job in [each async for each in self._jobs(_ACTIVE)]:
            try:
                await self._client.stop(job["id"])
            except (Conflict, NotFound):
                continue  # it has ended meanwhile
            except Unavailable as error:
                self._played.problems.append(f"The job {job['name']} could not be stopped: {error.message}")

    async def _remove(self, tell: Callable[[str], None]) -> None:
        names = [(job["id"], job["name"]) async for job in self._jobs(())]
        free = asyncio.Semaphore(AT_ONCE)

        async def remove(job: str, name: str) -> None:
            async with free:
                tell(f"removing {len(names)} jobs")
                try:
                    await self._client.delete(job, stop=True)
                except NotFound:
                    return  # somebody else did
                except (Conflict, Unavailable) as error:
                    self._played.problems.append(f"The job {name} could not be removed: {error.message}")

        await asyncio.gather(*(remove(*each) for each in names))

    async def _lives(self) -> list[Life]:
        """What became of the gangs that were submitted, in the order of the workload."""
        found = {job["name"]: self._life(job) async for job in self._jobs(())}
        return [found[name] for name in self._names if name in found]

    def _life(self, job: JobSummary) -> Life:
        kind = self._names[job["name"]].kind
        ended = job["endedAt"] if job["state"] == "succeeded" else None
        units = kind.tasks * kind.units
        return Life(kind.name, units, _seconds(job["createdAt"]) or 0.0, _seconds(job["startedAt"]), _seconds(ended))


def _seconds(stamp: str | None) -> float | None:
    return None if stamp is None else datetime.fromisoformat(stamp).timestamp()


def _counter(tell: Callable[[str], None], total: int) -> Callable[[int], None]:
    return lambda number: tell(f"{number + 1} of {total} gangs submitted")
