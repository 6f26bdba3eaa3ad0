"""The engine's input and output for one task attempt: `TaskLaunch`, `RuntimePlan` and the events that engines send.

An engine gets everything about an attempt in one value, and knows nothing of jobs, queues or retries.
"""

from __future__ import annotations

from typing import Any

import msgspec

from corral.kernel.ids import AttemptId
from corral.model.inventory import Device
from corral.model.placement import DeviceShare
from corral.model.storages import Mount
from corral.spec.dialects.registry import is_for_registries, kept_secret


class PortRequest(msgspec.Struct, frozen=True):
    """A request for `count` free ports under one name; the engine chooses and reports them."""

    name: str
    count: int = 1
    start: int = 0
    """The first port number; 0 leaves the choice to the engine."""


class SecretDelivery(msgspec.Struct, frozen=True):
    """One decrypted secret for one attempt, as a variable or a file; never logged, never in arguments."""

    value: str
    env: str = ""
    file: str = ""

    def __repr__(self) -> str:
        return f"SecretDelivery(env={self.env!r}, file={self.file!r})"

    @property
    def kept(self) -> str:
        """The name of a secret that only the runtime reads, to complete scripts; "" for one that the task gets."""
        return kept_secret(self.file)


class ReportSource(msgspec.Struct, frozen=True):
    """Where a task's reports of its work are found, beside the calls of `corral.report`."""

    file: str = ""
    """A JSON file of the program's, absolute or in the working directory; "" is none."""
    pattern: str = ""
    """A regular expression whose named groups are the values in a line of the log; "" is none."""
    steps: int = 0
    """The steps of the whole work, unless the program says so; 0: not known."""
    tensorboard: tuple[str, ...] = ()
    """Folders with event files of TensorBoard, absolute or in the working directory, beside the working folder."""


class CacheFacts(msgspec.Struct, frozen=True):
    """What a task's cache of compiled code depends on, beside what the runtime sees of the node."""

    image: str = ""
    """The image as the job names it; "" is none."""
    devices: tuple[str, ...] = ()
    """The models of the task's devices, sorted, each once."""
    by_default: bool = False
    """Whether a queue or the server asks for the cache, and not the job: then it never adds the runtime to a container,
    because the runtime needs programs that the image may lack."""


class PreflightPlan(msgspec.Struct, frozen=True):
    """What a task checks before its command begins."""

    checks: tuple[str, ...]
    seconds: int
    """How long all checks may take."""
    port: str
    """The name of the port on which the task is measured."""
    required: bool = False
    """Whether the task fails when a check cannot be completed."""


class RuntimePlan(msgspec.Struct, frozen=True):
    """The runtime's steps around a task's command; absent for a task that needs none."""

    code_digest: str = ""
    """The blob to unpack as working directory before the command; "" for none."""
    code_target: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    """(uri, path) to stage in before the command."""
    outputs: tuple[tuple[str, str], ...] = ()
    """(path, uri) to stage out after the command."""
    barrier: bool = False
    barrier_timeout_seconds: int = 600
    resolve: tuple[str, ...] = ()
    """The peers whose addresses appear in the command and environment, such as `worker-0`; "*" is all."""
    checkpoint: str = ""
    """The checkpoint's file or folder, absolute or in the working directory; it changes when work is saved."""
    report: ReportSource | None = None
    """Where the program's reports of its work are found; None: nothing is watched."""
    profile: bool = False
    """Whether PyTorch in the task is told to ask for the traces that `corral profile` wants."""
    preflight: PreflightPlan | None = None
    """What is checked before the command begins; None: nothing."""
    compile_cache: CacheFacts | None = None
    """What the cache of compiled code depends on; None: the task has no such cache."""
    plug_in: str = ""
    """The module of the runtime plug-in that prepares the task (`corral.runtime.plug_in`)."""
    plug_in_steps: dict[str, Any] = {}
    error_block: bool = False
    """Whether a failure is also reported as an error block (`corral.runtime.error_block`), for programs that read it."""
    notebook: str = ""
    """The path of the task's Jupyter server, whose kernels show whether somebody works in it; "" is none."""
    keeps_files: bool = False
    """Whether files that are in the working folder already are kept when the code is unpacked."""
    exit_patterns: bool = True
    """Whether patterns of known faults are matched against the log's tail to explain a failure."""


class GangPart(msgspec.Struct, frozen=True):
    """The tasks of one role of a job that are placed on one node."""

    role: str
    node: str
    tasks: int


class TaskLaunch(msgspec.Struct, frozen=True):
    """Everything that an engine needs to run one attempt of one task."""

    attempt: AttemptId
    user: str
    node: str
    command: tuple[str, ...]
    env: dict[str, str]
    devices: tuple[Device, ...] = ()
    share: DeviceShare | None = None
    """The fraction of its one device that the task was given; None is the whole device."""
    beside: int = 0
    """The number of other tasks of its job placed on the same node; they probably start at the same time."""
    gang: tuple[GangPart, ...] = ()
    """Where all tasks of its job are placed now, itself and ended ones included; () when it is not known.

    A hint for engines that ask their machines for a whole job at once: tasks may come, go and move later.
    """
    working_dir: str = ""
    """The command's working directory; "" is the attempt's own work folder."""
    keeps_work: bool = False
    """Whether the task's next attempts find its work folder as it was, until its job is over; engines may ignore it."""
    image: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    """Names of the engine's pull secrets for the image, in addition to those of the engine's own settings."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    amounts: dict[str, int] = {}
    """The other amounts of `corral.kernel.amounts` that it reserves, such as `disk`, by name and in their units."""
    resources: dict[str, int] = {}
    """Other countable node resources by name; an engine that cannot assign them only reserves them."""
    rdma: bool = False
    """Whether it gets the node's RDMA network, if there is one."""
    ports: tuple[PortRequest, ...] = ()
    secrets: tuple[SecretDelivery, ...] = ()
    runtime: RuntimePlan | None = None
    storages: tuple[Mount, ...] = ()
    """The storages that it sees at their mount paths."""
    api_url: str = ""
    api_certificate: str = ""
    """The server's own certificate (PEM), trusted by the runtime for `api_url`; "" means the machine's trust store."""
    job_token: str = ""
    """The runtime's token for the server: scoped to this job, delivered as a file."""
    job_secret: str = ""
    """A secret shared by all tasks of the job and no one else; `$(secret:PURPOSE)` is derived from it."""
    pod_template: dict[str, Any] = {}
    """The template of the task's pod; an engine without pods refuses it."""
    force_after_seconds: int = -1
    """Seconds from a pod's stop until it is given up, even if it may still run; -1: never."""
    labels: dict[str, str] = {}
    """Labels of its instance, on engines that have labels; `annotations` likewise."""
    annotations: dict[str, str] = {}
    queue: str = ""
    """The queue of its job, for engines that have queues of their own."""
    required_level: str = ""
    """A level that its job or role requires tasks to share, for engines that may not keep to the node; "" is none."""

    def __repr__(self) -> str:
        return f"TaskLaunch({self.attempt})"

    @property
    def kept_secrets(self) -> dict[str, str]:
        """The secrets that only the runtime reads, by name."""
        return {secret.kept: secret.value for secret in self.secrets if secret.kept}

    @property
    def given_secrets(self) -> tuple[SecretDelivery, ...]:
        """The secrets that the task itself gets."""
        return tuple(secret for secret in self.secrets if not secret.kept and not is_for_registries(secret.file))

    @property
    def registries(self) -> str:
        """Credentials for the registries of the job's own images, as Docker's `config.json`; "" for none."""
        return next((secret.value for secret in self.secrets if is_for_registries(secret.file)), "")


class Started(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The engine saw the attempt's process start; other tasks can reach `host` and `ports`."""

    attempt: AttemptId
    at: float
    host: str = "127.0.0.1"
    ports: dict[str, tuple[int, ...]] = {}
    process: str = ""
    """The process's identity for the engine (boot id:pid:start time)."""


class Exited(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The attempt is over and nothing of it still runs; reported again until it is forgotten."""

    attempt: AttemptId
    at: float
    code: int
    """0–255 as in a shell (128 + signal), or a negative code of the exit table if the engine knows the cause."""
    signal: int = 0
    reason: str = ""
    """One sentence on what was seen (`shim killed`, `out of memory`, `machine restarted`, …)."""
    log_bytes: int = 0


class EngineLost(msgspec.Struct, frozen=True, tag=True):
    """The engine does not answer: its cells are unknown, neither free nor lost."""

    engine: str
    reason: str


class InventoryChanged(msgspec.Struct, frozen=True, tag=True):
    """The engine's machines have changed; read the inventory again."""

    engine: str


class Noted(msgspec.Struct, frozen=True, tag=True):
    """A message about an attempt from the underlying system, in its own words; for people only, it changes no state."""

    attempt: AttemptId
    reason: str
    """One word, such as `FailedMount`."""
    message: str
    times: int = 1


EngineEvent = Started | Exited | EngineLost | InventoryChanged | Noted
