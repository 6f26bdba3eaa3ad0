"""The framework `horovod`: runs `horovodrun` in the leading task, with a discovery script for elastic jobs."""

from __future__ import annotations

from typing import Final

from corral.frameworks.base import Gang
from corral.frameworks.launcher_framework import IN_TASK_FOLDER, Launched
from corral.model.placement import TaskPlacement

IDLE_SECONDS: Final = 180.0
"""Seconds without any process after which an elastic `horovodrun` is taken for stuck."""
_GLOO_SECONDS: Final = "180"
"""How long the processes of an elastic ring wait for one that starts. After Gloo's 30 all of them abort, and a process on a
busy machine or in a new container imports for longer."""
LEAVE_SECONDS: Final = 20
"""How long a task which is told to end waits for the ring to go on without it, if the job names no grace period."""
_END_SECONDS: Final = 6
"""Seconds of the grace period that are left to end a process by signals."""
_ON_INTERFACE = ("sh", "-c", 'exec "$0" --network-interface "$CORRAL_AGENT_INTERFACE" "$@"')
_DISCOVERING = (
    "sh",
    "-c",
    'exec "$0" --host-discovery-script "$CORRAL_AGENT_DIR/hosts" --network-interface "$CORRAL_AGENT_INTERFACE" "$@"',
)


class Horovod(Launched):
    """`jobType: horovod`: `horovodrun` over Gloo in the leading task; elastic jobs discover hosts through the agents.

    horovodrun puts its environment on the command lines that it sends, so the leading agent gives it only the variables
    that it needs to run. Each process has the environment of its own task.
    """

    job_type = "horovod"
    launchers = ("horovodrun",)

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """Also the time that an elastic ring waits for a new process."""
        return super().env(gang, task) | ({"HOROVOD_GLOO_TIMEOUT_SECONDS": _GLOO_SECONDS} if gang.elastic else {})

    def lead_options(self, gang: Gang) -> tuple[str, ...]:
        """Run the launcher with a minimal environment; an elastic one that starts nothing more is ended."""
        return ("--bare", *((f"--idle-seconds={IDLE_SECONDS:g}",) if gang.elastic else ()))

    def join_options(self, gang: Gang) -> tuple[str, ...]:
        """A task that leaves an elastic ring has its grace period to do so between two steps."""
        if not gang.elastic:
            return ()
        grace = gang.job.spec.checkpoint.grace_seconds
        seconds = LEAVE_SECONDS if grace < 0 else max(0, grace - _END_SECONDS)
        return (f"--leave-seconds={seconds:g}",)

    def launcher(self, gang: Gang, command: tuple[str, ...]) -> tuple[str, ...]:
        """horovodrun with a fixed ring in rank order, or with size bounds and the discovery script."""
        started = (*IN_TASK_FOLDER, *command)
        if not gang.elastic:
            hosts = ",".join(f"{task.key}:{gang.role(task).processes}" for task in gang.tasks)
            return (*_ON_INTERFACE, "horovodrun", "--gloo", "-np", str(gang.processes), "-H", hosts, *started)
        counted, size = gang.job.counted_role, gang.job.spec.replica_spec
        fixed = sum(role.replicas * role.processes for role in gang.job.spec.roles if role.name != counted.name)
        fewest = str(fixed + size.min_replicas * counted.processes)
        return (
            *_DISCOVERING,
            "horovodrun",
            "--gloo",
            "-np",
            fewest,
            "--min-np",
            fewest,
            "--max-np",
            str(fixed + size.max_replicas * counted.processes),
            "--blacklist-cooldown-range",
            "5",
            "10",
            *started,
        )
