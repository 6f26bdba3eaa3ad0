"""The job and task state machines: step(state, event, now) -> (state, commands)."""

from corral.launcher.api import create, step
from corral.launcher.job_machine import JOB_MACHINE
from corral.launcher.policy import LaunchPolicy
from corral.launcher.retry import NEVER_RAN_ALARM
from corral.launcher.state_machine import InvalidTransition, diagram
from corral.launcher.step_changes import AttemptEnd, Step, recount
from corral.launcher.task_machine import TASK_MACHINE
from corral.launcher.view import JobView, RetryView, RoleView, view_of

__all__ = [
    "JOB_MACHINE",
    "NEVER_RAN_ALARM",
    "TASK_MACHINE",
    "AttemptEnd",
    "InvalidTransition",
    "JobView",
    "LaunchPolicy",
    "RetryView",
    "RoleView",
    "Step",
    "create",
    "diagram",
    "recount",
    "step",
    "view_of",
]
