"""Why: jobs written for OpenPAI find here what OpenPAI's server and runtime gave them, under the same names.

The server's variables are told from the job alone; addresses, ports and secrets are put in by Corral's runtime inside the
task (`corral.runtime.openpai`), which gets from here what it has to do: the roles, the scripts of the plug-ins, the keys.
Chosen difference: ports are those that the engine found to be free, not OpenPAI's hash of pod, label and number, which
may fall on a port that is taken; nobody can rely on a number that only the task's own id tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corral.frameworks.base import Finding, Framework, Gang, TaskCommand
from corral.frameworks.frameworkcontroller import variables
from corral.frameworks.openpai_environment import PaiJob, PaiRole, framework_variables, pai_job, server_variables
from corral.frameworks.openpai_plugins import TENSORBOARD_PORT, around, tensorboard_index
from corral.frameworks.references import OPENPAI
from corral.kernel.ids import JobId
from corral.model.launch import PortRequest
from corral.model.placement import Placement, TaskPlacement
from corral.spec.openpai.names import JOB_TYPE

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob

ALWAYS_THERE: Final = ("ssh", "http")
"""Ports that every task has one of."""
_SPLIT: Final = {"CORRAL_LOGS": "split"}
"""Standard output and errors have logs of their own, as in OpenPAI."""


class OpenPai(Framework):
    """`jobType: openpai`: a job of OpenPAI, whose tasks are told what OpenPAI tells them."""

    job_type = JOB_TYPE
    elastic = False

    def check(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """Every role runs a command: in OpenPAI no role takes that of its image."""
        findings = [
            finding for finding in super().check(job) if finding[0][-1] != 2
        ]  # the command's text is bash's own
        for index, role in enumerate(job.spec.roles):
            if not role.command:
                findings.append((("spec", "roles", index, "command"), "missing; say what the role runs"))
        return tuple(findings) or self._unreadable(job)

    def _unreadable(self, job: UnifiedJob) -> tuple[Finding, ...]:
        """What annotations that no file of OpenPAI leaves would do to the tasks is found out by trying one of each role."""
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
        """`ssh` and `http` for every task, and one for TensorBoard where its plug-in names none."""
        board = tensorboard_index(pai_job(gang))
        return (*ALWAYS_THERE, TENSORBOARD_PORT) if board == (task.role, task.index) else ALWAYS_THERE

    def render(self, gang: Gang, task: TaskPlacement, attempt: int = 0) -> TaskCommand:
        """The scripts that the runtime is to write and run, and what is known before."""
        plain = super().render(gang, task, attempt)
        job = pai_job(gang)
        role = job.role_of(task.role)
        told = server_variables(job, gang, task)
        told |= framework_variables(variables(gang, task, attempt), job, role)
        own = gang.role(task).env
        return msgspec.structs.replace(
            plain,
            command=(OPENPAI,),
            env={**_SPLIT, **told, **plain.env, **own},
            resolve=plain.resolve if job.gang else (str(task.key),),
            runtime=True,
            barrier=job.gang,
            openpai=_asked(job, role, gang, task, plain.ports),
        )


def _asked(
    job: PaiJob, role: PaiRole, gang: Gang, task: TaskPlacement, more: tuple[PortRequest, ...]
) -> dict[str, Any]:
    """What the runtime has to do for the task, as plain data."""
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
