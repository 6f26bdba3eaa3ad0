"""Take what the agents of other machines measure, with the names of this control's jobs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from corral.control.loop import Control
from corral.control.metrics.names_of_tasks import task_names
from corral.engines.base import RunsAgents
from corral.kernel.errors import InvalidInput, Unavailable
from corral.kernel.ids import JobId, TaskKey
from corral.model.metrics.agent_page import NO_VERSIONS, AgentPage, AgentVersions, CheckTold
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TASK_FAMILIES, TASK_LABELS
from corral.monitor.health.figure_signs import Figures
from corral.monitor.scraping.addresses import Address, addresses_for, parse_addresses
from corral.monitor.scraping.agent_client import Target, post, read_token
from corral.monitor.scraping.scraper import EVERY_SECONDS, Scraper

KEPT_ROUNDS: Final = 4.0
"""Rounds for which what an agent told last is true."""
_OF_TASKS: Final = frozenset(each.name for each in TASK_FAMILIES if each.labels[: len(TASK_LABELS)] == TASK_LABELS)
_ROLE, _INDEX, _JOB = (TASK_LABELS.index(each) for each in ("role_name", "task_index", "job_instance_id"))


class Told(NamedTuple):
    """What an agent told last."""

    target: Target
    samples: Samples
    at: float
    """When, by a clock that is never set."""
    ahead: float
    """Seconds by which its clock is surely ahead of the server's, below 0 behind."""
    checks: tuple[CheckTold, ...] = ()
    """The last runs of its check scripts."""
    versions: AgentVersions = NO_VERSIONS


class AgentCollection:
    """The figures of the nodes whose agents are asked, by node."""

    def __init__(
        self,
        control: Control,
        addresses: str,
        token_file: Path | None = None,
        *,
        here: Collection[str] = (),
        seconds: float = EVERY_SECONDS,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """`here` are the engines whose tasks run on the server's machine, which it measures itself.

        Raises InvalidInput for an address that is none.
        """
        self._control, self._seconds, self._steady = control, seconds, steady
        self._token_file = token_file
        self._engines = [name for name in control.engines if name not in here]
        given = parse_addresses(addresses)
        self.scraper = Scraper(
            lambda: chain(addresses_for(given, self._names()), self._of_engines()), self.take, self._token,
            seconds=seconds, now=control.clock.now,
        )  # fmt: skip
        self._told: dict[str, Told] = {}
        self._lock = threading.Lock()

    async def run(self, ready: asyncio.Event) -> None:
        """Ask all agents from when control leads until cancelled. No failure ends it."""
        await ready.wait()
        await self.scraper.run()

    def take(self, target: Target, page: AgentPage, ahead: float) -> None:
        """Take one answer. Raises InvalidInput if it is about no node of an engine, or one of which another agent tells.

        It is called in a thread: it only looks into dictionaries, whose values never change.
        """
        said = target.address.node or page.node
        engines = [target.address.engine] if target.address.engine else self._engines
        node = next((name for each in engines if (name := f"{each}/{said}") in self._control.machines.nodes), "")
        if not node:
            raise InvalidInput(
                "agent-of-no-node", f"It calls itself {said[:100]!r}; no engine has a node of that name."
            )
        samples = Samples(tuple(named for each in page.values if (named := self._named(node, each)) is not None))
        now = self._steady()
        with self._lock:
            before = self._told.get(node)
            if before is not None and before.target != target and now - before.at < KEPT_ROUNDS * self._seconds:
                raise InvalidInput("agent-twice", f"It tells of {node}, of which {before.target} tells already.")
            self._told[node] = Told(target, samples, now, ahead, page.checks, page.versions)

    async def post(self, node: str, path: str, seconds: float) -> str:
        """Ask the agent of a node to do something; its sentence when it is done.

        Raises Unavailable if no agent tells of the node, or if it refuses or fails.
        """
        told = self.told().get(node)
        if told is None:
            raise Unavailable("agent-silent", f"No agent tells of {node}.")
        token = await asyncio.to_thread(self._token, told.target.address)
        return await post(told.target, token, path, seconds)

    def machines(self, rounds: float = KEPT_ROUNDS) -> Mapping[str, Samples]:
        """By node, what its agent told within this many rounds."""
        return {node: each.samples for node, each in self.told(rounds).items()}

    def told(self, rounds: float = KEPT_ROUNDS) -> Mapping[str, Told]:
        """By node, the last answer of its agent, if it came within this many rounds."""
        now = self._steady()
        with self._lock:
            for node in [name for name, each in self._told.items() if now - each.at >= KEPT_ROUNDS * self._seconds]:
                del self._told[node]
            return {node: each for node, each in self._told.items() if now - each.at < rounds * self._seconds}

    def versions(self) -> dict[str, AgentVersions]:
        """By agent, as in the scraper's troubles, what it and its machine run."""
        return {str(each.target): each.versions for each in self.told().values()}

    def figures(self) -> Mapping[str, Figures]:
        """By node, what signs of trouble are looked for in: what agents told within the last two rounds."""
        return {node: Figures(each.samples, each.ahead, each.checks) for node, each in self.told(2.0).items()}

    def counts(self) -> Samples:
        """How many agents answer, and how many do not."""
        states = (("answering", self.scraper.answering), ("silent", self.scraper.silent))
        return Samples(tuple(Value(Metric.AGENTS, (state,), float(count)) for state, count in states))

    def _of_engines(self) -> Iterator[Address]:
        """The agents that engines run themselves."""
        for name in self._engines:
            if isinstance(engine := self._control.engines[name], RunsAgents):
                for node, host, port in engine.node_agents.addresses():
                    yield Address(False, host, port, "", node, name)

    def _token(self, address: Address) -> str:
        """The token for an agent: that of its engine, else that of the file. Raises Unavailable."""
        if address.engine and isinstance(engine := self._control.engines[address.engine], RunsAgents):
            return engine.node_agents.token_of(address.node)
        return read_token(self._token_file)

    def _names(self) -> Iterator[str]:
        """The names of the nodes of other machines."""
        for name in list(self._control.machines.nodes):
            engine, _, rest = name.partition("/")
            if engine in self._engines:
                yield rest

    def _named(self, node: str, value: Value) -> Value | None:
        """The value with the names of a task that this control has there; None for one that it does not."""
        labels = value.labels
        if value.family not in _OF_TASKS:
            return value
        index = labels[_INDEX]
        if not (index.isascii() and index.isdigit() and len(index) < 10):
            return None
        job = self._control.world.jobs.get(JobId(labels[_JOB]))
        key = TaskKey(labels[_ROLE], int(index))
        task = None if job is None else job.tasks.get(key)
        if job is None or task is None or task.placement is None or task.placement.node != node:
            return None
        names = task_names(self._control, job, key, task)
        return value._replace(labels=(*names.labels, *labels[len(TASK_LABELS) :]))
