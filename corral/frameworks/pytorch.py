"""The framework `pytorch`: plain rank variables for jobs of fixed size, or torchrun.

One process per task and a fixed size get RANK, WORLD_SIZE and a store on rank 0: this starts 5 s faster than torchrun.
Several processes per task, or an elastic size, run under `torchrun --no-python`.

An elastic job's store is in the torchrun agent of task 0, the one task that `scale` never removes; if it ends, the
others end too. The store is not shared with the workers' process group (TORCH_DISABLE_SHARE_RDZV_TCP_STORE). If it were
shared, survivors of a shrink would wait for ever for a peer that has left.

torchrun forwards only the signals that it is configured for, and kills after 30 s. So it is given the job's checkpoint
signal and grace period; otherwise they would not reach the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corral.frameworks.base import Framework, Gang
from corral.frameworks.references import endpoint_of, host_of, port_of
from corral.model.placement import TaskPlacement

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

PORT: Final = "rendezvous"
_RENDEZVOUS: Final = "last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3"
_RESTARTS: Final = "100"
_PASSED_ON: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""The signals that torchrun forwards by default."""
_KILLS_AFTER: Final = 30
"""torchrun's default time for its processes to end, in seconds."""


class PyTorch(Framework):
    """`jobType: pytorch`: data parallel and other process groups of every role's tasks together."""

    job_type = "pytorch"

    def one_group(self, job: UnifiedJob) -> bool:
        """A fixed number of processes meets once, at the start."""
        return not job.is_elastic

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The store's port, on the leading task."""
        return (PORT,) if task.key == gang.leader else ()

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The role's command, under torchrun if the job is elastic or has several processes per task."""
        command = tuple(gang.role(task).command)
        if gang.elastic:
            return (*self._elastic(gang, task), *command)
        if gang.processes > len(gang.tasks):
            return (*self._static(gang, task), *command)
        return command

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The plain variables, or torchrun's variables."""
        if gang.elastic:
            return {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "PET_MAX_RESTARTS": _RESTARTS} | _ending(gang)
        if gang.processes > len(gang.tasks):
            return _ending(gang)
        rank = str(gang.ranks[task.key])
        return {
            "RANK": rank,
            "WORLD_SIZE": str(len(gang.tasks)),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": rank,
            "MASTER_ADDR": host_of(gang.leader),
            "MASTER_PORT": port_of(gang.leader, PORT),
        }

    def _static(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        return (
            "torchrun",
            f"--nnodes={len(gang.tasks)}",
            f"--node-rank={gang.ranks[task.key]}",
            f"--nproc-per-node={gang.role(task).processes}",
            f"--master-addr={host_of(gang.leader)}",
            f"--master-port={port_of(gang.leader, PORT)}",
            f"--local-addr={host_of(task.key)}",
            "--no-python",
        )

    def _elastic(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        count = gang.job.spec.replica_spec
        fixed = sum(role.replicas for role in gang.job.spec.roles if role.name != gang.job.counted_role.name)
        return (
            "torchrun",
            f"--nnodes={fixed + count.min_replicas}:{fixed + count.max_replicas}",
            f"--nproc-per-node={gang.role(task).processes}",
            "--rdzv-backend=c10d",
            f"--rdzv-endpoint={endpoint_of(gang.leader, PORT)}",
            f"--rdzv-id={gang.job_id}.{gang.attempt}",
            f"--rdzv-conf={_RENDEZVOUS},is_host={int(task.key == gang.leader)}",
            f"--local-addr={host_of(task.key)}",
            "--monitor-interval=0.5",
            "--no-python",
        )


def _ending(gang: Gang) -> dict[str, str]:
    """torchrun's shutdown timeout and signals, if the job's differ from its defaults."""
    asked, told = gang.job.spec.checkpoint, {}
    if asked.grace_seconds not in (-1, _KILLS_AFTER):
        told["PET_SHUTDOWN_TIMEOUT"] = str(max(1, asked.grace_seconds))
    if asked.signal and asked.signal not in _PASSED_ON:
        told["PET_SIGNALS_TO_HANDLE"] = ",".join((*_PASSED_ON, asked.signal))
    return told
