"""The framework `openpai`: gives tasks the variables, ports and scripts of OpenPAI.

The server's variables follow from the job alone. Corral's runtime adds addresses, ports and secrets inside the task
(`RUNTIME`), by the instructions built here: roles, scripts of the plug-ins, keys. Deliberate difference:
ports are those that the engine found free, not OpenPAI's hash of pod, label and number, which may be taken. No program
can rely on that number, because only the task's own id gives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corral.compat.frameworkcontroller.framework import variables
from corral.compat.openpai.frameworks.environment import PaiJob, PaiRole, framework_variables, pai_job, server_variables
from corral.compat.openpai.frameworks.plugins import TENSORBOARD_PORT, around, tensorboard_index
from corral.compat.openpai.language.names import JOB_TYPE, PROTOCOL
from corral.frameworks.base import Finding, Framework, Gang, TaskCommand
from corral.frameworks.references import PLUG_IN
from corral.kernel.ids import JobId
from corral.model.launch import PortRequest
from corral.model.placement import Placement, TaskPlacement

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

RUNTIME: Final = "corral.compat.openpai.runtime.task"
"""The plug-in that prepares the tasks."""
ALWAYS_THERE: Final = ("ssh", "http")
"""Port labels of which every task has one port."""
_SPLIT: Final = {"CORRAL_LOGS": "split"}
"""Standard output and standard error have separate logs, as in OpenPAI."""


class OpenPai(Framework):
    """`jobType: openpai`: runs the tasks of an OpenPAI job as OpenPAI does."""

    job_type = JOB_TYPE
    elastic = False
    split_logs = True

    def retries_at_once(self, job: UnifiedJob) -> bool:
        """Whether the job was made from a protocol: OpenPAI retries at once."""
        return PROTOCOL in job.metadata.annotations

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """Every role needs a command: in OpenPAI no role runs its image's."""
        findings = [
            finding for finding in super().check(job) if finding[0][-1] != 2
        ]  # `$(…)` in the command's text is bash's own
        for index, role in enumerate(job.spec.roles):
            if not role.command:
                findings.append((("spec", "roles", index, "command"), "missing; say what the role runs"))
        return tuple(findings) or self._unreadable(job)

    def _unreadable(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """Findings on annotations that no OpenPAI job file produces, by rendering one task of each role."""
        tasks = tuple(TaskPlacement(role.name, 0, "") for role in job.spec.roles)
        gang = Gang(JobId(""), job.name, 0, job, Placement(tasks))
        try:
            for task in tasks:
                self.render(gang, task)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            why = "openpai.corral.dev/… is not as a job file of OpenPAI leaves it; submit that file itself"
            return ((("metadata", "annotations"), why),)
        return ()

    def ports(self, gang: Gang, task: TaskPlacement) -> tuple[str, ...]:
        """`ssh` and `http` for every task, and one for TensorBoard if its plug-in names no port."""
        board = tensorboard_index(pai_job(gang))
        return (*ALWAYS_THERE, TENSORBOARD_PORT) if board == (task.role, task.index) else ALWAYS_THERE

    def render(self, gang: Gang, task: TaskPlacement, attempt: int = 0) -> TaskCommand:
        """Build the start of a task: the runtime's instructions, and the variables known before it starts."""
        plain = super().render(gang, task, attempt)
        job = pai_job(gang)
        role = job.role_of(task.role)
        told = server_variables(job, gang, task)
        told |= framework_variables(variables(gang, task, attempt), job, role)
        own = gang.role(task).env
        return msgspec.structs.replace(
            plain,
            command=(PLUG_IN,),
            env={**_SPLIT, **told, **plain.env, **own},
            resolve=plain.resolve if job.gang else (str(task.key),),
            runtime=True,
            barrier=job.gang,
            plug_in=RUNTIME,
            error_block=True,
            plug_in_steps=_asked(job, role, gang, task, plain.ports),
        )


def _asked(
    job: PaiJob, role: PaiRole, gang: Gang, task: TaskPlacement, more: tuple[PortRequest, ...]
) -> dict[str, Any]:
    """The runtime's instructions for the task, as plain data."""
    spec = gang.role(task)
    found = around(job, role, task.index, _text(spec.command), image=bool(spec.image))
    extra = {port.name: port.name for port in more}
    roles = []
    for each in job.roles:
        always = {name: name for name in ALWAYS_THERE} | each.ports
        ports = always | extra if each.corral == task.role else always
        roles.append({"name": each.name, "corral": each.corral, "tasks": each.tasks, "ports": ports})
    return {"roles": roles, "role": role.name, "index": task.index, "files": found.files, "ssh": found.ssh}


def _text(command: list[str]) -> str:
    """The role's command as the text of a script."""
    if len(command) == 3 and command[1] == "-c" and command[0] in ("bash", "sh"):
        return command[2]
    import shlex

    return shlex.join(command)
