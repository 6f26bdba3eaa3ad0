"""The version of Hadoop that a ResourceManager runs."""

from __future__ import annotations

from typing import Final

from corral.engines.yarn.hadoop_rest import HadoopRest

_LONGEST: Final = 100
"""Letters that are kept of a version."""


async def hadoop_version(yarn: HadoopRest) -> str:
    """Return the ResourceManager's version, such as 3.4.1.

    Raises a CorralError where it does not answer, LookupError or TypeError where what answers is none.
    """
    info = await yarn.ask("GET", "/ws/v1/cluster/info")
    return str(info["clusterInfo"]["resourceManagerVersion"])[:_LONGEST]
