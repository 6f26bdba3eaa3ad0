"""Why: fields that are right alone can be wrong together; every such rule is here, each with the path it blames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from corral.spec.errors import Path, did_you_mean
from corral.spec.parts import MAX_REPLICAS, Topology

if TYPE_CHECKING:
    from corral.spec.job import JobSpec, UnifiedJob
    from corral.spec.role import Role

Finding = tuple[Path, str]
"""The canonical path that is to blame, and what is wrong."""

_COMMAND_IN_EVERY_ROLE: Final = frozenset({"shell", "pytorch", "tensorflow", "jax"})
_COMMAND_IN_ONE_ROLE: Final = frozenset({"mpi", "horovod", "cntk"})


def inconsistencies(job: UnifiedJob) -> list[Finding]:
    """Everything in `job` that does not fit together, in document order."""
    spec = job.spec
    findings = list(_counting(spec))
    for index, role in enumerate(spec.roles):
        base: Path = ("spec", "roles", index)
        findings += [((*base, *path), message) for path, message in _role(role)]
    findings += _commands(spec)
    findings += [(("spec", *path), message) for path, message in _topology(spec.topology)]
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
    devices = role.resources.devices
    if devices.ids and len(devices.ids) != devices.count:
        yield (
            ("resources", "devices", "count"),
            f"{devices.count} does not agree with the {len(devices.ids)} devices named in ids",
        )
    for index in _repeated(devices.ids):
        yield ("resources", "devices", "ids", index), f'"{devices.ids[index]}" is already named'
    for index in _repeated([port.name for port in role.ports]):
        yield ("ports", index, "name"), f'the port "{role.ports[index].name}" is already there'
    for index, secret in enumerate(role.secrets):
        if bool(secret.env) == bool(secret.file):
            yield ("secrets", index), "expected either env (a variable's name) or file (a file's name)"
        elif secret.env in role.env:
            yield ("secrets", index, "env"), f'"{secret.env}" is already set in env'
    yield from _topology(role.topology)


def _commands(spec: JobSpec) -> Iterator[Finding]:
    if spec.job_type in _COMMAND_IN_EVERY_ROLE:
        for index, role in enumerate(spec.roles):
            if not role.command:
                yield ("spec", "roles", index, "command"), "missing; say what the role runs"
    elif spec.job_type in _COMMAND_IN_ONE_ROLE and not any(role.command for role in spec.roles):
        yield ("spec", "roles", 0, "command"), "missing; say what the job runs"


def _topology(topology: Topology) -> Iterator[Finding]:
    group = topology.group
    if bool(group.size) != bool(group.required):
        missing = "required" if group.size else "size"
        yield ("topology", "group", missing), "missing; a group has both a size and a required level"


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
    """The indexes of names that stood earlier already."""
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if seen[name]:
            yield index
        seen[name] += 1
