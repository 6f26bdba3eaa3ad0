"""What HiveD's algorithm decides about: one engine's cells and the virtual clusters that own them."""

from __future__ import annotations

import msgspec

from corral.kernel.errors import InvalidInput
from corral.model.configuration import Configuration
from corral.scheduler.planners.hived.algorithm import HivedAlgorithm
from corral.spec.hived.configuration import HivedCluster


class HivedSettings(msgspec.Struct, frozen=True):
    """The cells that HiveD's algorithm controls."""

    cluster: HivedCluster
    engine: str = "local"
    lazy_preemption: bool = False
    """Whether gangs lose their guarantee and run on instead of being preempted by their own virtual cluster."""


def read_settings(configuration: Configuration) -> HivedSettings:
    """Return the settings that the documents give.

    Raises InvalidInput when HiveD cannot express the documents, or when the cells of virtual clusters do not fit.
    """
    found = configuration.hived()
    if found is None:
        raise InvalidInput(
            "not-hived", "HiveD's algorithm decides only where the Policy document says `preset: hived`."
        )
    engine, cluster = found
    HivedAlgorithm(cluster)
    lazily = configuration.policy is not None and configuration.policy.lazy_preemption
    return HivedSettings(cluster, engine, lazily)
