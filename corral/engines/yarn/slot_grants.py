"""Give an attempt what depends on the node of its slot: ports, and devices where YARN chose the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corral.engines.yarn.host_ports import HostPorts
from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.slot_messages import AttemptReport
from corral.engines.yarn.slots import Attempt, Slot, SlotTable
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId


class SlotGrants:
    """The ports and devices of all attempts."""

    def __init__(self, table: SlotTable, ports: HostPorts, hosts: Callable[[], Mapping[str, NodeFacts]]) -> None:
        """`hosts` returns the nodes as last seen, by the host that their containers name."""
        self._table, self._ports, self._hosts = table, ports, hosts

    def give(self, attempt: Attempt, slot: Slot) -> None:
        """Give a pending attempt the ports and devices that it asks for. Raises Unavailable, with nothing given."""
        assert attempt.launch is not None and attempt.shape is not None
        node = self._hosts().get(slot.host)
        attempt.node = attempt.shape.node or (node.name if node is not None else "")
        if not attempt.shape.node:
            attempt.devices = self._free_devices(attempt.node, len(attempt.launch.devices), node)
        if attempt.launch.ports:
            self._require_known_ports()
            attempt.offers = self._ports.offer(attempt.name, slot.host, attempt.launch.ports)

    def see(self, attempt: Attempt, slot: Slot, report: AttemptReport) -> None:
        """Take over what a slot reports of an attempt: an earlier server gave it, or it chose among the offers."""
        if not attempt.node:
            node = self._hosts().get(slot.host)
            attempt.node = (attempt.shape.node if attempt.shape else "") or (node.name if node is not None else "")
        if report.state == "starting" or attempt.ports_known:
            return
        attempt.ports_known = True
        offered = {number for numbers in attempt.offers for number in numbers}
        told = [number for numbers in report.ports.values() for number in numbers]
        self._ports.settle(
            attempt.name, slot.host, [each for each in told if attempt.launch is None or each in offered]
        )

    def take_back(self, attempt: AttemptId) -> None:
        """Free the ports of an attempt."""
        self._ports.release(attempt)

    def _free_devices(self, name: str, count: int, node: NodeFacts | None) -> tuple[int, ...]:
        """The lowest devices of a node that no attempt has."""
        if not count:
            return ()
        held = self._table.held_devices().get(name, set())
        free = [index for index in range(node.devices if node is not None else 0) if index not in held]
        if len(free) < count:
            message = f"{name or 'A node'} has {len(free)} free devices and the task needs {count}."
            raise Unavailable("devices-taken", message, retry_after=5)
        return tuple(free[:count])

    def _require_known_ports(self) -> None:
        """Raise Unavailable while slots have not reported which ports the attempts of an earlier server have."""
        unknown = self._table.ports_unknown()
        if unknown:
            message = f"{unknown} tasks that an earlier server started have not reported their ports yet."
            raise Unavailable("ports-unknown", message, retry_after=2)
