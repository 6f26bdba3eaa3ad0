"""Why: the delays and deadlines of launching belong to the operator, not to the rules."""

from __future__ import annotations

import msgspec

from corral.launcher.view import JobView


class LaunchPolicy(msgspec.Struct, frozen=True):
    """What an operator may set about launching; all in seconds."""

    conflict_delay: tuple[float, float] = (60.0, 900.0)
    """A retry after a lost contention waits a random time within this range."""
    transient_floor: float = 0.0
    """A retry after a passing failure waits at least so long."""
    retry_first: float = 1.0
    """The first retry in a row waits so long, each further one twice as long as the one before."""
    retry_most: float = 300.0
    """The longest wait of that kind."""
    retry_reset: float = 600.0
    """An attempt that ran so long begins the row anew."""
    retry_keeps_place: float = 60.0
    """A task keeps its place during a wait of at most so long; before a longer one it gives its devices back."""
    start_deadline: float = 0.0
    """A task placed for so long and not seen running is ended (-111, transient), and with it, when none of its instances
    ever ran, the whole attempt of its job (251, a conflict); 0 waits for ever."""
    default_grace: float = 30.0
    """Between being asked to end and being killed, for a job that does not say."""
    closed_nodes: frozenset[str] = frozenset()
    """Nodes that take no new tasks (cordoned): a retry goes elsewhere."""

    def grace_of(self, view: JobView) -> float:
        """Seconds between being asked to end and being killed: what the job says, else the default."""
        return self.default_grace if view.grace_seconds is None else view.grace_seconds
