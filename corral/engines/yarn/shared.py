"""Choose which tasks share a YARN service with other jobs of their user, and which containers such a service can have.

A service costs a master of 384 MB and its start. Jobs of one small task without devices can share one: those of the same
account, Hadoop user, YARN queue and size of container. YARN adds no component to a service that runs, so a shared one has
a component for each node from the beginning, most of them with 0 containers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.service_spec import SlotShape
from corral.engines.yarn.settings import YarnSettings
from corral.kernel.ids import JobId
from corral.model.launch import TaskLaunch

IDLE_SECONDS: Final = 5.0
"""Seconds for which a shared container without a task is kept: Corral counts its room as free."""
MOST_RETURNED: Final = 500
"""Containers that a shared service gives back before another one takes its place: YARN's description names each of them."""
_MOST_NODES: Final = 200
_PREFIX: Final = "shared"
_ROLE: Final = "small"


def shared_by(launch: TaskLaunch, shape: SlotShape, settings: YarnSettings) -> str:
    """The owner of the services that the task may run in with other jobs; "" for a service of its job alone."""
    tasks = sum(part.tasks for part in launch.gang)
    countable = bool(shape.devices or shape.resources)
    if tasks > 1 or countable or not shape.node or shape.memory_bytes > settings.share_memory_bytes:
        return ""
    user, queue = settings.hadoop_user(launch.user), settings.yarn_queue(launch.queue)
    told = "\0".join((launch.user, user, queue, str(shape.cpu_millis), str(shape.memory_bytes)))
    return f"{_PREFIX}{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def is_shared(owner: JobId) -> bool:
    """Whether an owner of services is the key of shared ones. Ids of jobs begin with a digit."""
    return owner.startswith(_PREFIX)


def shared_shape(shape: SlotShape) -> SlotShape:
    """The shape of a container that tasks of any role can have."""
    return shape._replace(role=_ROLE)


def shapes_of_all_nodes(asked: Mapping[SlotShape, int], nodes: Mapping[str, NodeFacts]) -> dict[SlotShape, int]:
    """The asked shapes with their counts, and the first of them with 0 containers for each other node."""
    first = next(iter(asked))
    others = (first._replace(node=name, partition=node.partition) for name, node in nodes.items() if node.pinned)
    return {**dict.fromkeys(list(others)[:_MOST_NODES], 0), **asked}
