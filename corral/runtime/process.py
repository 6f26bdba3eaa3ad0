"""Process identities: boot id, pid and start time together are unique, while pids are reused.

The runtime, the local engine, the store's leadership and the supervisor identify processes by them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Identity:
    """One process of one boot of one machine; `start_time` is in clock ticks after the boot."""

    boot_id: str
    pid: int
    start_time: int

    def is_alive(self) -> bool:
        """Whether that very process still runs (a zombie does not)."""
        return self.boot_id == boot_id() and start_time(self.pid) == self.start_time

    def as_dict(self) -> dict[str, Any]:
        """The three parts, ready for JSON."""
        return {"boot_id": self.boot_id, "pid": self.pid, "start_time": self.start_time}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Identity:
        """The identity in a record, which may have more fields.

        Raises KeyError or ValueError if a part is missing or not a number.
        """
        return cls(str(record["boot_id"]), int(record["pid"]), int(record["start_time"]))

    def __str__(self) -> str:
        return f"{self.boot_id}:{self.pid}:{self.start_time}"


def boot_id() -> str:
    """The kernel's random id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int:
    """When a process started, in clock ticks after the boot; -1 if it does not run."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            fields = handle.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])


def identity_of(pid: int | None = None) -> Identity:
    """The identity of a running process; None: this process."""
    pid = os.getpid() if pid is None else pid
    return Identity(boot_id(), pid, start_time(pid))
