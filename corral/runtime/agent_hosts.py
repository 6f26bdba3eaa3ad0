"""The list of hosts that the leading agent of a job gives to an elastic launcher.

Horovod's driver (0.28.1) tells its ring of a change of hosts once. What the ring misses, as it was just starting or forming
anew, stays unknown to it. The driver also never starts a process on a host that came off its blacklist
(`ElasticDriver._update_host_assignments` takes the failed one for running). So a task on which the launcher must start
something anew is listed under a new name, `worker-2.1`, which the driver takes for a host that it has never seen.
"""

from __future__ import annotations

from dataclasses import dataclass

AGAIN_SECONDS = 10.0
"""Seconds after which a change that the launcher has not acted upon is told again; each time after twice as many."""
MOST_SECONDS = 80.0
"""The most seconds between two times that one change is told."""


@dataclass
class Host:
    """A task that is there."""

    slots: int
    number: int = 0
    """How often its name has changed."""
    running: int = 0
    leaving: bool = False
    told: float | None = None
    """When the launcher was last told of a change of this host, or began or ended something on it; None: not yet."""
    again: float = AGAIN_SECONDS
    """The seconds from then on after which it is told again."""

    def changed(self, now: float) -> None:
        """Note that the launcher has begun or ended something here."""
        self.told, self.again = now, AGAIN_SECONDS


class Hosts:
    """The tasks that have joined, in their order, and what runs on them. Times are of one monotonic clock."""

    def __init__(self, name: str, slots: int) -> None:
        self._here = {name: Host(slots)}
        self._numbers: dict[str, int] = {}
        self._begun = 0.0
        """When a command last began: others of the same ring may be about to."""

    @property
    def staying(self) -> list[str]:
        """Each task that is not about to leave, as `TASK:SLOTS`."""
        return [f"{name}:{host.slots}" for name, host in self._here.items() if not host.leaving]

    @property
    def running(self) -> int:
        """How many commands run."""
        return sum(host.running for host in self._here.values())

    def join(self, name: str, slots: int) -> None:
        """Add a task; one that comes again has a new name if something has failed on it, or a change of it was missed."""
        self._here[name] = Host(slots, self._numbers.get(name, 0))

    def leave(self, name: str) -> None:
        """List a task no more; what runs there may still end by itself."""
        if name in self._here:
            host = self._here[name]
            host.leaving, host.told, host.again = True, None, AGAIN_SECONDS

    def remove(self, name: str) -> None:
        """Forget a task that is gone."""
        self._here.pop(name, None)

    def task_of(self, host: str) -> str:
        """The task that the launcher calls `host`."""
        return host if host in self._here else host.partition(".")[0]

    def begin(self, name: str, now: float) -> Host | None:
        """Note that a command begins on a task; None if it is not there."""
        self._begun = now
        if host := self._here.get(name):
            host.running += 1
            host.changed(now)
        return host

    def end(self, name: str, host: Host | None, code: int, now: float) -> None:
        """Note that the command for which `begin` gave `host` has ended; if it failed, the task gets a new name.

        One that came again keeps its name where a later command already runs on it.
        """
        if host is not None:
            host.running -= 1
            host.changed(now)
        now_here = self._here.get(name)
        if code != 0 and (now_here is None or now_here is host or not now_here.running):
            self._rename(name)

    def listed(self, now: float) -> list[str]:
        """The hosts as `NAME:SLOTS` for a launcher that asks for them; what it has missed is told by this very call."""
        return [f"{_called(name, host)}:{host.slots}" for name, host in self._here.items() if self._is_told(name, now)]

    def _is_told(self, name: str, now: float) -> bool:
        """Whether a host is in the list this time. Where the launcher has missed what it was told, it is told again."""
        host = self._here[name]
        if host.told is None:
            host.told = now
        since = max(host.told, self._begun)
        missed = self.running > 0 and now - since >= host.again and host.leaving == (host.running > 0)
        if missed:
            host.told, host.again = now, min(2 * host.again, MOST_SECONDS)
            if not host.leaving:
                self._rename(name)
        return missed or not host.leaving

    def _rename(self, name: str) -> None:
        self._numbers[name] = self._numbers.get(name, 0) + 1
        if host := self._here.get(name):
            host.number = self._numbers[name]


def _called(name: str, host: Host) -> str:
    return f"{name}.{host.number}" if host.number else name
