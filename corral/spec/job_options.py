"""Fields of a job that the short and the canonical form share."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from corral.spec.base import ENV_NAME, QueueName, SpecModel, Text
from corral.spec.compile_cache import CompileCache
from corral.spec.job_parts import (
    Array,
    Barrier,
    Checkpoint,
    Code,
    Dependency,
    Input,
    Notifications,
    Output,
    Report,
    RetryPolicy,
)
from corral.spec.placement import pinned_cell
from corral.spec.placement.network import Network
from corral.spec.placement.sharing import Sharing
from corral.spec.placement.topology import Topology
from corral.spec.placement_rules import NodeRules
from corral.spec.preflight import Preflight
from corral.spec.priority import check_priority
from corral.spec.scaling import Scaling
from corral.spec.storage import StorageUse, distinct
from corral.spec.yaml_scalars import written

STANDARD_TABLE: Final = "standard"
"""The name of the exit table of `corral.model.exits` in documents."""
_FORMER_TABLE: Final = "openpai"
"""The former name of the standard table, which stored documents have."""


def _table(name: str) -> str:
    """The present name of an exit table."""
    return STANDARD_TABLE if name == _FORMER_TABLE else name


def _parameter(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else written(value)


ParameterName = Annotated[str, Field(min_length=1, max_length=100, pattern=ENV_NAME)]
Parameter = Annotated[str, Field(max_length=65_536), BeforeValidator(_parameter)]
Parameters = Annotated[dict[ParameterName, Parameter], Field(max_length=1000)]
Tag = Annotated[Text, Field(min_length=1, max_length=100)]
Priority = Annotated[str, BeforeValidator(check_priority)]
Model = Annotated[Text, Field(min_length=1, max_length=63)]
Speeds = Annotated[dict[Model, Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]], Field(max_length=100)]


class Standing(SpecModel):
    """How the scheduler ranks and places a job: queue, priority, preemption, topology, gang."""

    queue: QueueName = Field("default", description="The queue (virtual cluster) whose share it uses.")
    priority: Priority = Field(
        "", max_length=20, description='crit (120), prod (100), test (10), oppo (-1), or any integer; "" is test.'
    )
    preemptible: bool = Field(
        True,
        description="Whether others may have it yield under their queues' rules; in cells that others own it always may.",
    )
    pinned_cell: Text = pinned_cell.OF_JOB
    lazy_preemption: bool = Field(
        False,
        description="Under the preset hived: whether it runs on as a guest, instead of being ended, when a job of higher "
        "priority of the same virtual cluster takes its cells.",
    )
    topology: Topology = Field(
        default_factory=Topology, description="How close together the whole job is, all roles counted together."
    )
    speeds: Speeds = Field(
        default_factory=dict,
        description="How fast it works on each model of device, in work per second of any unit; 0: it cannot run on that "
        "model. Policies for several models read it.",
    )
    scaling: Scaling = Field(
        default_factory=list,
        description="How fast it works at several sizes, as measured before. A policy that sizes elastic jobs by their "
        "goodput or as Themis does reads it until the job reports its own throughput there.",
    )
    gang: bool = Field(
        True,
        description="Whether its tasks get their places all at once; without, each starts as soon as there is one for it.",
    )


class JobOptions(SpecModel):
    """Data, retries, checkpoints, placement rules and dependencies of a job."""

    code: Code = Field(default_factory=Code, description="The program's files.")
    inputs: list[Input] = Field(default_factory=list, max_length=100, description="Data fetched before the start.")
    outputs: list[Output] = Field(default_factory=list, max_length=100, description="Data kept after the end.")
    storages: Annotated[list[StorageUse], Field(max_length=100), AfterValidator(distinct)] = Field(
        default_factory=list, description="Storages that the tasks have, each at a path of its own."
    )
    nodes: NodeRules = Field(default_factory=NodeRules, description="Which nodes the job may be on.")
    sharing: Sharing = Field(default_factory=Sharing, description="With which jobs the job shares its nodes.")
    network: Network = Field(default_factory=Network, description="What is needed of the network.")
    retry_policy: RetryPolicy = Field(default_factory=RetryPolicy, description="When the whole job is tried again.")
    checkpoint: Checkpoint = Field(default_factory=Checkpoint, description="How tasks are asked to end.")
    report: Report = Field(default_factory=Report, description="How the program tells how far it is.")
    profile: bool = Field(
        False, description="Whether `corral profile --what torch` can have traces of the tasks' PyTorch."
    )
    compile_cache: CompileCache = Field(
        default_factory=CompileCache, description="Whether what its tasks compile is kept for later tasks."
    )
    preflight: Preflight = Field(
        default_factory=Preflight, description="What each task checks before its command begins."
    )
    notifications: Notifications = Field(
        default_factory=Notifications, description="What the owner is told of it, on the owner's channels."
    )
    bad_hardware: Literal["auto", "replace", "keep"] = Field(
        "auto",
        description="When a node is lost or a device turns unhealthy under the job: replace moves it elsewhere, keep lets "
        "it run on; auto moves it off a lost node and keeps it on an unhealthy device.",
    )
    exit_table: Annotated[
        Literal["standard", "openpai", "frameworkcontroller", "frameworklauncher"], AfterValidator(_table)
    ] = Field(
        STANDARD_TABLE,
        description="The table of exit codes: which failures are transient, and which are permanent. `openpai` is the "
        "former name of `standard`, and deprecated.",
    )
    barrier: Barrier = Field(default_factory=Barrier, description="Whether tasks wait for each other at the start.")
    tags: list[Tag] = Field(default_factory=list, max_length=100, description="Words to find the job by.")
    parameters: Parameters = Field(
        default_factory=dict, description="Values that `<% $parameters.NAME %>` stands for anywhere in the document."
    )
    depends_on: list[Dependency] = Field(
        default_factory=list, max_length=100, description="Jobs that must have ended before this one starts."
    )
    array: Array = Field(default_factory=Array, description="Run this document many times.")
