"""The framework `jax`: gives each process the coordinator's address, its process id and the number of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corral.frameworks.base import Finding, Framework, Gang, one_process_only
from corral.frameworks.references import endpoint_of
from corral.model.placement import TaskPlacement

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

PORT: Final = "coordinator"


class Jax(Framework):
    """`jobType: jax`: one process per task, which drives all devices of its task.

    `jax.distributed.initialize` reads the coordinator's address by itself. JAX does not read JAX_NUM_PROCESSES and
    JAX_PROCESS_ID; the program passes them to it.
    """

    job_type = "jax"
    elastic = False

    def one_group(self, job: UnifiedJob) -> bool:
        """True: a fixed number of processes meets once, at the start."""
        return True

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The coordinator's port, on the leading task."""
        return (PORT,) if task.key == gang.leader else ()

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The coordinator's address (it listens only there, not on every interface), process id and count."""
        coordinator = endpoint_of(gang.leader, PORT)
        return {
            "JAX_COORDINATOR_ADDRESS": coordinator,
            "JAX_COORDINATOR_BIND_ADDRESS": coordinator,
            "JAX_NUM_PROCESSES": str(len(gang.tasks)),
            "JAX_PROCESS_ID": str(gang.ranks[task.key]),
        }

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """Allow one process per task only."""
        return (*super().check(job), *one_process_only(job))
