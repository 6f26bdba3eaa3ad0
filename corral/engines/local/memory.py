"""Measure tasks' memory twice a second, where no control groups limit it.

Only tasks with a memory limit are measured. Resident sizes are summed first: they are cheap and never below the
proportional ones. Only above the limit are shared pages divided among their processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from corral.engines.local import processes

SECONDS = 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")


def over_limit(limits: Mapping[str, int]) -> dict[str, int]:
    """Return the attempts (id: allowed bytes) above their limit, with the bytes they use; one pass over `/proc`."""
    members: dict[str, list[int]] = {}
    for pid, attempt in processes.marked():
        if attempt in limits:
            members.setdefault(attempt, []).append(pid)
    found: dict[str, int] = {}
    for attempt, pids in members.items():
        limit = limits[attempt]
        if sum(map(resident, pids)) > limit and (used := proportional(pids)) > limit:
            found[attempt] = used
    return found


def resident(pid: int) -> int:
    """Return a process's resident bytes, shared pages in full; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def proportional(pids: Iterable[int]) -> int:
    """Return the memory of some processes in bytes, each page divided by its number of sharers (PSS)."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            continue
    return total
