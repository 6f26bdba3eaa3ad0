"""Small parts of jobs and roles that the short and the canonical form share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from corral.kernel import units
from corral.kernel.amounts import MAX_COUNT
from corral.spec.amount_fields import with_amounts
from corral.spec.base import (
    Cpu,
    Memory,
    Name,
    OptionalEnvName,
    ResourceName,
    SpecModel,
    Text,
    Uri,
    refusal,
)
from corral.spec.errors import describe, did_you_mean
from corral.spec.placement_rules import Devices
from corral.spec.retry_rules import ALWAYS, MOST_RETRIES

SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGALRM")
"""Signals that a job may choose as its request for a checkpoint."""
MAX_REPLICAS: Final = 10_000
"""Maximum tasks of one job, all roles together."""


def _inside(value: str) -> str:
    if ".." in value.split("/"):
        raise refusal(f'{describe(value)} leaves its folder; write the path without ".."')
    return value


def _no_password(value: str) -> str:
    authority = value.split("://", 1)[-1].split("/", 1)[0]
    if "://" in value and "@" in authority and ":" in authority.rsplit("@", 1)[0]:
        raise refusal("a URI may not hold a password; put it in a secret")
    return value


class _NamedAmounts(SpecModel):
    """The amounts of a replica that code names; the table of amounts has the others."""

    cpu: Cpu = Field(
        "1", min_length=1, description='Processors: "2", "0.5" or "500m"; "0" reserves and limits nothing.'
    )
    memory: Memory = Field("0", min_length=1, description='Memory: "512Mi" or "2Gi"; "0" reserves and limits nothing.')

    @property
    def cpu_millis(self) -> int:
        """Thousandths of a processor."""
        return units.parse_cpu(self.cpu)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory; 0 is unlimited."""
        return units.parse_memory(self.memory)


if TYPE_CHECKING:
    _Amounts = _NamedAmounts
else:
    _Amounts = with_amounts(_NamedAmounts, "of_task")


class Resources(_Amounts):
    """The resources of one replica."""

    other: Annotated[dict[ResourceName, Annotated[int, Field(ge=0, le=MAX_COUNT)]], Field(max_length=100)] = Field(
        default_factory=dict, description="Any other resource that nodes count, by its name, such as {licences: 2}."
    )
    devices: Devices = Field(default_factory=Devices, description="The accelerators of one replica.")


class RetryPolicy(SpecModel):
    """When a failed or ended attempt is retried (FrameworkController's rules)."""

    fancy: bool = Field(True, description="Transient failures are retried without being counted, permanent ones never.")
    max_retries: int = Field(
        0,
        ge=ALWAYS,
        le=MOST_RETRIES,
        description="Counted retries after failures; -1 without end, -2 even after success.",
    )


class Completion(SpecModel):
    """How many ended replicas of a role end the whole job."""

    min_failed: int = Field(
        1, ge=-1, le=MAX_REPLICAS, description="The number of failed replicas that fails the job; below 1 none does."
    )
    min_succeeded: int = Field(
        -1,
        ge=-1,
        le=MAX_REPLICAS,
        description="The number of succeeded replicas that ends the job; below 1 all must.",
    )


class Secret(SpecModel):
    """A stored secret given to each replica as a variable or a file, never in arguments."""

    name: Text = Field(min_length=1, max_length=253, description="The secret's name in Corral's store.")
    env: OptionalEnvName = Field("", description="The variable that holds it.")
    file: Text = Field("", max_length=1024, description="The file that holds it, below the secrets folder.")

    @field_validator("file")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        return _inside(value)


class Port(SpecModel):
    """Free ports of the node that Corral picks and tells to the replica and its peers."""

    name: Name = Field(description="What the ports are called.")
    count: int = Field(1, ge=1, le=1000, description="How many.")
    start: int = Field(
        0,
        ge=0,
        le=65_535,
        description="The number that they begin at; 0: whichever are free. A taken one is waited for.",
    )


class Code(SpecModel):
    """The program's files, unpacked before the command starts."""

    uri: Text = Field("", max_length=4096, description='A folder on the submitting machine, or a blob; "" is none.')
    target: Text = Field("", max_length=1024, description='Where it is unpacked; "" is the working directory.')

    @field_validator("target")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        return _inside(value)


class Input(SpecModel):
    """Data fetched before the command starts."""

    uri: Uri = Field(description="Where the data is, such as file:///data/digits.")
    path: Text = Field(min_length=1, max_length=1024, description="Where the replica finds it.")

    @field_validator("uri")
    @classmethod
    def _keeps_no_password(cls, value: str) -> str:
        return _no_password(value)

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        return _inside(value)


class Output(SpecModel):
    """Data kept after the command has ended."""

    path: Text = Field(min_length=1, max_length=1024, description="Where the replica leaves it.")
    uri: Uri = Field(description="Where it is kept, such as file:///data/models.")

    @field_validator("uri")
    @classmethod
    def _keeps_no_password(cls, value: str) -> str:
        return _no_password(value)

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        return _inside(value)


def _signal(value: Any) -> Any:
    if not isinstance(value, str) or not value:
        return value
    name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
    if name not in SIGNALS:
        raise refusal(f"{describe(value)} is not a signal a job can be sent{did_you_mean(name, SIGNALS)}")
    return name


class Checkpoint(SpecModel):
    """How a replica is asked to end, and how Corral sees that it has saved its work."""

    signal: Annotated[str, BeforeValidator(_signal)] = Field(
        "", description='The signal that asks for a checkpoint, such as SIGUSR1; "" sends only SIGTERM.'
    )
    grace_seconds: int = Field(
        -1,
        ge=-1,
        le=86_400,
        description="Seconds between being asked to end and being killed; -1: as the server's setting `grace_seconds` says "
        "(30 unless it was changed).",
    )
    path: Text = Field(
        "",
        max_length=1024,
        description="A file or folder that changes with every checkpoint (within the working directory unless absolute): "
        'work saved is not lost when the job yields, and who loses least yields first. "" is none.',
    )

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        return value if value.startswith("/") or not value else _inside(value)


REPORTED: Final = (
    "step",
    "steps",
    "progress",
    "throughput",
    "loss",
    "gradient_noise",
    "batch_size",
    "active",
    "waited",
)
"""The values that a program may report, which are the names of a pattern's groups."""


def _report_pattern(value: str) -> str:
    try:
        found = set(re.compile(value).groupindex) if value else set()
    except (re.error, RecursionError, OverflowError) as error:
        raise refusal(f"{describe(value)} is not a regular expression: {error}") from error
    if unknown := sorted(found.difference(REPORTED)):
        raise refusal(f'the group "{unknown[0]}" names no value that is reported{did_you_mean(unknown[0], REPORTED)}')
    if value and not found:
        raise refusal(f"{describe(value)} has no named group, such as (?P<step>[0-9]+)")
    return value


_REMOTE_EVENTS: Final = {
    "s3://": "s3://bucket/runs",
    "hdfs://": "hdfs://host:8020/runs",
    "webhdfs://": "webhdfs://host:9870/runs",
    "swebhdfs://": "swebhdfs://host:9871/runs",
}
"""Beginnings of URIs, each with an example."""


def _events_folder(value: str) -> str:
    if "://" in value:
        scheme, separator, rest = value.partition("://")
        example = _REMOTE_EVENTS.get(scheme + separator)
        if example is None:
            raise refusal(f"{describe(value)} is neither a path nor a URI that begins with {', '.join(_REMOTE_EVENTS)}")
        if not rest.partition("/")[0].rpartition("@")[2].partition(":")[0]:
            what = "bucket" if scheme == "s3" else "host"
            raise refusal(f"{describe(value)} has no {what}; write it as in {example}")
        return _no_password(value)
    return value if value.startswith("/") else _inside(value)


class Report(SpecModel):
    """How the program tells how far it is: by `corral.report`, by a file, or by lines of its log."""

    enabled: bool = Field(
        False, description="Whether tasks can `import corral` and call `corral.report(step=…, throughput=…, loss=…)`."
    )
    file: Text = Field(
        "",
        max_length=1024,
        description="A JSON file that the program writes instead, with the values by their names, within the working "
        'directory unless absolute. "" is none.',
    )
    pattern: Annotated[Text, AfterValidator(_report_pattern)] = Field(
        "",
        max_length=500,
        description="A regular expression that finds the values in a line of the log of the first task of each role; its "
        'groups bear their names, such as `step (?P<step>[0-9]+)`. "" is none.',
    )
    steps: int = Field(
        0, ge=0, le=10**15, description="How many steps the work has, unless the program says so; 0: not known."
    )
    tensorboard: list[Annotated[Text, Field(min_length=1, max_length=1024), AfterValidator(_events_folder)]] = Field(
        [],
        max_length=8,
        description="Folders whose event files of TensorBoard become curves of the job, beside the working folder: "
        "absolute, such as one in a mounted storage, within the working directory, or a URI of S3 or HDFS.",
    )

    @field_validator("file")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        return value if value.startswith("/") or not value else _inside(value)

    @property
    def wanted(self) -> bool:
        """Whether anything of the tasks is watched."""
        return self.enabled or bool(self.file or self.pattern or self.tensorboard)


class Barrier(SpecModel):
    """Whether replicas wait at the start until all have an address."""

    enabled: bool = Field(False, description="Commands start only when every replica has an address.")
    timeout_seconds: int = Field(
        600, ge=1, le=86_400, description="The longest wait; then the attempt fails as transient."
    )


class Dependency(SpecModel):
    """Another job that must end first."""

    job: Text = Field(min_length=1, max_length=253, description="The other job's name or id.")
    condition: Literal["succeeded", "ended"] = Field(
        "succeeded", description="Start when it has succeeded, or when it has ended in any way."
    )


class Array(SpecModel):
    """One document run many times, each with its own index."""

    size: int = Field(0, ge=0, le=10_000, description="How many jobs, with indexes from 0; 0 is no array.")
    max_parallel: int = Field(0, ge=0, le=10_000, description="How many may run at once; 0 is no limit.")


def _plain(value: Any) -> Any:
    """Convert WrittenInt and WrittenFloat back to plain numbers; drop null fields.

    Kubernetes treats a null field as not set.
    """
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value) if isinstance(value, float) else value


class Kubernetes(SpecModel):
    """Options that only the Kubernetes engine reads."""

    pod_template: Annotated[dict[str, Any], BeforeValidator(_plain)] = Field(
        default_factory=dict,
        description="A pod template the role's pods are made from; Corral's own fields win.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    force_after_seconds: int = Field(
        -1,
        ge=-1,
        le=10**9,
        description="Seconds after which a pod that was told to end counts as ended, though it may still run; -1: never.",
    )


class Notifications(SpecModel):
    """What the job's owner is told of it; without any of it the preferences of the owner's channels apply."""

    events: list[
        Literal["started", "succeeded", "failed", "stopped", "retried", "preempted", "idle", "hung", "ended"]
    ] = Field(
        default_factory=list,
        max_length=20,
        description="What is told; `ended` is succeeded, failed or stopped.",
    )
    waiting_seconds: int = Field(
        0, ge=0, le=366 * 86_400, description="Tell it when the job has waited this long; 0 is never."
    )
    channels: list[Annotated[Text, Field(min_length=1, max_length=63)]] = Field(
        default_factory=list, max_length=20, description="The owner's channels that are told; none: all of them."
    )
    quiet: bool = Field(False, description="Tell nothing at all of this job.")
