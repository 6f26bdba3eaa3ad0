"""Why: an MPI program is started by `mpirun` in one place; the launch agents take it into every task."""

from __future__ import annotations

from corral.frameworks.base import Gang
from corral.frameworks.launched import IN_TASK_FOLDER, Launched
from corral.model.placement import TaskPlacement


class Mpi(Launched):
    """`jobType: mpi`: Open MPI's `mpirun` in the leading task, as many ranks in each task as its processes.

    A command that calls `mpirun` (or mpiexec, orterun) itself finds hosts and agent set up by the environment.
    """

    job_type = "mpi"
    elastic = False
    launchers = ("mpirun", "mpiexec", "orterun")

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """Open MPI's parameters, less the two paths that the agent makes."""
        return super().env(gang, task) | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
            "OMPI_MCA_orte_leave_session_attached": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_routed": "direct",  # a daemon that relays for others may be asked before it listens
            "OMPI_MCA_rtc_hwloc_vmhole": "none",  # a daemon that shares its topology by memory crashed while it wrote it
        }

    def launcher(self, gang: Gang, command: tuple[str, ...]) -> tuple[str, ...]:
        """One rank for each process, placed in the order of the host file, which is rank order."""
        return ("mpirun", "-n", str(gang.processes), "--map-by", "slot", *IN_TASK_FOLDER, *self.rank_command(command))

    def rank_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """What one rank runs."""
        return command


class Cntk(Mpi):
    """`jobType: cntk`: Microsoft's CNTK, an MPI program that trains in parallel only when told so on its command line.

    CNTK's last release needs Python 3.6 and Open MPI 1.10 and installs nowhere any more, so only what is rendered here
    is tested.
    """

    job_type = "cntk"

    def rank_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The role's command; `cntk` itself is told to train in parallel."""
        parallel = "parallelTrain=true"
        return (*command, parallel) if command[0].rsplit("/", 1)[-1] == "cntk" and parallel not in command else command
