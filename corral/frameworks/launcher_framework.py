"""The base of frameworks with a launcher of their own, such as `mpirun`.

By itself, such a launcher starts the other tasks' processes by ssh. Here every task but the leading one runs Corral's
launch agent (`corral.runtime.agent`), which joins the leading task's agent. There the launcher runs, with a replacement
for ssh that hands each remote command to the agent of the named task. This needs no ssh server, no keys and no
resolvable host names: a "host" is a task, `worker-1`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from corral.frameworks.base import Finding, Framework, Gang
from corral.frameworks.references import RUNTIME, host_of, port_of, secret
from corral.model.placement import TaskPlacement

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

PORT: Final = "agent"
IN_TASK_FOLDER: Final = ("sh", "-c", 'cd "$CORRAL_TASK_DIR" && exec "$@"', "task")
"""Prefix of the command that a launcher starts; otherwise it would use the leading task's folder in every task."""


class Launched(Framework):
    """A framework whose own launcher, in the leading task, starts the processes of all tasks."""

    launchers: ClassVar[tuple[str, ...]]
    """The launcher's names; a command that already calls one of them is not wrapped."""

    def one_group(self, job: UnifiedJob) -> bool:
        """A launcher that is not elastic ends with the first process that fails."""
        return not job.is_elastic

    def launcher(self, gang: Gang, command: tuple[str, ...]) -> tuple[str, ...]:
        """The launcher's own command line, which starts `command` in every task."""
        raise NotImplementedError

    def lead_options(self, gang: Gang) -> tuple[str, ...]:
        """Further options of the leading agent."""
        return ()

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The leading agent's port, on the leading task."""
        return (PORT,) if task.key == gang.leader else ()

    def env(self, gang: Gang, task: TaskPlacement) -> dict[str, str]:
        """The secret and address by which agents join; the leading one also gets the rank order."""
        known = {
            "CORRAL_AGENT_SECRET": secret("agent"),
            "CORRAL_AGENT_HOST": host_of(gang.leader),
            "CORRAL_AGENT_PORT": port_of(gang.leader, PORT),
        }
        order = ",".join(str(member.key) for member in gang.tasks)
        return known | ({"CORRAL_AGENT_ORDER": order} if task.key == gang.leader else {})

    def join_options(self, gang: Gang) -> tuple[str, ...]:
        """Further options of the joining agents."""
        return ()

    def command(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """The launcher under the leading agent in the leading task, a joining agent in every other task."""
        me = f"--name={task.key}"
        if task.key != gang.leader:
            return (RUNTIME, "agent", "join", me, f"--slots={gang.role(task).processes}", *self.join_options(gang))
        command = program(gang.job)
        own = self._calls_launcher(command)
        launched = command if own else self.launcher(gang, command)
        slots = f"--slots={gang.role(task).processes}"
        wait = f"--wait-for={self._fewest(gang)}"
        options = () if own else self.lead_options(gang)
        return (RUNTIME, "agent", "lead", me, slots, wait, *options, "--", *launched)

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """All roles must run one program: the first command that is given."""
        wanted = program(job)
        findings = list(super().check(job))
        for index, role in enumerate(job.spec.roles):
            if role.command and tuple(role.command) != wanted:
                message = f"all roles of a {self.job_type} job run one program; give the command in one role"
                findings.append((("spec", "roles", index, "command"), message))
        return tuple(findings)

    def _calls_launcher(self, command: tuple[str, ...]) -> bool:
        names = "|".join(map(re.escape, self.launchers))
        return re.search(rf"(?:^|[\s/;&|(])(?:{names})(?:$|\s)", " ".join(command)) is not None

    def _fewest(self, gang: Gang) -> int:
        return sum(gang.job.gang_size().values()) if gang.elastic else len(gang.tasks)


def program(job: UnifiedJob) -> tuple[str, ...]:
    """The program of every process: the command of the first role that has one."""
    return next((tuple(role.command) for role in job.spec.roles if role.command), ())
