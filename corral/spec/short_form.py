"""The short form of job files: its fields, and the conversion to the canonical document."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from corral.spec.abbreviations import (
    Company,
    LooseTopology,
    Replicas,
    Seconds,
    ShortArray,
    ShortBarrier,
    ShortCheckpoint,
    ShortCode,
    ShortCommand,
    ShortCompileCache,
    ShortDependencies,
    ShortEnv,
    ShortNetwork,
    ShortNodes,
    ShortNotifications,
    ShortParameters,
    ShortPorts,
    ShortPreflight,
    ShortPriority,
    ShortReplicas,
    ShortReport,
    ShortResources,
    ShortRetry,
    ShortSecrets,
    ShortSharing,
    ShortStorages,
    ShortTopology,
    Told,
)
from corral.spec.base import Labels, Name, QueueName, SpecModel, Text
from corral.spec.compile_cache import CompileCache
from corral.spec.errors import Path
from corral.spec.job_options import JobOptions, Standing
from corral.spec.job_parts import Array, Barrier, Code, Report, RetryPolicy
from corral.spec.placement.network import Network
from corral.spec.placement_rules import NodeRules
from corral.spec.preflight import Preflight
from corral.spec.role import RoleOptions

_RENAMED: Final = {"virtualCluster": "queue", "retry": "retryPolicy", "after": "dependsOn"}
"""Short names of canonical fields."""


class ShortRole(RoleOptions):
    """One role: tasks that run the same command with the same resources."""

    replicas: Replicas = Field(
        default_factory=lambda: ShortReplicas(min=1, max=1),
        description="How many tasks: a number, or {min, max} when the scheduler may choose (elastic).",
    )
    resources: ShortResources = Field(default_factory=ShortResources, description="What each task gets of its node.")
    command: ShortCommand = Field(
        default_factory=list, description="What one process runs: a line for sh, or the program and its arguments."
    )
    env: ShortEnv = Field(default_factory=dict, description="Environment variables of this role alone.")
    secrets: ShortSecrets = Field(
        default_factory=list, description="Stored secrets: {VARIABLE: secret}, or a list of name with env or file."
    )
    ports: ShortPorts = Field(default_factory=list, description="Free ports: [http], {http: 1}, or name and count.")
    topology: ShortTopology = Field(
        default_factory=LooseTopology, description="Narrower closeness for this role alone."
    )
    nodes: ShortNodes = Field(default_factory=NodeRules, description="Which nodes its tasks may be on: names, or more.")
    retry_policy: ShortRetry = Field(default_factory=RetryPolicy, description="When one ended task is tried again.")
    retry: ShortRetry | None = Field(None, description="The same as retryPolicy; a number is maxRetries.")


class ShortHead(SpecModel):
    """Name, framework and roles of a job file."""

    name: Name = Field(description="The job's name: a DNS label of at most 63 characters.")
    framework: Name = Field(
        "shell",
        description="What starts it: pytorch, tensorflow, jax, mpi, horovod, cntk, shell, notebook, external, "
        "or a plug-in's.",
    )
    roles: Annotated[dict[Name, ShortRole], Field(min_length=1, max_length=100)] = Field(
        description="The roles by name, in order."
    )


class ShortJob(JobOptions, Standing, ShortHead):
    """A job as people write it; `corral convert` shows its canonical form."""

    labels: Labels = Field(default_factory=dict, description="Short labels that lists can be filtered by.")
    annotations: dict[str, Text] = Field(
        default_factory=dict, max_length=200, description="Free text kept with the job."
    )
    counted_role: Text = Field(
        "",
        max_length=63,
        description="The role that `corral scale` counts; the elastic one, else the first, if unsaid.",
    )
    priority: ShortPriority = Field(
        "", max_length=20, description='crit (120), prod (100), test (10), oppo (-1), or any integer; "" is test.'
    )
    parameters: ShortParameters = Field(
        default_factory=dict, description="Values that `<% $parameters.NAME %>` stands for anywhere in the file."
    )
    virtual_cluster: QueueName | None = Field(None, description="The same as queue.")
    image: Text = Field("", max_length=1024, description="The container image of roles that name none.")
    working_dir: Text = Field("", max_length=4096, description="The working directory of roles that name none.")
    env: ShortEnv = Field(default_factory=dict, description="Environment variables of all roles; a role's own win.")
    secrets: ShortSecrets = Field(default_factory=list, description="Stored secrets given to every role.")
    node_selector: Labels = Field(default_factory=dict, description="Labels every task's node must have.")
    topology: ShortTopology = Field(
        default_factory=LooseTopology,
        description="How close together the whole job is: a level, or required and preferred.",
    )
    nodes: ShortNodes = Field(default_factory=NodeRules, description="Which nodes the job may be on: names, or more.")
    sharing: Company = Field(
        default_factory=ShortSharing, description="With which jobs the job shares its nodes: exclusive, or more."
    )
    code: ShortCode = Field(default_factory=Code, description="The program's files: \".\" packs the job file's folder.")
    network: ShortNetwork = Field(default_factory=Network, description="rdma (required), preferred or none.")
    retry_policy: ShortRetry = Field(default_factory=RetryPolicy, description="When the whole job is tried again.")
    retry: ShortRetry | None = Field(None, description="The same as retryPolicy; a number is maxRetries.")
    max_duration: Seconds = Field(
        0, description="The longest run of the job; then it is ended: 90m, 2h; 0 is no limit."
    )
    idle: Seconds = Field(
        0,
        description="The job is suspended when nobody worked in it for this long, as notebooks report by themselves: 30m, "
        "2h; at least 1m; 0 is never.",
    )
    hang_after: Seconds = Field(
        0,
        description="How long its tasks may show no progress before the job hangs, at most: 30m, 2h; 0 leaves it to the "
        "queue.",
    )
    deadline: Seconds = Field(
        0, description="The job should end within this time of its submission: 90m, 2h; 0 is no deadline."
    )
    checkpoint: ShortCheckpoint = Field(default_factory=ShortCheckpoint, description="How tasks are asked to end.")
    report: ShortReport = Field(
        default_factory=Report, description="How the program tells how far it is: true, or more."
    )
    profile: bool = Field(
        False, description="Whether `corral profile --what torch` can have traces of the tasks' PyTorch."
    )
    compile_cache: ShortCompileCache = Field(
        default_factory=CompileCache,
        description="Whether what its tasks compile is kept for later tasks: none, job, user, or more.",
    )
    preflight: ShortPreflight = Field(
        default_factory=Preflight, description="What each task checks before its command begins: network, or more."
    )
    notifications: Told = Field(
        default_factory=ShortNotifications,
        description="What the owner is told of it: failed, [started, ended], or more.",
    )
    barrier: ShortBarrier = Field(
        default_factory=Barrier, description="Whether tasks wait for each other at the start."
    )
    storages: ShortStorages = Field(
        default_factory=list, description="Storages that the tasks have: names, or each with a path of its own."
    )
    depends_on: ShortDependencies = Field(default_factory=list, description="Jobs that must have ended before.")
    after: ShortDependencies | None = Field(None, description="The same as dependsOn.")
    array: ShortArray = Field(
        default_factory=Array, description="Run it many times: a number, or size and maxParallel."
    )

    def canonical(self, api_version: str, kind: str) -> dict[str, Any]:
        """The canonical document, not yet validated as a whole."""
        given = _renamed(self.model_dump(by_alias=True, exclude_unset=True))
        counted = self._counted()
        size = self.roles[counted].replicas if counted in self.roles else ShortReplicas(min=1, max=1)
        metadata = {key: given.pop(key) for key in ("name", "labels", "annotations") if key in given}
        shared = {key: given.pop(key, {}) for key in ("image", "workingDir", "env", "secrets", "nodeSelector")}
        written = given.pop("roles")
        spec: dict[str, Any] = {
            "jobType": given.pop("framework", self.framework),
            "roles": [_role(name, role, shared, name == counted) for name, role in written.items()],
            "replicaSpec": {
                "role": counted,
                "replicas": size.replicas or size.max,
                "minReplicas": size.min,
                "maxReplicas": size.max,
            },
            "maxDurationSeconds": given.pop("maxDuration", 0),
            "idleSeconds": given.pop("idle", 0),
            "hangAfterSeconds": given.pop("hangAfter", 0),
            "deadlineSeconds": given.pop("deadline", 0),
        }
        given.pop("countedRole", None)
        if isinstance(checkpoint := given.get("checkpoint"), dict) and "grace" in checkpoint:
            checkpoint["graceSeconds"] = checkpoint.pop("grace")
        if isinstance(told := given.get("notifications"), dict) and "waiting" in told:
            told["waitingSeconds"] = told.pop("waiting")
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec | given}

    def _counted(self) -> str:
        ranged = [name for name, role in self.roles.items() if role.replicas.min != role.replicas.max]
        return self.counted_role or next(iter(ranged or self.roles))

    def findings(self) -> list[tuple[Path, str]]:
        """Inconsistencies that have no equivalent in the canonical form."""
        found: list[tuple[Path, str]] = []
        counted = self._counted()
        for name, role in self.roles.items():
            if name != counted and role.replicas.min != role.replicas.max:
                found.append((("roles", name, "replicas"), f'only one role may be elastic, and "{counted}" is it'))
            found += [(("roles", name, *path), message) for path, message in _twice(role)]
        if {"grace", "grace_seconds"} <= self.checkpoint.model_fields_set:
            found.append((("checkpoint", "grace"), "graceSeconds says the same; give one of the two"))
        if {"waiting", "waiting_seconds"} <= self.notifications.model_fields_set:
            found.append((("notifications", "waiting"), "waitingSeconds says the same of it; give one of the two"))
        return found + _twice(self)

    def written_path(self, path: Path) -> Path:
        """The path in this form of the canonical `path`."""
        match path:
            case ("metadata", *rest):
                return tuple(rest)
            case ("spec", "roles", int(index), *rest):
                name = list(self.roles)[index]
                return ("roles", name) if rest == ["name"] else ("roles", name, *rest)
            case ("spec", "replicaSpec", "role", *_):
                return ("countedRole",)
            case ("spec", "replicaSpec", *_):
                return ("roles", self._counted(), "replicas")
            case ("spec", "jobType"):
                return ("framework",)
            case ("spec", "maxDurationSeconds"):
                return ("maxDuration",)
            case ("spec", "idleSeconds"):
                return ("idle",)
            case ("spec", "hangAfterSeconds"):
                return ("hangAfter",)
            case ("spec", "deadlineSeconds"):
                return ("deadline",)
            case ("spec", str(field), *rest):
                short = next((s for s, c in _RENAMED.items() if c == field and self._has(s)), field)
                return (short, *rest)
        return path

    def _has(self, alias: str) -> bool:
        return any(info.alias == alias and field in self.model_fields_set for field, info in _fields(self))


def _fields(model: SpecModel) -> list[tuple[str, Any]]:
    return list(type(model).model_fields.items())


def _twice(model: SpecModel) -> list[tuple[Path, str]]:
    """Fields given under both their short and their canonical name."""
    names = {info.alias: field for field, info in _fields(model)}
    return [
        ((short,), f"{canonical} says the same; give one of the two")
        for short, canonical in _RENAMED.items()
        if {names.get(short), names.get(canonical)} <= model.model_fields_set
    ]


def _renamed(given: dict[str, Any]) -> dict[str, Any]:
    for short, canonical in _RENAMED.items():
        if (value := given.pop(short, None)) is not None:
            given[canonical] = value
    return given


def _role(name: str, given: dict[str, Any], shared: dict[str, Any], counted: bool) -> dict[str, Any]:
    role = {"name": name} | _renamed(given)
    size = role.pop("replicas", {"max": 1})
    if not counted:
        role["replicas"] = size.get("replicas") or size["max"]
    for field in ("image", "workingDir"):
        if shared[field] and field not in role:
            role[field] = shared[field]
    for field in ("env", "nodeSelector"):
        role[field] = shared[field] | role.get(field, {})
    own = role.get("secrets", [])
    role["secrets"] = own + [each for each in shared["secrets"] or [] if each not in own]
    return role
