"""The base class of frameworks, which turn a job and its placement into the start of each task.

A framework subclasses `Framework` and overrides its differences: `env`, `command`, `ports`, `check`. Everything is a
pure function of its arguments; addresses are left as references (`corral.frameworks.references`) for the runtime.

Ranks follow `Placement.tasks`, which is in topology order, rotated so that the leading task (the lowest index of the
first role) is rank 0. Ring neighbours stay neighbours, and the rendezvous is in a task that `scale` never removes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corral.frameworks.references import expand_lists, needs_runtime, references
from corral.kernel.ids import JobId, TaskKey
from corral.model.launch import GangPart, PortRequest
from corral.model.placement import Placement, TaskPlacement, in_rank_order
from corral.spec.errors import Path, did_you_mean
from corral.spec.preflight import PORT as PREFLIGHT_PORT

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob
    from corral.spec.role import Role

Finding = tuple[Path, str]
"""The path of the faulty field in the canonical document, and the problem."""

_MILLIS: Final = 1000


class TaskCommand(msgspec.Struct, frozen=True):
    """How one task is started."""

    command: tuple[str, ...]
    """The program and its arguments."""
    env: dict[str, str]
    """The role's own variables and the framework's; the role's win, except over names that begin with CORRAL_."""
    ports: tuple[PortRequest, ...] = ()
    """Ports of the framework in addition to the role's own."""
    resolve: tuple[str, ...] = ()
    """The tasks (`worker-0` …) whose addresses the runtime must know before the command starts."""
    runtime: bool = False
    """Whether the command or its environment has references, so that the runtime must start it."""
    barrier: bool = False
    """Whether the command may start only when every task of the gang has an address."""
    plug_in: str = ""
    """The module of the runtime plug-in that prepares the task (`corral.runtime.plug_in`)."""
    plug_in_steps: dict[str, Any] = {}
    """Instructions for the plug-in, as plain data."""
    notebook: str = ""
    """The path of a Jupyter server in the task, whose work folder is kept for later attempts; "" is none."""
    error_block: bool = False
    """Whether a failure is also reported as an error block (`corral.runtime.error_block`), for programs that read it."""
    pod_template: dict[str, Any] = {}
    """The role's pod template, for an engine that makes pods."""
    labels: dict[str, str] = {}
    """Labels of the instance, on engines that have labels; `annotations` likewise."""
    annotations: dict[str, str] = {}


class Gang(msgspec.Struct, frozen=True, dict=True):
    """One attempt of one job with the placements of all its tasks: all inputs of a task's start."""

    job_id: JobId
    name: str
    attempt: int
    job: UnifiedJob
    placement: Placement

    @property
    def elastic(self) -> bool:
        """Whether tasks may join and leave while the job runs."""
        return self.job.is_elastic

    @cached_property
    def tasks(self) -> tuple[TaskPlacement, ...]:
        """All tasks in rank order: topology order, rotated so that the leading task comes first."""
        return in_rank_order(self.placement.tasks, self.job.spec.roles[0].name)

    @cached_property
    def ranks(self) -> dict[TaskKey, int]:
        """The rank of each task, 0 … len(tasks) - 1."""
        return {task.key: rank for rank, task in enumerate(self.tasks)}

    @property
    def leader(self) -> TaskKey:
        """The task of rank 0: the lowest index of the first role; an elastic job keeps it to the end."""
        return self.tasks[0].key

    @cached_property
    def on_node(self) -> Counter[str]:
        """The number of tasks placed on each node."""
        return Counter(task.node for task in self.placement.tasks)

    @cached_property
    def parts(self) -> tuple[GangPart, ...]:
        """The number of tasks by role and node, in topology order."""
        counted = Counter((task.role, task.node) for task in self.placement.tasks)
        return tuple(GangPart(role, node, tasks) for (role, node), tasks in counted.items())

    @cached_property
    def _by_role(self) -> dict[str, tuple[TaskPlacement, ...]]:
        grouped: dict[str, list[TaskPlacement]] = {role.name: [] for role in self.job.spec.roles}
        for task in self.placement.tasks:
            grouped[task.role].append(task)
        return {role: in_rank_order(tasks, role) for role, tasks in grouped.items()}

    @cached_property
    def role_ranks(self) -> dict[TaskKey, int]:
        """The rank of each task among the tasks of its role."""
        return {task.key: place for tasks in self._by_role.values() for place, task in enumerate(tasks)}

    def members(self, role: str) -> tuple[TaskKey, ...]:
        """The tasks of `role` in rank order, its lowest index first; empty for an unknown role."""
        return tuple(task.key for task in self._by_role.get(role, ()))

    def role(self, task: TaskPlacement) -> Role:
        """The role of `task`."""
        return self.job.role(task.role)

    @cached_property
    def first_process(self) -> dict[TaskKey, int]:
        """The rank of each task's first process, if every task runs its role's number of processes."""
        counted = {role.name: role.processes for role in self.job.spec.roles}
        first, total = {}, 0
        for task in self.tasks:
            first[task.key] = total
            total += counted[task.role]
        return first

    @cached_property
    def processes(self) -> int:
        """The number of processes of all tasks together."""
        last = self.tasks[-1]
        return self.first_process[last.key] + self.role(last).processes


class Framework:
    """How the tasks of one job type are started; the base class runs the plain command."""

    job_type: str
    """The job type: a document's `jobType`."""
    elastic: bool = True
    """Whether tasks may join and leave while the job runs."""
    barrier: bool = False
    """Whether commands start only when every task has an address."""
    split_logs: bool = False
    """Whether standard output and standard error always have separate logs."""

    def one_group(self, job: UnifiedJob) -> bool:
        """Whether no task can go on, or be restarted alone, once another has ended."""
        return False

    def retries_at_once(self, job: UnifiedJob) -> bool:
        """Whether the first retry in a row after a transient failure is immediate."""
        return False

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The task's command: the role's own."""
        return tuple(gang.role(task).command)

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The framework's additional variables."""
        return {}

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The names of the framework's ports in this task."""
        return ()

    def notebook(self, gang: Gang, task: TaskPlacement) -> str:
        """The path of the Jupyter server that the task is; "" if it is none."""
        return ""

    def port_counts(self, job: UnifiedJob) -> dict[str, int]:
        """By role, the most ports that a task needs besides the role's own: its node must have them free.

        It is computed before placement, from a gang of two tasks per role; roles that need none are left out.
        """
        if type(self).ports is Framework.ports and not _measured(job):
            return {}
        tasks = [
            TaskPlacement(role.name, index, "")
            for role in job.spec.roles
            for index in range(min(2, role_size(job, role)))
        ]
        gang = Gang(JobId(""), job.name, 0, job, Placement(tuple(tasks)))
        found: dict[str, int] = {}
        for task in tasks:
            found[task.role] = max(found.get(task.role, 0), len(self._own_ports(gang, task)))
        return {role: count for role, count in found.items() if count}

    def _own_ports(self, gang: Gang, task: TaskPlacement) -> list[str]:
        """The names of the framework's ports that the role does not request itself, and of the preflight's."""
        named = {port.name for port in gang.role(task).ports}
        wanted = (*self.ports(gang, task), *((PREFLIGHT_PORT,) if _measured(gang.job) else ()))
        return [port for port in wanted if port not in named]

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """The fields of `job` that this framework cannot run, in document order; checked before the job is accepted."""
        findings = list(_unknown_references(job))
        if job.is_elastic and not self.elastic:
            findings.append(
                (
                    ("spec", "replicaSpec", "maxReplicas"),
                    f"a {self.job_type} job cannot change its size while it runs; give replicas alone",
                )
            )
        return tuple(findings)

    def render(self, gang: Gang, task: TaskPlacement, attempt: int = 0) -> TaskCommand:
        """Build the start of a task; `attempt` is the number of the task attempt."""
        role = gang.role(task)
        command = tuple(expand_lists(word, gang.members) for word in self.command(gang, task))
        env = {"OMP_NUM_THREADS": str(max(1, role.resources.cpu_millis // _MILLIS // role.processes))}
        env |= self.env(gang, task) | role.env | identity(gang, task)
        env = {name: expand_lists(value, gang.members) for name, value in env.items()}
        texts = (*command, *env.values())
        named = {TaskKey(found.role, found.task) for found in references(texts) if found.task is not None}
        return TaskCommand(
            command=command,
            env=env,
            ports=tuple(map(PortRequest, self._own_ports(gang, task))),
            resolve=tuple(str(key) for key in sorted(named)),
            runtime=needs_runtime(texts),
            barrier=self.barrier,
            pod_template=role.kubernetes.pod_template,
            notebook=self.notebook(gang, task),
        )


def _measured(job: UnifiedJob) -> bool:
    """Whether the tasks measure their network before they begin, for which each needs a port."""
    return "network" in job.spec.preflight.checks


def role_size(job: UnifiedJob, role: Role) -> int:
    """The largest number of tasks that a role can have."""
    count = job.spec.replica_spec
    return max(count.replicas, count.max_replicas) if role.name == job.counted_role.name else role.replicas


def identity(gang: Gang, task: TaskPlacement) -> dict[str, str]:
    """The variables that identify a task, for every framework."""
    return {
        "CORRAL_JOB_ID": gang.job_id,
        "CORRAL_JOB_NAME": gang.name,
        "CORRAL_JOB_ATTEMPT": str(gang.attempt),
        "CORRAL_ROLE": task.role,
        "CORRAL_TASK_INDEX": str(task.index),
        "CORRAL_NODE": task.node,
        "CORRAL_RANK": str(gang.ranks[task.key]),
        "CORRAL_WORLD_SIZE": str(len(gang.tasks)),
    }


def one_process_only(job: UnifiedJob) -> Iterator[Finding]:
    """Findings on roles with several processes per task, for frameworks in which one process drives all devices."""
    for index, role in enumerate(job.spec.roles):
        if role.processes_per_replica > 1:
            yield (
                ("spec", "roles", index, "processesPerReplica"),
                f"one process of a {job.spec.job_type} job drives all devices of its replica; ask for more replicas",
            )


def _unknown_references(job: UnifiedJob) -> Iterator[Finding]:
    most = {role.name: job.replicas_of(role.name) for role in job.spec.roles}
    most[job.counted_role.name] = job.spec.replica_spec.max_replicas
    for index, role in enumerate(job.spec.roles):
        base: Path = ("spec", "roles", index)
        places = [((*base, "command", position), word) for position, word in enumerate(role.command)]
        places += [((*base, "env", name), value) for name, value in role.env.items()]
        for path, text in places:
            yield from ((path, message) for message in _wrong_in(text, most))


def _wrong_in(text: str, most: dict[str, int]) -> Iterator[str]:
    for found in references([text]):
        if found.role not in most:
            yield f'it names a peer of the role "{found.role}", which is not there{did_you_mean(found.role, most)}'
        elif found.task is not None and found.task >= most[found.role]:
            yield f'it names the peer "{found.role}-{found.task}"; that role has {most[found.role]} replicas, from 0'
