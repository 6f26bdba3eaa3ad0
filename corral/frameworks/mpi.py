"""The frameworks `mpi` and `cntk`: run `mpirun` in the leading task, through the launch agents."""

from __future__ import annotations

from corral.frameworks.base import Gang
from corral.frameworks.launcher_framework import IN_TASK_FOLDER, Launched
from corral.model.placement import TaskPlacement


class Mpi(Launched):
    """`jobType: mpi`: Open MPI's `mpirun` in the leading task, with one rank per process of each task.

    If a command calls `mpirun` (or mpiexec, orterun) itself, the environment provides hosts and agent.
    """

    job_type = "mpi"
    elastic = False
    launchers = ("mpirun", "mpiexec", "orterun")

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """Open MPI's parameters, except the two paths that the agent sets."""
        return super().env(gang, task) | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
            "OMPI_MCA_orte_leave_session_attached": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_routed": "direct",  # with relays, a daemon may be asked before it listens
            "OMPI_MCA_rtc_hwloc_vmhole": "none",  # sharing the topology by memory crashed a daemon while it wrote
        }

    def launcher(self, gang: Gang, command: tuple[str, ...]) -> tuple[str, ...]:
        """mpirun with one rank per process, placed in the order of the host file, which is rank order."""
        return ("mpirun", "-n", str(gang.processes), "--map-by", "slot", *IN_TASK_FOLDER, *self.rank_command(command))

    def rank_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command of one rank."""
        return command


class Cntk(Mpi):
    """`jobType: cntk`: Microsoft's CNTK, an MPI program that needs an option to train in parallel.

    CNTK's last release needs Python 3.6 and Open MPI 1.10 and can no longer be installed, so only the rendered command
    is tested.
    """

    job_type = "cntk"

    def rank_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The role's command; `cntk` itself gets `parallelTrain=true`."""
        parallel = "parallelTrain=true"
        return (*command, parallel) if command[0].rsplit("/", 1)[-1] == "cntk" and parallel not in command else command
