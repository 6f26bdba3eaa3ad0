"""Watch the cluster: its nodes with what others use of them, and the containers of slots that are silent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.inventory import (
    NodeFacts,
    YarnNode,
    as_absent,
    exclusive_labels_of,
    facts_of,
    inventory_of,
    nodes_of,
)
from corral.engines.yarn.node_devices import ProbedNode
from corral.engines.yarn.records import BURIED
from corral.engines.yarn.services import Services
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slots import SlotTable
from corral.kernel.errors import CorralError
from corral.kernel.ids import JobId
from corral.model.inventory import Inventory

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0
"""Seconds between two looks."""
_DEAD_SECONDS: Final = 20.0
"""Seconds without any slot after which YARN is asked whether a service's application still lives."""
_DEAD_AGAIN_SECONDS: Final = 10.0
_LEAVING_SECONDS: Final = 15.0
"""Seconds for which a container that was given back may still count as used on its node."""
_ABSENT_SECONDS: Final = 120.0
"""Seconds for which a node is kept that the ResourceManager does not list: one that took over lists a node when that
has registered with it, and until then its containers run on."""


class ClusterWatch:
    """What the ResourceManager says, as last seen."""

    def __init__(
        self,
        settings: YarnSettings,
        yarn: HadoopRest,
        services: Services,
        table: SlotTable,
        changed: Callable[[], None],
        lose: Callable[[str], None],
        ring: Callable[[JobId], None],
    ) -> None:
        """`changed` tells of another inventory; `lose` ends the attempts of a slot's key whose container is gone.

        `ring` has a job looked at whose service is gone.
        """
        self._settings, self._yarn, self._services, self._table = settings, yarn, services, table
        self._changed, self._lose, self._ring = changed, lose, ring
        self._dead_next = 0.0
        self.inventory: Inventory | None = None
        self.resource_types: frozenset[str] = frozenset()
        """The names of the resources that any node counts; empty while no node is known."""
        self.nodes: dict[str, NodeFacts] = {}
        """What requests for containers have to say of each node, by its name without the engine's."""
        self.hosts: dict[str, NodeFacts] = {}
        """The same by the host that containers name."""
        self.probed: Mapping[str, ProbedNode] = {}
        """By node, the devices that its probe told."""
        self._listed: dict[str, tuple[float, YarnNode]] = {}
        """By node id, when it was listed last, and how."""
        self._missing: dict[str, int] = {}
        """By slot, how many looks in a row have not found its container."""
        self._asked: dict[str, dict[str, list[tuple[float, int]]]] = {}
        """By node and resource, what Corral's containers took in the last looks, with the time of each."""

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self.look()
            except CorralError as error:
                _log.warning("%s", error.message)

    async def look(self) -> None:
        """Read the nodes, and look for containers of silent slots and of attempts whose slot never came.

        Raises a CorralError.
        """
        nodes = self._with_absent(nodes_of(await self._yarn.ask("GET", "/ws/v1/cluster/nodes")))
        self.resource_types = frozenset(name for node in nodes for name in node.total_resource.amounts())
        self.nodes, self.hosts = facts_of(nodes, self._settings)
        labels = await self._exclusive_labels() if any(node.partition for node in self.nodes.values()) else frozenset()
        inventory = inventory_of(nodes, self._settings, self._taken(), self._table.held_devices(), labels, self.probed)
        if inventory != self.inventory:
            first, self.inventory = self.inventory is None, inventory
            if not first:
                self._changed()
        await self._look_for_containers()
        await self._look_for_dead_services()

    def _with_absent(self, nodes: list[YarnNode]) -> list[YarnNode]:
        """The listed nodes, after those that were listed a short while ago and are not any more."""
        now = _now()
        self._listed = {id_: kept for id_, kept in self._listed.items() if now - kept[0] < _ABSENT_SECONDS}
        listed = {each.id: (now, each) for each in nodes}
        absent = [as_absent(node) for id_, (_, node) in self._listed.items() if id_ not in listed]
        self._listed |= listed
        return [*absent, *nodes]

    async def _exclusive_labels(self) -> frozenset[str]:
        """The node labels whose nodes YARN gives only to requests that name them."""
        return exclusive_labels_of(await self._yarn.ask("GET", "/ws/v1/cluster/get-node-labels"))

    def node_of(self, host: str) -> str:
        """The name of the node on a host; "" when none is known there."""
        found = self.hosts.get(host)
        return found.name if found is not None else ""

    def _taken(self) -> dict[str, dict[str, int]]:
        """What Corral's containers take of each node: the most of the last seconds, because YARN frees it later."""
        now = _now()
        present: dict[str, dict[str, int]] = {}
        for name_of_node, shape, count in self._table.containers_asked_for(self.node_of):
            amounts = present.setdefault(name_of_node, {})
            for name, value in shape.amounts(self._settings).items():
                amounts[name] = amounts.get(name, 0) + value * count
        for node in present.keys() | self._asked.keys():
            seen = self._asked.setdefault(node, {})
            for name in present.get(node, {}).keys() | seen.keys():
                recent = [each for each in seen.get(name, ()) if now - each[0] < _LEAVING_SECONDS]
                seen[name] = [*recent, (now, present.get(node, {}).get(name, 0))]
        return {
            node: {name: max(value for _, value in each) for name, each in seen.items()}
            for node, seen in self._asked.items()
        }

    async def _look_for_containers(self) -> None:
        """Lose slots whose containers YARN has not: twice in a row, because a list may be a moment late."""
        now = _now()
        silent = self._settings.silent_seconds
        wanted = {each.key for each in self._table.slots.values() if now - each.seen > silent}
        for attempt in self._table.attempts.values():
            has_container = attempt.container not in ("", BURIED)
            if attempt.exited is None and has_container and attempt.slot not in self._table.slots:
                wanted.add(attempt.slot)
        self._missing = {key: count for key, count in self._missing.items() if key in wanted}
        jobs = {key.partition("/")[0] for key in wanted}
        there = {
            f"{service.job}/{container}"
            for service in list(self._table.services.values())
            if service.job in jobs
            for container in await self._services.containers(service)
        }
        for key in wanted:
            self._missing[key] = 0 if key in there else self._missing.get(key, 0) + 1
            if self._missing[key] >= 2:
                del self._missing[key]
                self._lose(key)

    async def _look_for_dead_services(self) -> None:
        """End services that YARN has given up, as when their master failed too often: their jobs get new ones."""
        now = _now()
        suspects = [
            each
            for each in self._table.services.values()
            if not each.ending
            and now - each.prolonged_at > _DEAD_SECONDS
            and self._table.is_busy(each)
            and not self._table.slots_of(each)
        ]
        if not suspects or now < self._dead_next:
            return
        self._dead_next = now + _DEAD_AGAIN_SECONDS
        live = await self._services.live_names()
        for each in suspects:
            if each.name not in live:
                _log.warning("service %s has failed in YARN; its job gets another one", each.name)
                each.ending = True
                self._ring(each.job)


def _now() -> float:
    return asyncio.get_running_loop().time()
