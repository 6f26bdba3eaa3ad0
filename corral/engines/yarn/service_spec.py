"""Build the YARN service of a job: one component per role and node, whose containers are slots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from corral.engines.yarn.inventory import RESOURCES, NodeFacts
from corral.engines.yarn.settings import USER, YarnSettings
from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.launch import TaskLaunch

CREDENTIALS: Final = "slot.json"
RUNTIME: Final = "runtime.pyz"
WRAPPER: Final = "slot.sh"
"""The names of the files in a container's folder."""
AGENTS: Final = "agents"
"""What services of agents have in their names instead of a job."""
_MIB: Final = 1024 * 1024
_LAUNCH: Final = f"exec sh {WRAPPER} ${{COMPONENT_INSTANCE_NAME}}"
SCRIPT: Final = f"""\
for python in python3 python; do
  command -v "$python" >/dev/null && exec "$python" -I -S {RUNTIME} slot {CREDENTIALS} "$1"
done
echo 'corral: this node has no Python 3, which a slot needs' >&2
exit 127
"""
"""The wrapper, a file of its own: a NodeManager expands variables in a launch command before the shell sees them."""
_ONE_NODE: Final = {"yarn.service.node-blacklist.threshold": "1000000"}
"""By its default a master gives a node no more containers after four that failed there: one that needs that very node would
be awaited without end.
"""
_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")


class SlotShape(NamedTuple):
    """What the containers of one component have in common, in YARN's units, so that it can be read back from YARN."""

    role: str
    """The role's name as part of a component's."""
    node: str
    """The node's name without the engine's; "" leaves the choice to YARN."""
    cpu_millis: int
    memory_bytes: int
    devices: int
    resources: tuple[tuple[str, int], ...] = ()
    partition: str = ""
    """The node label of its node; "" for none."""

    def amounts(self, settings: YarnSettings) -> dict[str, int]:
        """What one container takes, by YARN's names; memory in MiB."""
        amounts = {"memory-mb": self.memory_bytes // _MIB, "vcores": self.cpu_millis // 1000}
        return amounts | ({settings.device_resource: self.devices} if self.devices else {}) | dict(self.resources)


def shape_of(launch: TaskLaunch, engine: str, nodes: Mapping[str, NodeFacts] = {}) -> SlotShape:
    """The shape of the container that a task needs: whole processors, and MiB of memory.

    `nodes` are the known nodes by name; the choice of one without the node attribute is left to YARN.
    """
    name = launch.node.removeprefix(f"{engine}/")
    node = nodes.get(name)
    role = _NOT_NAME.sub("-", parse_attempt_id(launch.attempt).role.lower()).strip("-")[:30].strip("-") or "role"
    named = {name: launch.amounts[each.name] for name, each in RESOURCES.items() if each.name in launch.amounts}
    return SlotShape(
        role,
        name if node is None or node.pinned else "",
        1000 * max(1, -(-launch.cpu_millis // 1000)),
        _MIB * max(64, -(-launch.memory_bytes // _MIB)),
        len(launch.devices),
        tuple(sorted((launch.resources | named).items())),
        node.partition if node is not None else "",
    )


def service_name(settings: YarnSettings, job: JobId, number: int) -> str:
    """The name of a job's service: `corral-SERVER-JOB-NUMBER`, at most 63 characters."""
    return f"{service_prefix(settings)}{job.lower()}-{number}"[:63]


def service_prefix(settings: YarnSettings) -> str:
    """The beginning of the names of all of this server's services."""
    return f"corral-{_NOT_NAME.sub('', settings.server.lower())[:8]}-"


def component_name(shape: SlotShape, number: int) -> str:
    """The name of a component: its role and a number."""
    return f"{shape.role}-n{number}"


def service_of(
    settings: YarnSettings,
    name: str,
    queue: str,
    components: Mapping[str, tuple[SlotShape, int]],
    files: Mapping[str, str],
    *,
    user: str = "",
    once: bool = False,
) -> dict[str, Any]:
    """The service's document. `components` has each shape with its count, `files` paths in HDFS by their name.

    `user` is the Hadoop user of its Kerberos principal. Containers that end are started again, unless `once`.
    """
    given = [{"type": "STATIC", "src_file": path, "dest_file": name} for name, path in files.items()]
    return {
        "name": name,
        "version": "1",
        "queue": queue,
        "lifetime": settings.lifetime_seconds,
        **kerberos_of(settings, user),
        "configuration": {"files": given},
        "components": [_component(settings, key, shape, count, once) for key, (shape, count) in components.items()],
    }


def kerberos_of(settings: YarnSettings, user: str) -> dict[str, Any]:
    """The part of a service's document by which its master has tickets of its own; empty where none are configured."""
    if not settings.service_principal:
        return {}
    given = {"principal_name": settings.service_principal, "keytab": settings.service_keytab}
    return {"kerberos_principal": {key: value.replace(USER, user) for key, value in given.items()}}


def _component(settings: YarnSettings, name: str, shape: SlotShape, count: int, once: bool) -> dict[str, Any]:
    amounts = shape.amounts(settings)
    cpus, memory = amounts.pop("vcores"), amounts.pop("memory-mb")
    constraint = {
        "name": "node",
        "type": "AFFINITY",
        "scope": "NODE",
        **({"node_attributes": {settings.attribute: [shape.node]}} if shape.node else {}),
        **({"node_partitions": [shape.partition]} if shape.partition else {}),
    }
    return {
        "name": name,
        "number_of_containers": count,
        "restart_policy": "NEVER" if once else "ALWAYS",
        "launch_command": _LAUNCH,
        "resource": {
            "cpus": cpus,
            "memory": str(memory),
            "additional": {key: {"value": value, "unit": ""} for key, value in amounts.items()},
        },
        **({"placement_policy": {"constraints": [constraint]}} if shape.node or shape.partition else {}),
        **({"configuration": {"properties": _ONE_NODE}} if shape.node else {}),
    }
