"""How Pollux' jobs are spread over nodes, and their batch over replicas."""

from __future__ import annotations

from math import ceil
from typing import Final

from corral.sim.traces.pollux_profiles import Application, Placement

NODE_GPUS: Final = 4
"""GPUs of a node in the profiles."""


def filled(replicas: int) -> Placement:
    """Return the placement of replicas on nodes that are filled one after the other."""
    full, rest = divmod(replicas, NODE_GPUS)
    return (NODE_GPUS,) * full + ((rest,) if rest else ())


def split(size: int, replicas: int, application: Application, *, accumulate: bool) -> tuple[int, int]:
    """Return the local batch size of a pass and the passes before the last one, for a batch size over replicas."""
    local = ceil(size / replicas - 1e-8)
    passes = ceil(local / application.most_local - 1e-8) - 1
    if replicas == 1 and accumulate:
        passes = max(1, passes)
    atomic = ceil(local / (passes + 1) - 1e-8)
    return min(atomic, application.kind.largest // (replicas * (passes + 1))), passes
