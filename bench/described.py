"""The machines and gangs that all scheduler benchmarks use."""

from __future__ import annotations

from corral.kernel.ids import JobId
from corral.model.inventory import Device, Inventory, Node
from corral.model.requests import DeviceRequest, GangRequest, RoleRequest, TopologyRequest


def machines(count: int, racks: int) -> Inventory:
    """Nodes of 8 devices (PCIe switch 2, NUMA node 4) in equal racks, ten racks a block."""
    nodes = []
    for at in range(count):
        rack = at * racks // count
        devices = tuple(
            Device(index, f"{at}:{index}", cells=(("numa", str(index // 4)), ("pcie-switch", str(index // 2))))
            for index in range(8)
        )
        cells = (("block", f"b{rack // 10}"), ("rack", f"r{rack}"))
        nodes.append(Node(f"bench/n{at}", cells, devices, cpu_millis=96_000, memory_bytes=2**40))
    return Inventory("bench", tuple(nodes))


def gang(
    number: int, *, tasks: int = 1, devices: int = 1, required: str = "", cpu: int = 1000, queue: str = "default"
) -> GangRequest:
    """A gang of one role whose tasks request devices, processors and memory."""
    role = RoleRequest("worker", tuple(range(tasks)), tasks, cpu, 2**30, devices=DeviceRequest(devices))
    job = JobId(f"job{number:08}")
    return GangRequest(job, 0, "ada", queue, 10, float(number), (role,), TopologyRequest(required))
