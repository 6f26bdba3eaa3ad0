"""When a gang ran and ended, from what is heard of its pods."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class GangPods:
    """The pods of one gang, as they are known."""

    tasks: int
    running: set[str] = field(default_factory=set)
    """The keys of pods that run or have succeeded."""
    done: set[str] = field(default_factory=set)
    started: float | None = None
    """When the last of its tasks ran; None again once it has lost a pod."""
    ended: float | None = None
    """When the last of its pods had succeeded."""

    def fold(self, key: str, phase: str, now: float) -> None:
        """Take in a pod's phase; "" is a pod that is gone. After the end nothing changes."""
        if self.ended is not None:
            return
        if phase == "Succeeded":
            self.done.add(key)
        if phase == "Running" or key in self.done:
            self.running.add(key)
        else:
            self.running.discard(key)
        if len(self.running) < self.tasks:
            self.started = None
        elif self.started is None:
            self.started = now
        if len(self.done) >= self.tasks:
            self.ended = now
