"""The canonical job document, which is stored, scheduled and shown; all other forms are converted to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from corral.spec.base import Labels, Name, SpecModel, Text, refusal
from corral.spec.errors import Problem, SpecError
from corral.spec.job_consistency import inconsistencies
from corral.spec.job_options import JobOptions, Standing
from corral.spec.job_parts import MAX_REPLICAS
from corral.spec.priority import priority_number
from corral.spec.role import Role

API_VERSION: Final = "corral.dev/v1alpha1"
KIND: Final = "UnifiedJob"
FRAMEWORK_CONTROLLER: Final = "frameworkcontroller"
"""The job type of FrameworkController's Frameworks, whose roles may be resized while they run."""
_UNBOUNDED_FROM: Final = {FRAMEWORK_CONTROLLER: 1, "frameworklauncher": 0}
"""The fewest tasks of a role, for job types whose language has no bounds of a job's size."""


class Metadata(SpecModel):
    """Name, labels and annotations of a job."""

    name: Name = Field(description="The job's name: a DNS label of at most 63 characters.")
    labels: Labels = Field(default_factory=dict, description="Short labels that lists can be filtered by.")
    annotations: dict[str, Text] = Field(
        default_factory=dict, max_length=200, description="Free text that tools keep with the job."
    )


class ReplicaSpec(SpecModel):
    """The number of tasks of the counted role, and the bounds within which the scheduler may choose it."""

    role: Text = Field("", max_length=63, description="The role that is counted; the first one if unsaid.")
    replicas: int = Field(1, ge=1, le=MAX_REPLICAS, description="The number asked for; `corral scale` sets it.")
    min_replicas: int = Field(1, ge=1, le=MAX_REPLICAS, description="The fewest it can run with; replicas if unsaid.")
    max_replicas: int = Field(1, ge=1, le=MAX_REPLICAS, description="The most it can use; replicas if unsaid.")
    target_replicas: dict[str, Annotated[int, Field(ge=0, le=MAX_REPLICAS)]] = Field(
        default_factory=dict, description="Replicas by node id; only the scheduler writes it."
    )

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = dict(value)
        for camel, snake in (("minReplicas", "min_replicas"), ("maxReplicas", "max_replicas")):
            if camel not in known and snake not in known and "replicas" in known:
                known[camel] = known["replicas"]
        if "replicas" not in known and "maxReplicas" in known:
            known["replicas"] = known["maxReplicas"]
        return known


class JobKind(SpecModel):
    """The framework that starts a job."""

    job_type: Name = Field(
        "shell",
        description="The framework that starts it: pytorch, tensorflow, jax, mpi, horovod, cntk, shell, notebook, "
        "external, or a plug-in's.",
    )


def _long_enough(seconds: int) -> int:
    if 0 < seconds < 60:
        raise refusal(f"idle is at least 1m, got {seconds}s; 0 is never")
    return seconds


class JobBody(SpecModel):
    """Roles, sizes and time limits of a job."""

    roles: list[Role] = Field(min_length=1, max_length=100, description="The roles, in order.")
    replica_spec: ReplicaSpec = Field(default_factory=ReplicaSpec, description="How many tasks the counted role has.")
    max_duration_seconds: int = Field(
        0,
        ge=0,
        le=10 * 366 * 86_400,
        description="The longest run of the job; then it is ended as failed. 0 is no limit.",
    )
    idle_seconds: Annotated[int, AfterValidator(_long_enough)] = Field(
        0,
        ge=0,
        le=366 * 86_400,
        description="The job is suspended when its tasks report for this long that nobody works in them, as notebooks do "
        "by themselves; at least 1m. 0 is never.",
    )
    hang_after_seconds: int = Field(
        0,
        ge=0,
        le=10 * 366 * 86_400,
        description="How long its tasks may show no progress, by a reported step, their logs or their devices, before the "
        "job hangs, at most; 0 leaves it to the queue.",
    )
    deadline_seconds: int = Field(
        0,
        ge=0,
        le=10 * 366 * 86_400,
        description="The job should end within this time of its submission. The order deadline starts the most urgent job "
        "first. 0 is no deadline.",
    )


class JobSpec(JobOptions, JobBody, Standing, JobKind):
    """The spec of a job: its roles, framework, scheduling and options."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Accept `virtualCluster` as an alias of `queue`; by default the first role is counted."""
        if not isinstance(value, dict):
            return value
        known = dict(value)
        if "virtualCluster" in known and "queue" not in known:
            known["queue"] = known.pop("virtualCluster")
        for key in ("replicaSpec", "replica_spec"):
            if key in known:
                known[key] = _counting(known[key], known.get("roles"))
                return known
        known["replicaSpec"] = _counting({}, known.get("roles"))
        return known


def _counting(count: Any, roles: Any) -> Any:
    """`replicaSpec`, counting the first role if it names none."""
    first = roles[0] if isinstance(roles, list) and roles else None
    name = first.get("name") if isinstance(first, dict) else getattr(first, "name", None)
    if isinstance(count, ReplicaSpec):
        return count if count.role else count.model_copy(update={"role": name})
    if isinstance(count, dict) and not count.get("role") and isinstance(name, str):
        return {**count, "role": name}
    return count


class UnifiedJob(SpecModel):
    """A job, complete and consistent: the document that is stored, scheduled and launched."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(API_VERSION, description="The version of this language.")
    kind: Literal["UnifiedJob"] = Field(KIND, description="Always UnifiedJob.")
    metadata: Metadata = Field(description="What the job is called.")
    spec: JobSpec = Field(description="What it runs and how.")

    @model_validator(mode="before")
    @classmethod
    def _without_status(cls, value: Any) -> Any:
        return {key: part for key, part in value.items() if key != "status"} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _consistent(self) -> UnifiedJob:
        findings = inconsistencies(self)
        if findings:
            raise PydanticCustomError("inconsistent", "the parts do not fit together", {"findings": findings})
        return self

    @property
    def name(self) -> str:
        """The job's name."""
        return self.metadata.name

    @property
    def counted_role(self) -> Role:
        """The role that `replicaSpec` counts."""
        return self.role(self.spec.replica_spec.role)

    @property
    def is_elastic(self) -> bool:
        """Whether the scheduler may choose the number of replicas."""
        return self.spec.replica_spec.min_replicas < self.spec.replica_spec.max_replicas

    @property
    def is_array(self) -> bool:
        """Whether the document stands for many jobs."""
        return self.spec.array.size > 0

    @property
    def priority(self) -> int:
        """The priority as a number."""
        return priority_number(self.spec.priority)

    @property
    def total_tasks(self) -> int:
        """Tasks of all roles at the requested size."""
        return sum(self.replicas_of(role.name) for role in self.spec.roles)

    @property
    def total_devices(self) -> int:
        """Devices of all tasks at the requested size."""
        return sum(self.replicas_of(role.name) * role.resources.devices.count for role in self.spec.roles)

    @property
    def device_millis(self) -> int:
        """Thousandths of devices of all tasks at the requested size.

        A share of unknown size counts as a whole device.
        """
        return sum(self.replicas_of(role.name) * role.resources.devices.millis for role in self.spec.roles)

    def role(self, name: str) -> Role:
        """The role called `name`.

        Raises KeyError when there is none.
        """
        for role in self.spec.roles:
            if role.name == name:
                return role
        raise KeyError(name)

    def replicas_of(self, role: str) -> int:
        """The requested number of tasks of a role."""
        return self.spec.replica_spec.replicas if role == self.counted_role.name else self.role(role).replicas

    def gang_size(self) -> dict[str, int]:
        """The fewest tasks of each role with which the job can start, by role name, in order.

        Without a gang it is one task of the first role.
        """
        if not self.spec.gang:
            return {role.name: int(at == 0) for at, role in enumerate(self.spec.roles)}
        minimum = self.spec.replica_spec.min_replicas
        counted = self.counted_role.name
        return {role.name: minimum if role.name == counted else role.replicas for role in self.spec.roles}

    def scaled(self, replicas: int) -> UnifiedJob:
        """The same job with `replicas` of its counted role.

        Raises SpecError when `check_sizes` does.
        """
        self.check_sizes({self.counted_role.name: replicas})
        if self._is_unbounded:
            return self._counting(dict.fromkeys(("replicas", "min_replicas", "max_replicas"), replicas))
        return self._counting({"replicas": replicas})

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Refuse new numbers of tasks, by role, that the job may not have: the one check of every rescale.

        The counted role keeps to minReplicas..maxReplicas, and other roles keep their size. A job whose language has no
        such bounds may take any size up to MAX_REPLICAS. Raises SpecError.
        """
        count, counted = self.spec.replica_spec, self.counted_role.name
        for role, size in sizes.items():
            if self._is_unbounded:
                least, most = _UNBOUNDED_FROM[self.spec.job_type], MAX_REPLICAS
            elif role == counted:
                least, most = count.min_replicas, count.max_replicas
            else:
                least = most = self.replicas_of(role)
            if not least <= size <= most:
                message = f"expected {least} to {most} replicas of {role}, got {size}; the job's file sets these bounds"
                raise SpecError([Problem(message, ("spec", "replicaSpec", "replicas"))])

    @property
    def _is_unbounded(self) -> bool:
        return self.spec.job_type in _UNBOUNDED_FROM and not self.is_elastic

    def with_targets(self, target_replicas: Mapping[str, int]) -> UnifiedJob:
        """The same job with the scheduler's replicas of the counted role by node id."""
        return self._counting({"target_replicas": dict(target_replicas)})

    def _counting(self, update: dict[str, Any]) -> UnifiedJob:
        count = self.spec.replica_spec.model_copy(update=update)
        return self.model_copy(update={"spec": self.spec.model_copy(update={"replica_spec": count})})

    def to_document(self, *, complete: bool = True) -> dict[str, Any]:
        """The canonical document as plain data; without `complete`, fields at their defaults are left out."""
        data: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_defaults=not complete)
        if not complete:  # an omitted bound is read as `replicas`, not as its default
            counts = self.spec.replica_spec.model_dump(mode="json", by_alias=True)
            data["spec"]["replicaSpec"] = {key: value for key, value in counts.items() if value != {}}
        return {"apiVersion": self.api_version, "kind": self.kind} | data

    def to_json(self) -> str:
        """The canonical document as stable JSON: equal jobs give equal text."""
        return json.dumps(self.to_document(), separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, filename: str = "document") -> UnifiedJob:
        """The job of a canonical document.

        Raises SpecError with every problem.
        """
        from corral.spec.job_reader import read_canonical

        return read_canonical(document, filename)
