"""Render the launch of a task from its job and its gang's placement.

So a stored start command needs no more than the attempt's id.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from corral.control.core.world import Job, World
from corral.frameworks import Gang, framework
from corral.frameworks.base import TaskCommand
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.model.compile_caches import CacheTerms, cache_terms
from corral.model.inventory import Device, Node
from corral.model.launch import (
    CacheFacts,
    PortRequest,
    PreflightPlan,
    ReportSource,
    RuntimePlan,
    SecretDelivery,
    TaskLaunch,
)
from corral.model.runs import TaskRun
from corral.model.storages import Mount, mount_of
from corral.spec.amount_fields import counted_amounts
from corral.spec.job import UnifiedJob
from corral.spec.job_parts import Report
from corral.spec.preflight import PORT as PREFLIGHT_PORT
from corral.spec.preflight import Preflight
from corral.spec.role import Role
from corral.spec.storage import StorageDocument
from corral.storage.code_archives import BLOB_SCHEME


@dataclass(frozen=True)
class LaunchContext:
    """The server's part of a launch: its address, tokens, secrets, nodes and storages."""

    api_url: str
    job_token: Callable[[JobId], str]
    open_secrets: Callable[[Job], Awaitable[Mapping[str, str]]]
    """Returns the decrypted secrets of a job by name; called only when a role names some."""
    nodes: Callable[[str], Node | None]
    ready_user: Callable[[str], Awaitable[None]]
    """Makes sure that a user's tasks have an assigned system account."""
    job_secret: Callable[[JobId], str]
    """The secret from which a job's tasks and the server derive `$(secret:PURPOSE)`."""
    queue_secrets: Callable[[str], tuple[str, ...]] = lambda queue: ()
    """The names of the pull secrets for a queue's images."""
    cache_terms_of: Callable[[str, str], CacheTerms] = lambda own, queue: cache_terms(own, None, "none")
    """Returns who shares what a job compiles, given its own word and its queue."""
    storage: Callable[[str], StorageDocument | None] = lambda name: None
    """Returns the current document of a storage."""
    api_certificate: str = ""
    """The server certificate of `api_url`, for tasks that may not trust its issuer; "" where they do."""


class PlaceGone(Exception):
    """The node or a device that the scheduler assigned to a task is gone; the message says which."""


async def render(world: World, attempt: AttemptId, context: LaunchContext) -> TaskLaunch | None:
    """Everything the engine needs to run `attempt`; None when it is no longer the task's current attempt.

    Raises PlaceGone when its node or a device has vanished since it was planned.
    """
    key = parse_attempt_id(attempt)
    job = world.jobs.get(key.job)
    task = job.tasks.get(key.task) if job else None
    if job is None or task is None or task.placement is None or job.run.attempt_of(task) != attempt:
        return None
    gang = world.gangs.of(job)
    command = framework(gang.job.spec.job_type).render(gang, task.placement, key.task_attempt)
    await context.ready_user(job.user)
    values = await context.open_secrets(job) if gang.role(task.placement).secrets else {}
    return _launch(job, task, attempt, gang, command, values, context)


def _launch(
    job: Job,
    task: TaskRun,
    attempt: AttemptId,
    gang: Gang,
    command: TaskCommand,
    values: Mapping[str, str],
    context: LaunchContext,
) -> TaskLaunch:
    assert task.placement is not None
    role = gang.role(task.placement)
    mounts = _mounts(gang.job, job.account or job.user, context)
    devices = _devices(task.placement.node, context.nodes(task.placement.node), task.placement.devices)
    runtime = _runtime(
        gang.job,
        role,
        command,
        first=task.index == 0,
        moved=any(mount.is_moved for mount in mounts),
        cache=_cache_facts(context.cache_terms_of(gang.job.spec.compile_cache.share, job.terms.queue), role, devices),
    )
    secrets = tuple(
        SecretDelivery(values[secret.name], secret.env, secret.file) for secret in role.secrets if secret.name in values
    )
    return TaskLaunch(
        attempt=attempt,
        user=job.user,
        node=task.placement.node,
        command=command.command,
        env={**role.env, **command.env},
        devices=devices,
        share=task.placement.share,
        beside=gang.on_node[task.placement.node] - 1,
        gang=gang.parts,
        working_dir=role.working_dir,
        keeps_work=bool(command.notebook),
        image=role.image,
        image_pull_secrets=tuple(
            dict.fromkeys((*role.image_pull_secrets, *context.queue_secrets(gang.job.spec.queue)))
        ),
        cpu_millis=role.resources.cpu_millis,
        memory_bytes=role.resources.memory_bytes,
        amounts=counted_amounts(role.resources),
        resources=dict(role.resources.other),
        rdma=gang.job.spec.network.rdma != "none",
        shm_bytes=role.shm_bytes,
        ports=(*(PortRequest(port.name, port.count, port.start) for port in role.ports), *command.ports),
        secrets=secrets,
        runtime=runtime,
        storages=mounts,
        api_url=context.api_url,
        api_certificate=context.api_certificate if runtime else "",
        job_token=context.job_token(job.id) if runtime else "",
        job_secret=context.job_secret(job.id) if runtime else "",
        pod_template=command.pod_template,
        force_after_seconds=role.kubernetes.force_after_seconds,
        labels=command.labels,
        annotations=command.annotations,
        queue=gang.job.spec.queue,
        required_level=_required_level(gang.job, role),
    )


def _required_level(document: UnifiedJob, role: Role) -> str:
    """A level that the job or role requires of its place; "" when it requires none."""
    whole, own = document.spec.topology, role.topology
    levels = (whole.required, own.required, own.group.required, whole.group.required)
    return next((level for level in levels if level), "")


def _mounts(document: UnifiedJob, account: str, context: LaunchContext) -> tuple[Mount, ...]:
    """The storages that the job's tasks mount.

    Raises NotFound for one whose document was deleted meanwhile.
    """
    found = []
    for use in document.spec.storages:
        storage = context.storage(use.name)
        if storage is None:
            raise NotFound("storage-not-found", f"The storage {use.name} is not there any more.")
        found.append(mount_of(storage, use, account))
    return tuple(found)


def _runtime(
    document: UnifiedJob, role: Role, command: TaskCommand, *, first: bool, moved: bool, cache: CacheFacts | None
) -> RuntimePlan | None:
    """The runtime's plan; None when the task needs only the bare shim. `first` is whether it is its role's first task."""
    spec = document.spec
    digest = spec.code.uri.removeprefix(BLOB_SCHEME) if spec.code.uri.startswith(BLOB_SCHEME) else ""
    barrier = spec.barrier.enabled or command.barrier
    source = _report_source(spec.report, first=first)
    checks = _preflight(spec.preflight)
    around = (
        digest,
        spec.inputs,
        spec.outputs,
        barrier,
        spec.checkpoint.path,
        source,
        spec.profile,
        moved,
        checks,
    )
    needed = any(around) or command.runtime or command.notebook or command.resolve or command.plug_in or role.secrets
    adds = cache is not None and not (cache.by_default and role.image)
    if not needed and not adds:
        return None
    return RuntimePlan(
        code_digest=digest,
        code_target=spec.code.target,
        inputs=tuple((entry.uri, entry.path) for entry in spec.inputs),
        outputs=tuple((entry.path, entry.uri) for entry in spec.outputs),
        barrier=barrier,
        barrier_timeout_seconds=spec.barrier.timeout_seconds,
        resolve=command.resolve,
        checkpoint=spec.checkpoint.path,
        report=source,
        profile=spec.profile,
        preflight=checks,
        compile_cache=cache,
        plug_in=command.plug_in,
        plug_in_steps=command.plug_in_steps,
        notebook=command.notebook,
        keeps_files=bool(command.notebook),
        error_block=command.error_block,
    )


def _preflight(asked: Preflight) -> PreflightPlan | None:
    if not asked.checks:
        return None
    return PreflightPlan(tuple(asked.checks), asked.timeout_seconds, PREFLIGHT_PORT, asked.required)


def _cache_facts(terms: CacheTerms, role: Role, devices: tuple[Device, ...]) -> CacheFacts | None:
    """What the task's cache of compiled code depends on; None when it has none."""
    if terms.share == "none":
        return None
    models = tuple(sorted({device.model or device.kind for device in devices}))
    return CacheFacts(role.image, models, by_default=terms.source != "job")


def _report_source(report: Report, *, first: bool) -> ReportSource | None:
    """Where reports are found; a pattern is searched in the log of the first task of each role alone."""
    pattern = report.pattern if first else ""
    watched = report.enabled or report.file or pattern or report.tensorboard
    return ReportSource(report.file, pattern, report.steps, tuple(report.tensorboard)) if watched else None


def _devices(name: str, node: Node | None, indexes: tuple[int, ...]) -> tuple[Device, ...]:
    if node is None:
        raise PlaceGone(f"the node {name} is gone")
    by_index = {device.index: device for device in node.devices}
    if gone := [index for index in indexes if index not in by_index]:
        which = f"device {gone[0]}" if len(gone) == 1 else f"devices {', '.join(map(str, gone))}"
        raise PlaceGone(f"{which} of the node {name} {'is' if len(gone) == 1 else 'are'} gone")
    return tuple(by_index[index] for index in indexes)
