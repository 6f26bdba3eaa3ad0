"""The JSON shapes of what jobs asked for and used. Percent is 0 to 100."""

from __future__ import annotations

from corral.model.records import Phase, Record


class TaskAmounts(Record, frozen=True):
    """Amounts of one task; null is what nobody asked for, measured or can say."""

    devices: float | None = None
    cpus: float | None = None
    memory_bytes: int | None = None


class RoleEfficiency(Record, frozen=True):
    """The tasks of one role."""

    role: str
    tasks: int
    """Tasks that ran in the time of the report."""
    measured_tasks: int
    """Those of them with figures."""
    device_seconds: float
    lost_device_seconds: float
    """The part in attempts that failed, were preempted, or were lost with their node."""
    used_device_seconds: float | None
    """The device-seconds times the mean use of the devices; null where no use was measured."""
    task_seconds: float
    device_percent: float | None
    """The mean use of the devices."""
    device_memory_percent: float | None
    """The most memory of a device that was in use."""
    asked: TaskAmounts
    """What each task asked for."""
    mean: TaskAmounts
    """What a task used on average; of devices, how many whole ones."""
    most: TaskAmounts
    """The most that a task used; of devices, how many were ever in use."""
    would_do: TaskAmounts
    """A smaller request that would have done; null where what was asked fits, or nothing can be said."""


class JobEfficiency(Record, frozen=True):
    """One job."""

    job: str
    name: str
    user: str
    queue: str
    state: Phase
    device_seconds: float
    lost_device_seconds: float
    used_device_seconds: float | None
    """Of all its roles; null where no use of a device was measured."""
    measured_device_seconds: float
    """Device-seconds of the roles whose use was measured."""
    longest_seconds: float
    """The time of its longest attempt of a task, which `maxDuration` bounds."""
    max_duration_seconds: int
    """0 is no limit."""
    would_do_seconds: int | None
    """A shorter `maxDuration` that would have done."""
    roles: tuple[RoleEfficiency, ...]
    words: tuple[str, ...]
    """The same in sentences, the largest waste of devices first."""


class EfficiencySum(Record, frozen=True):
    """The sum over the jobs of one user, or over all."""

    key: str
    """The user; "" is everybody."""
    device_seconds: float = 0.0
    lost_device_seconds: float = 0.0
    measured_device_seconds: float = 0.0
    """Device-seconds of roles whose use was measured, of the jobs that are listed."""
    used_device_seconds: float = 0.0
    """How much of those was used."""


class EfficiencyReport(Record, frozen=True):
    """The jobs of a user, a queue or everybody from one time to another."""

    begin: str
    end: str
    total: EfficiencySum
    users: tuple[EfficiencySum, ...] = ()
    """The users with the most device-seconds first."""
    items: tuple[JobEfficiency, ...] = ()
    """The jobs with the most device-seconds first."""
    left_out: int = 0
    """Further jobs, which are in the sums of device-seconds alone."""
