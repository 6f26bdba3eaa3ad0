"""Why: an engine is told everything about one task attempt in one value, and nothing about jobs, queues or retries."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

import msgspec

from corral.kernel.ids import AttemptId
from corral.model.inventory import Device
from corral.model.placement import DeviceShare
from corral.model.storages import Mount

KEPT: Final = ".openpai/secrets/"
"""Files in this folder are not written: their content is for the runtime alone."""
REGISTRIES: Final = ".openpai/registries"
"""What is delivered as this file is for whoever pulls the image (Docker's `config.json`); the task has no such file."""


class PortRequest(msgspec.Struct, frozen=True):
    """So many free ports under one name; the engine chooses and reports them."""

    name: str
    count: int = 1
    start: int = 0
    """The number that they begin at; 0 leaves it to the engine."""


class SecretDelivery(msgspec.Struct, frozen=True):
    """One opened secret for one attempt: as a variable or a file; never logged, never in arguments."""

    value: str
    env: str = ""
    file: str = ""

    def __repr__(self) -> str:
        return f"SecretDelivery(env={self.env!r}, file={self.file!r})"

    @property
    def kept(self) -> str:
        """By what name the runtime keeps it to itself, to complete scripts with; "" for one that the task is given."""
        return unquote(self.file.removeprefix(KEPT)) if self.file.startswith(KEPT) else ""


class RuntimePlan(msgspec.Struct, frozen=True):
    """What the runtime inside the task has to do around the command; absent for a task that needs none of it."""

    code_digest: str = ""
    """The blob to unpack as working directory before the command, "" for none."""
    code_target: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    """(uri, path) to stage in before the command."""
    outputs: tuple[tuple[str, str], ...] = ()
    """(path, uri) to stage out after the command."""
    barrier: bool = False
    barrier_timeout_seconds: int = 600
    resolve: tuple[str, ...] = ()
    """The peers whose addresses the command and environment name, `worker-0` …; "*" is all."""
    checkpoint: str = ""
    """The file or folder, within the working directory unless absolute, that changes when the job has saved its work."""
    openpai: dict[str, Any] = {}
    """What OpenPAI's runtime does for the command; empty for jobs that are not of its language."""
    exit_patterns: bool = True
    """Whether the tail of the log is matched against OpenPAI's patterns to explain a failure."""


class TaskLaunch(msgspec.Struct, frozen=True):
    """Everything an engine needs to run one attempt of one task."""

    attempt: AttemptId
    user: str
    node: str
    command: tuple[str, ...]
    env: dict[str, str]
    devices: tuple[Device, ...] = ()
    share: DeviceShare | None = None
    """The part of its one device that the task was given; None is the whole."""
    beside: int = 0
    """How many more tasks of its job have their place on the same node: they are likely to begin with it."""
    working_dir: str = ""
    """Where the command starts; "" is the attempt's own work folder."""
    image: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    """What opens the image's registry, by names that the engine knows; those of the engine's own settings besides."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    """Reserved on the node's disk."""
    shm_bytes: int = 0
    resources: dict[str, int] = {}
    """Other amounts that the node counts, by name; an engine that cannot give them by name takes them as reserved."""
    rdma: bool = False
    """Whether it is to be given the node's network with RDMA, where there is one."""
    ports: tuple[PortRequest, ...] = ()
    secrets: tuple[SecretDelivery, ...] = ()
    runtime: RuntimePlan | None = None
    storages: tuple[Mount, ...] = ()
    """What it finds at paths of their own."""
    api_url: str = ""
    api_certificate: str = ""
    """The server's own certificate (PEM), which the runtime trusts at that address; "" is what the machine trusts."""
    job_token: str = ""
    """What the runtime shows to the server: scoped to this job, delivered by file."""
    job_secret: str = ""
    """The same for every task of the job and known to nobody else: `$(secret:PURPOSE)` is derived from it."""
    pod_template: dict[str, Any] = {}
    """What the task's pod is made from; an engine that makes no pods refuses it."""
    force_after_seconds: int = -1
    """So long after its pod was told to end it is given up, though it may still run; -1: never."""
    labels: dict[str, str] = {}
    """What its instance is known by where the engine has labels; `annotations` likewise."""
    annotations: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"TaskLaunch({self.attempt})"

    @property
    def kept_secrets(self) -> dict[str, str]:
        """What only the runtime is told, by name."""
        return {secret.kept: secret.value for secret in self.secrets if secret.kept}

    @property
    def given_secrets(self) -> tuple[SecretDelivery, ...]:
        """What the task itself is given."""
        return tuple(secret for secret in self.secrets if not secret.kept and secret.file != REGISTRIES)

    @property
    def registries(self) -> str:
        """What opens the registries of the job's own images, as Docker's `config.json`; "" for none."""
        return next((secret.value for secret in self.secrets if secret.file == REGISTRIES), "")


class Started(msgspec.Struct, frozen=True, tag=True):
    """The engine saw the attempt's process begin; `host` and `ports` are reachable from the other tasks."""

    attempt: AttemptId
    at: float
    host: str = "127.0.0.1"
    ports: dict[str, tuple[int, ...]] = {}
    process: str = ""
    """How the engine knows it again (boot id:pid:start time)."""


class Exited(msgspec.Struct, frozen=True, tag=True):
    """The attempt is over and nothing of it is left running; reported until forgotten."""

    attempt: AttemptId
    at: float
    code: int
    """0–255 as a shell gives it (128 + signal), or a negative code of OpenPAI's table when the engine knows better."""
    signal: int = 0
    reason: str = ""
    """One sentence: what was seen (`shim killed`, `out of memory`, `machine restarted`, …)."""
    log_bytes: int = 0


class EngineLost(msgspec.Struct, frozen=True, tag=True):
    """The engine does not answer: its cells are unknown, neither free nor lost."""

    engine: str
    reason: str


class InventoryChanged(msgspec.Struct, frozen=True, tag=True):
    """The machines are not what they were; ask for the inventory again."""

    engine: str


class Noted(msgspec.Struct, frozen=True, tag=True):
    """What the system underneath says of an attempt, in its own words; for people, it changes nothing."""

    attempt: AttemptId
    reason: str
    """One word, such as `FailedMount`."""
    message: str
    times: int = 1


EngineEvent = Started | Exited | EngineLost | InventoryChanged | Noted
