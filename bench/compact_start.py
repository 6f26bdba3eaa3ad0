"""Time the start of control on a document that describes 8,192 nodes in one line.

It covers every step from the text to indexes that can plan: parse and check the document, list nodes and devices, build
the cell tree and the columns.
"""

from __future__ import annotations

import gc
from time import process_time

from bench.stats import median
from corral.devices.described import described_inventory
from corral.scheduler import Cluster, NodesSeen
from corral.spec.cluster import load_cluster

RUNS = 5
NODE = "node: {cpu: 64, memory: 512Gi, devices: {count: 8, model: H100, cells: {numa: 4, pcie-switch: 2}}}\n"
RACKED = NODE + 'racks: {"rack[001-512]": {nodes: "node[0001-8192]"}}\n'
TYPED = """
cellTypes:
  switch: {level: pcie-switch, child: H100, count: 2}
  socket: {level: numa, child: switch, count: 2}
  box: {child: socket, count: 2, node: {cpu: 64, memory: 512Gi}}
  rack: {level: rack, child: box, count: 16}
cells:
- {type: rack, name: "rack[001-512]", nodes: "node[0001-8192]"}
"""


def measure() -> dict[str, float]:
    """Milliseconds of processor time from a document's text to indexes, for each form of the document."""
    return {"racks": _start(RACKED), "types": _start(TYPED), "one by one": _start(_written_out())}


def _start(text: str) -> float:
    times = []
    for _ in range(RUNS):
        gc.collect()
        begun = process_time()
        cluster = Cluster()
        cluster.apply(NodesSeen(described_inventory(load_cluster(text), "local")))
        times.append((process_time() - begun) * 1000)
        free = sum(mask.bit_count() for mask in cluster.engines["local"].free)
        if free != 65_536:
            raise RuntimeError(f"the document has {free} devices")
    return median(times)


def _written_out() -> str:
    """The same nodes, one entry per node."""
    racks = (
        f"  rack{rack:03}: {{nodes: [{', '.join(f'node{rack * 16 + at:04}' for at in range(1, 17))}]}}\n"
        for rack in range(512)
    )
    return NODE + "racks:\n" + "".join(racks)
