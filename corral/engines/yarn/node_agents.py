"""Run Corral's agent on each node as a YARN service of its own, with a container that is pinned to the node.

A service's components cannot become more, so nodes that come later get another service. What runs is read back from
YARN: a new server takes it over, unless it was made for other settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec

from corral.engines.base import AgentAddress
from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.service_spec import AGENTS, SlotShape, component_name, service_prefix
from corral.engines.yarn.services import Services
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slot_messages import AgentReport
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.engines.yarn.slots import Service
from corral.kernel.errors import CorralError, NotFound
from corral.kernel.ids import JobId

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0
_CHECK_SECONDS: Final = 30.0
"""Seconds after which YARN is asked again which services there are."""
_MAKING_SECONDS: Final = 60.0
"""Seconds for which a service that was asked for may not be listed yet."""
_AGAIN_SECONDS: Final = 60.0
"""Seconds after which a refusal to prolong a service is tried again."""
_REFUSED_SECONDS: Final = 30.0
"""Seconds after which YARN is asked for a service again that it refused."""
_PROLONG_PARTS: Final = 4
_MOST_AT_ONCE: Final = 100
"""Nodes of one service."""
_MEMORY: Final = 256 * 2**20


class NodeAgents:
    """The agents of one server in one cluster."""

    def __init__(
        self,
        settings: YarnSettings,
        services: Services,
        tokens: SlotTokens,
        nodes: Callable[[], Mapping[str, NodeFacts]],
        hosts: Callable[[], Mapping[str, NodeFacts]],
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`nodes` returns the nodes as last seen, by name, and `hosts` the same by host."""
        self._settings, self._services, self._nodes, self._hosts, self._wall = settings, services, nodes, hosts, wall
        self._tokens = tokens
        self.wanted = bool(settings.agent_command)
        self._running: dict[str, Service] = {}
        """The services by name."""
        self._asked_at: dict[str, float] = {}
        """When this server asked for a service, by a clock that is never set."""
        self._missing: set[str] = set()
        """The nodes without an agent at the last look."""
        self._check_at = 0.0
        """When YARN is asked next which services there are."""
        self._is_sure = False
        """Whether the last answer told of each service what it has, and those of other settings have ended."""
        self._name = ""
        """The name of a service that YARN refused and that may be there, with its files."""
        self._make_at = 0.0
        """When YARN may be asked for a service again."""
        self._troubles: list[str] = []
        """What was refused in this look."""
        self._told = ""
        """The trouble that was logged last."""
        self._begun: set[str] = set()
        """The nodes whose agents were said to run since their last end that was said."""
        self._ends: dict[str, str] = {}
        """By node, how its agent was last said to have ended."""

    async def open(self) -> None:
        """Take over the agents of an earlier server, and end those of other settings, as far as YARN lets it."""
        await self._try(self._compare)

    async def run(self) -> None:
        """Give each node its agent until cancelled. No refusal of YARN's ends it."""
        while self.wanted or not self._is_sure:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._try(self._look if self.wanted else self._compare)

    async def _try(self, step: Callable[[], Awaitable[None]]) -> None:
        """Do something, and log its trouble once while it stays the same."""
        self._troubles.clear()
        with self._noting():
            await step()
        said = next(iter(self._troubles), "")
        if said and said != self._told:
            _log.warning("agents cannot be run on nodes: %s", said)
        self._told = said

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Keep what one service is refused from others."""
        try:
            yield
        except CorralError as error:
            self._troubles.append(error.message)

    def addresses(self) -> tuple[AgentAddress, ...]:
        """Where the agents listen that YARN was asked for, by the hosts that YARN knows."""
        wanted = {
            shape.node
            for each in self._running.values()
            for name, shape in each.components.items()
            if each.wanted[name]
        }
        port = self._settings.agent_port
        return tuple(
            AgentAddress(facts.name, host, port) for host, facts in self._hosts().items() if facts.name in wanted
        )

    def token_of(self, node: str) -> str:
        """The token by which the agent of a node knows this server, and by nothing else.

        Each node has another one: who listens there in the agent's place is told none that another node takes.
        """
        return self._tokens.of_agent(self._settings.server, node)

    def take(self, service: str, instance: str, report: AgentReport) -> None:
        """Log how an agent began or ended. Raises NotFound for one that is none."""
        known = self._running.get(service)
        shape = known.components.get(instance.rpartition("-")[0]) if known is not None else None
        if shape is None:
            raise NotFound("no-agent", "There is no such agent.")
        if report.state == "begun":
            if shape.node not in self._begun:
                _log.info("the agent of %s runs", shape.node)
            self._begun.add(shape.node)
            return
        words = "".join(letter for letter in report.said if letter.isprintable())
        said = f"{report.code}: {words or 'it said nothing'}"
        if self._ends.get(shape.node) != said:  # YARN starts it again and again
            _log.warning("the agent of %s has ended with %s", shape.node, said)
            self._begun.discard(shape.node)
        self._ends[shape.node] = said

    async def _look(self) -> None:
        """Compare the nodes with the containers that YARN was asked for. Raises a CorralError when it tells of none."""
        now = _now()
        if now >= self._check_at:
            await self._compare()
        wanted = {name: self._shape(facts) for name, facts in self._nodes().items() if facts.pinned}
        covered = set()
        for service in list(self._running.values()):
            counts = dict.fromkeys(service.components, 0)
            for component, shape in service.components.items():
                if wanted.get(shape.node) == shape and shape.node not in covered:
                    covered.add(shape.node)
                    counts[component] = 1
            with self._noting():
                await self._tend(service, counts, now)
        before, self._missing = self._missing, wanted.keys() - covered
        is_time = self._is_sure and now >= self._make_at
        if is_time and self._missing and self._missing == before:  # nodes that come together get one service
            await self._make({name: wanted[name] for name in sorted(self._missing)[:_MOST_AT_ONCE]})

    async def _tend(self, service: Service, counts: Mapping[str, int], now: float) -> None:
        """Have a service with these numbers of containers. Raises a CorralError."""
        if not any(counts.values()):
            await self._delete(service)
            return
        for component, count in counts.items():
            if service.wanted[component] != count:
                await self._services.set_count(service, component, count)
        if now - service.prolonged_at > (pause := self._settings.lifetime_seconds / _PROLONG_PARTS):
            service.prolonged_at = now - pause + _AGAIN_SECONDS
            await self._services.prolong(service)
            service.prolonged_at = now

    async def _make(self, shapes: Mapping[str, SlotShape]) -> None:
        """Ask YARN for a service. One that it refuses is removed with its files; its name is used again until it is."""
        components = {component_name(shape, number): shape for number, shape in enumerate(shapes.values())}
        new = f"{service_prefix(self._settings)}{AGENTS}-{self._digest()}{int(self._wall())}"
        name = self._name = new if self._name in self._running else self._name or new
        user, queue = self._settings.user, self._settings.queue
        service = Service(name, JobId(AGENTS), user, queue, components, dict.fromkeys(components, 1))
        service.prolonged_at = self._asked_at[name] = _now()
        self._running[name] = service
        agent = {
            **self._given(),
            "nodes": {component: shape.node for component, shape in components.items()},
            "tokens": {component: self.token_of(shape.node) for component, shape in components.items()},
        }
        try:
            await self._services.make(service, agent=agent)
            self._name = ""
        except CorralError:
            self._check_at, self._make_at = 0.0, _now() + _REFUSED_SECONDS  # it may be there though the answer was lost
            del self._running[name], self._asked_at[name]
            with suppress(CorralError):
                await self._services.delete(service)
                self._name = ""
            raise

    async def _compare(self) -> None:
        """Take over services that YARN lists, forget those that have ended, and end those of other settings.

        Raises a CorralError when YARN lists none.
        """
        found, now = await self._services.of_agents(), _now()
        unsure = 0
        for name, service in list(self._running.items()):
            if name not in found and now - self._asked_at.get(name, float("-inf")) > _MAKING_SECONDS:
                _log.warning("the service %s of agents has ended in YARN; another one is made", name)
                with self._noting():
                    await self._delete(service)
        prefix = f"{service_prefix(self._settings)}{AGENTS}-{self._digest()}"
        for name, told in found.items():
            if name in self._running:
                continue
            if told is None:
                unsure += 1
            elif self.wanted and name.startswith(prefix):
                self._running[name] = told
            else:
                unsure += 1
                with self._noting():
                    await self._services.delete(told)
                    unsure -= 1
        self._is_sure = not unsure
        self._check_at = now + _CHECK_SECONDS if self._is_sure else 0.0

    async def _delete(self, service: Service) -> None:
        await self._services.delete(service)
        self._running.pop(service.name, None)
        self._asked_at.pop(service.name, None)

    def _given(self) -> dict[str, Any]:
        """What the agents of all nodes are given."""
        return {
            "command": list(self._settings.agent_command),
            "port": self._settings.agent_port,
        }

    def _digest(self) -> str:
        """A short hash of all that a service of agents is made of but its nodes: another one needs other services."""
        where = [
            self._settings.url,
            self._settings.certificate,
            self._settings.user,
            self._settings.queue,
            self.token_of(""),
        ]
        parts = [self._given(), self._services.programs(), *where]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:8]

    @staticmethod
    def _shape(facts: NodeFacts) -> SlotShape:
        return SlotShape("agent", facts.name, 1000, _MEMORY, 0, (), facts.partition)


def _now() -> float:
    return asyncio.get_running_loop().time()
