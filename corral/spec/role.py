"""A role of a job: tasks that run the same command with the same resources."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.kernel import units
from corral.spec.base import Argument, Env, Labels, Memory, Name, SpecModel, Text
from corral.spec.job_parts import (
    MAX_REPLICAS,
    Completion,
    Kubernetes,
    Port,
    Resources,
    RetryPolicy,
    Secret,
)
from corral.spec.placement import pinned_cell
from corral.spec.placement.topology import Topology
from corral.spec.placement_rules import NodeRules


class RoleName(SpecModel):
    """The name of a role in the canonical form, and its number of tasks unless replicaSpec counts it."""

    name: Name = Field(description="The role's name, unique in the job.")
    replicas: int = Field(
        0, ge=0, le=MAX_REPLICAS, description="How many tasks; left out for the one role that replicaSpec counts."
    )


class RoleOptions(SpecModel):
    """Fields of a role that the short and the canonical form share."""

    image: Text = Field("", max_length=1024, description='The container image; "" is the engine\'s default or none.')
    image_pull_secrets: list[Annotated[Text, Field(min_length=1, max_length=253)]] = Field(
        default_factory=list, max_length=20, description="Names of the secrets that open the image's registry."
    )
    resources: Resources = Field(default_factory=Resources, description="What each task gets of its node.")
    processes_per_replica: int = Field(
        0, ge=0, le=1024, description="Processes the launcher starts per task; 0 is one per device, at least one."
    )
    command: list[Argument] = Field(
        default_factory=list, max_length=10_000, description="What one process runs: the program and its arguments."
    )
    working_dir: Text = Field(
        "", max_length=4096, description='The folder the command starts in; "" is where the code was unpacked.'
    )
    env: Env = Field(default_factory=dict, description="Environment variables.")
    secrets: list[Secret] = Field(
        default_factory=list, max_length=100, description="Stored secrets given to each task."
    )
    ports: list[Port] = Field(default_factory=list, max_length=100, description="Free ports each task is given.")
    shm: Memory = Field("", description='Shared memory, such as "1Gi"; "" is the engine\'s default.')
    topology: Topology = Field(
        default_factory=Topology, description="Narrower closeness for this role alone, besides the job's."
    )
    completion: Completion = Field(
        default_factory=Completion, description="How many ended tasks of this role end the job."
    )
    retry_policy: RetryPolicy = Field(default_factory=RetryPolicy, description="When one ended task is tried again.")
    max_task_seconds: int = Field(
        0,
        ge=0,
        le=2**31 - 1,
        description="The longest run of one attempt of a task: then it is ended as failed (-1004), and retryPolicy "
        "decides. 0 is no limit.",
    )
    node_selector: Labels = Field(default_factory=dict, description="Labels that each task's node must have.")
    nodes: NodeRules = Field(
        default_factory=NodeRules, description="Which nodes its tasks may be on, besides the job's own rules."
    )
    pinned_cell: Text = pinned_cell.OF_ROLE
    affinity_group: Text = Field(
        "",
        max_length=253,
        description="Under the preset hived: roles of one name are one affinity group, placed together apart from the "
        "others.",
    )
    kubernetes: Kubernetes = Field(default_factory=Kubernetes, description="What only the Kubernetes engine reads.")


class Role(RoleOptions, RoleName):
    """A role in the canonical form: equal tasks, numbered from 0."""

    @property
    def shm_bytes(self) -> int:
        """Shared memory in bytes; 0 is the engine's default."""
        return units.parse_memory(self.shm) if self.shm else 0

    @property
    def processes(self) -> int:
        """Processes per task: `processesPerReplica`, or one per device and at least one."""
        return self.processes_per_replica or max(1, self.resources.devices.count)
