"""Time HiveD's own cell allocation algorithm at 65,536 devices (score row H13); its guarantees cost 15 to 20 ms a gang.

8 virtual clusters own an eighth of the nodes each. Random gangs of 1 to 64 devices arrive until 75 % is in use, then as
many end as arrive. Each gang is searched for (`schedule`) and allocated (`add_allocated`), as HiveD does for a
Kubernetes pod.
"""

from __future__ import annotations

import gc
from statistics import fmean
from time import process_time

from bench.stats import median, percentile
from corral.kernel.draw import draw_integer
from corral.kernel.garbage import uncollected
from corral.scheduler.planners.hived.algorithm import Bind, HivedAlgorithm, Member, PodRequest
from corral.spec.hived.configuration import HivedCluster, load_hived

NODES, OWNERS, CHURN, SEED = 8192, 8, 1000, "hived"
TYPES = {
    "switch": {"childCellType": "gpu", "childCellNumber": 2},
    "socket": {"childCellType": "switch", "childCellNumber": 2},
    "node": {"childCellType": "socket", "childCellNumber": 2, "isNodeLevel": True},
    "rack": {"childCellType": "node", "childCellNumber": 16},
}


def measure() -> dict[str, float]:
    """Milliseconds of processor time: from data to a ready algorithm, the search, a whole gang, and a copy."""
    gc.collect()
    gc.disable()  # as control does when it loads a cluster: nothing built here is garbage
    begun = process_time()
    algorithm = HivedAlgorithm(cluster())
    start = (process_time() - begun) * 1000
    gc.enable()
    gc.freeze()
    search, whole = _life(algorithm)
    begun = process_time()
    with uncollected():
        twin = algorithm.copy()
    copy = (process_time() - begun) * 1000
    assert len(twin.groups) == len(algorithm.groups)
    gc.unfreeze()
    return {
        "start": start,
        "search p50": median(search),
        "gang mean": fmean(whole),
        "gang p99": percentile(whole, 0.99),
        "copy": copy,
    }


def cluster() -> HivedCluster:
    """65,536 devices in racks of 16 nodes, and the queue that owns each."""
    racks = [
        {"cellType": "rack", "cellChildren": [{"cellAddress": f"n{rack}-{at}"} for at in range(16)]}
        for rack in range(NODES // 16)
    ]
    owned = {"virtualCells": [{"cellType": "rack.node", "cellNumber": NODES // OWNERS}]}
    return load_hived(
        {
            "physicalCluster": {"cellTypes": TYPES, "physicalCells": racks},
            "virtualClusters": {f"vc{at}": owned for at in range(OWNERS)},
        }
    )


def _request(number: int) -> PodRequest:
    devices = 1 << draw_integer(SEED, number) % 7
    member = Member(max(1, devices // 8), min(8, devices))
    owner = f"vc{draw_integer(SEED, number, 8) % OWNERS}"
    return PodRequest(f"g{number}-0", owner, 0, member.leaves, f"g{number}", (member,), "gpu")


def _life(algorithm: HivedAlgorithm) -> tuple[list[float], list[float]]:
    """Milliseconds of the search and of the whole, for each gang placed after the cluster was full."""
    nodes, held, number = frozenset(algorithm.nodes), 0, 0
    running, search, whole = list[PodRequest](), list[float](), list[float]()
    while len(whole) < CHURN:
        number += 1
        request = _request(number)
        full = held >= NODES * 6
        if full:
            gone = running.pop(draw_integer(SEED, number, "ends") % len(running))
            algorithm.delete_allocated(gone)
            held -= sum(gone.sizes())
        begun = process_time()
        decision = algorithm.schedule(request, nodes)
        found = process_time()
        if not isinstance(decision, Bind):
            continue
        algorithm.add_allocated(request, decision)
        ended = process_time()
        held += sum(request.sizes())
        running.append(request)
        if full:
            search.append((found - begun) * 1000)
            whole.append((ended - begun) * 1000)
    return search, whole
