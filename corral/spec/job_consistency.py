"""Rules across the fields of a job: combinations that are invalid though each field is valid alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from corral.spec.errors import Path, did_you_mean
from corral.spec.job_parts import MAX_REPLICAS
from corral.spec.placement import pinned_cell, topology
from corral.spec.placement_rules import OWN_FIELDS, Devices, NodeRules, node_name

if TYPE_CHECKING:
    from corral.spec.job import JobSpec, UnifiedJob
    from corral.spec.role import Role

Finding = tuple[Path, str]
"""The canonical path of the error, and its message."""

_COMMAND_IN_EVERY_ROLE: Final = frozenset({"shell", "pytorch", "tensorflow", "jax"})
_COMMAND_IN_ONE_ROLE: Final = frozenset({"mpi", "horovod", "cntk"})


def inconsistencies(job: UnifiedJob) -> list[Finding]:
    """All inconsistencies of `job`, in document order."""
    spec = job.spec
    findings = list(_counting(spec))
    for index, role in enumerate(spec.roles):
        base: Path = ("spec", "roles", index)
        findings += [((*base, *path), message) for path, message in _role(role)]
    findings += _commands(spec)
    findings += pinned_cell.inconsistencies(job)
    findings += _groups(spec)
    findings += [(("spec", *path), message) for path, message in topology.inconsistencies(spec.topology)]
    findings += [(("spec", *path), message) for path, message in _nodes(spec.nodes)]
    findings += _nowhere(spec)
    findings += _elsewhere(job)
    return findings


def _counting(spec: JobSpec) -> Iterator[Finding]:
    names = [role.name for role in spec.roles]
    for index in _repeated(names):
        yield ("spec", "roles", index, "name"), f'the role "{names[index]}" is already there; roles have unique names'
    count = spec.replica_spec
    counted = count.role or names[0]
    if counted not in names:
        yield ("spec", "replicaSpec", "role"), f'no role is called "{counted}"{did_you_mean(counted, names)}'
        return
    if not count.min_replicas <= count.replicas <= count.max_replicas:
        yield (
            ("spec", "replicaSpec", "replicas"),
            f"{count.replicas} is not between minReplicas {count.min_replicas} and maxReplicas {count.max_replicas}",
        )
    for index, role in enumerate(spec.roles):
        path: Path = ("spec", "roles", index, "replicas")
        if role.name == counted and role.replicas:
            yield path, "replicaSpec counts this role; give the number there alone"
        if role.name != counted and not role.replicas:
            yield path, f'missing; every role but the counted one ("{counted}") says how many replicas it has'
    total = count.max_replicas + sum(role.replicas for role in spec.roles if role.name != counted)
    if total > MAX_REPLICAS:
        yield ("spec", "roles"), f"{total} tasks in all; a job has at most {MAX_REPLICAS}"


def _role(role: Role) -> Iterator[Finding]:
    for name in OWN_FIELDS & role.resources.other.keys():
        yield ("resources", "other", name), f"{name} has a field of its own"
    yield from _devices(role.resources.devices)
    for index in _repeated([port.name for port in role.ports]):
        yield ("ports", index, "name"), f'the port "{role.ports[index].name}" is already there'
    for index, secret in enumerate(role.secrets):
        if bool(secret.env) == bool(secret.file):
            yield ("secrets", index), "expected either env (a variable's name) or file (a file's name)"
        elif secret.env in role.env:
            yield ("secrets", index, "env"), f'"{secret.env}" is already set in env'
    yield from topology.inconsistencies(role.topology)
    yield from _nodes(role.nodes)


def _groups(spec: JobSpec) -> Iterator[Finding]:
    """Affinity groups with different cells or device models."""
    asked = dict[str, tuple[str, str]]()
    for index, role in enumerate(spec.roles):
        if role.affinity_group and role.resources.devices.count:
            own = (pinned_cell.requested(spec, role), role.resources.devices.model)
            if asked.setdefault(role.affinity_group, own) != own:
                message = f'roles of one group ("{role.affinity_group}") ask for one pinned cell and one device model'
                yield ("spec", "roles", index, "affinityGroup"), message


def _nodes(rules: NodeRules) -> Iterator[Finding]:
    for index, name in enumerate(rules.include):
        if name in rules.exclude:
            yield ("nodes", "include", index), f'"{name}" is in exclude too'


def _nowhere(spec: JobSpec) -> Iterator[Finding]:
    """Roles whose included nodes are all outside the job's included nodes."""
    names = {node_name(name) for name in spec.nodes.include}
    for index, role in enumerate(spec.roles):
        if names and role.nodes.include and names.isdisjoint(map(node_name, role.nodes.include)):
            yield ("spec", "roles", index, "nodes", "include"), "none of them is among the nodes that the job includes"


def _devices(devices: Devices) -> Iterator[Finding]:
    base: Path = ("resources", "devices")
    if devices.ids and len(devices.ids) != devices.count:
        yield (
            (*base, "count"),
            f"{devices.count} does not agree with the {len(devices.ids)} devices named in ids",
        )
    for index in _repeated(devices.ids):
        yield (*base, "ids", index), f'"{devices.ids[index]}" is already named'
    bits = devices.bits.bit_count()
    if bits and devices.ids:
        yield (*base, "bitmap"), "ids name devices already; give one of the two"
    elif bits and bits != devices.count:
        yield (*base, "bitmap"), f"{devices.bitmap} has {bits} bits set, and count is {devices.count}; they must agree"
    share = devices.share
    if not share.asked:
        if share.policy != "pack":
            yield (*base, "share", "policy"), "missing computePercent, memoryPercent or memory: no part is asked for"
        return
    if devices.count != 1:
        yield (*base, "share"), f"a share is of 1 device, and count is {devices.count}"
    if share.memory_bytes and share.memory_percent:
        yield (*base, "share", "memory"), "memoryPercent says it already; give one of the two"


def _commands(spec: JobSpec) -> Iterator[Finding]:
    if spec.job_type in _COMMAND_IN_EVERY_ROLE:
        for index, role in enumerate(spec.roles):
            if not role.command:
                yield ("spec", "roles", index, "command"), "missing; say what the role runs"
    elif spec.job_type in _COMMAND_IN_ONE_ROLE and not any(role.command for role in spec.roles):
        yield ("spec", "roles", 0, "command"), "missing; say what the job runs"


def _elsewhere(job: UnifiedJob) -> Iterator[Finding]:
    spec = job.spec
    for index, dependency in enumerate(spec.depends_on):
        if dependency.job == job.metadata.name:
            yield ("spec", "dependsOn", index, "job"), "a job cannot wait for itself"
    for index in _repeated([dependency.job for dependency in spec.depends_on]):
        yield ("spec", "dependsOn", index, "job"), f'"{spec.depends_on[index].job}" is already there'
    for index in _repeated([part.path for part in spec.inputs]):
        yield ("spec", "inputs", index, "path"), f'"{spec.inputs[index].path}" already holds another input'
    if spec.array.max_parallel and not spec.array.size:
        yield ("spec", "array", "size"), "missing; maxParallel bounds an array's jobs, and there is no array"


def _repeated(names: Iterable[str]) -> Iterator[int]:
    """The indexes of names that occurred before."""
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if seen[name]:
            yield index
        seen[name] += 1
