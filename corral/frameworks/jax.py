"""Why: JAX's processes meet at a coordinator in process 0 and must be told how many they are and which."""

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

    `jax.distributed.initialize` reads the coordinator's address by itself; the program passes it JAX_NUM_PROCESSES and
    JAX_PROCESS_ID, which JAX does not read.
    """

    job_type = "jax"
    elastic = False

    def one_group(self, job: UnifiedJob) -> bool:
        """Processes of a fixed number meet once, at their start."""
        return True

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The coordinator's port, on the leading task."""
        return (PORT,) if task.key == gang.leader else ()

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """Where the coordinator is (and listens: not on every interface), how many there are, and which this is."""
        coordinator = endpoint_of(gang.leader, PORT)
        return {
            "JAX_COORDINATOR_ADDRESS": coordinator,
            "JAX_COORDINATOR_BIND_ADDRESS": coordinator,
            "JAX_NUM_PROCESSES": str(len(gang.tasks)),
            "JAX_PROCESS_ID": str(gang.ranks[task.key]),
        }

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """One process per task."""
        return (*super().check(job), *one_process_only(job))
