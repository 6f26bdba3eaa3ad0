"""Who a task is: the values of its labels, and the devices that it was given."""

from __future__ import annotations

from typing import Final, NamedTuple

from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.monitor.agent.bounded_files import read_bytes
from corral.monitor.agent.task_processes import MOST_ENVIRONMENT, variable

UNKNOWN: Final = "unknown"
"""The value of a label that nothing tells, as in job-exporter."""
_MOST: Final = 256
"""Characters of a value that are told."""


class TaskNames(NamedTuple):
    """One task's names."""

    user: str
    job: str
    """`USER~JOB` where the user is known, else the job's name."""
    role: str
    number: str
    """The index within its role."""
    instance: str
    """The job's id."""
    queue: str
    devices: frozenset[str] = frozenset()
    """Ids of its devices, as the vendor gives them."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of `TASK_LABELS`."""
        return self[:6]


def names_in_environment(attempt: AttemptId, pid: int, proc: str = "/proc") -> TaskNames:
    """Return the names that a process's own variables give; what they do not give is `unknown`.

    A task may write what it likes there: this is for a node's agent, which knows no jobs. Role, index and job id are the
    attempt's.
    """
    environment = read_bytes(f"{proc}/{pid}/environ", MOST_ENVIRONMENT)

    def value(*names: str) -> str:
        found = next((text for name in names if (text := variable(environment, f"{name}=".encode()))), "")
        return "".join(letter for letter in found[:_MOST] if letter.isprintable())

    key = parse_attempt_id(attempt)
    user = value("PAI_USER_NAME", "CORRAL_USER") or UNKNOWN
    job = value("PAI_JOB_NAME") or value("CORRAL_JOB_NAME") or UNKNOWN
    devices = frozenset(
        word for word in value("NVIDIA_VISIBLE_DEVICES").split(",") if word.startswith(("GPU-", "MIG-"))
    )
    queue = value("PAI_VIRTUAL_CLUSTER", "CORRAL_QUEUE") or UNKNOWN
    return TaskNames(user, job, key.role, str(key.index), key.job, queue, devices)
