"""The operator's settings of launching: delays and deadlines."""

from __future__ import annotations

import msgspec

from corral.launcher.view import JobView


class LaunchPolicy(msgspec.Struct, frozen=True):
    """Delays and deadlines of launching, all in seconds."""

    conflict_delay: tuple[float, float] = (60.0, 900.0)
    """The range of the random delay before a retry after a lost contention."""
    transient_floor: float = 0.0
    """The least delay before a retry after a transient failure."""
    retry_first: float = 1.0
    """The delay before the first of consecutive retries; it doubles with each further one."""
    retry_most: float = 300.0
    """The longest such delay."""
    retry_reset: float = 600.0
    """An attempt that ran at least this long resets the consecutive retries."""
    retry_keeps_place: float = 60.0
    """The longest delay for which a task keeps its placement; before a longer one it releases its devices."""
    start_deadline: float = 0.0
    """The time from placement within which a task must be seen running; 0 is no limit.

    Afterwards the task is ended (-111, transient). If none of its instances ever ran, its whole job attempt ends (251,
    a conflict).
    """
    default_grace: float = 30.0
    """The time between the stop signal and KILL, for a job that sets none."""
    closed_nodes: frozenset[str] = frozenset()
    """Cordoned nodes, which take no new tasks: a retry goes to another node."""

    def grace_of(self, view: JobView) -> float:
        """The time between the stop signal and KILL in seconds: the job's, or else the default."""
        return self.default_grace if view.grace_seconds is None else view.grace_seconds
