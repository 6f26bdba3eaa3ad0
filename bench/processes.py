"""Memory (PSS, which divides shared pages among their users) and processor time of a process tree."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """`root` and all its living descendants."""
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        if not Path(f"/proc/{pid}").exists():
            continue
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                queue.extend(int(child) for child in children.read_text().split())
    return found


def pss(pids: list[int]) -> float:
    """The proportional set size of `pids` together, in MB (10^6 bytes), from smaps_rollup; 0 for ended processes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total * 1024 / 1e6


def cpu_seconds(pids: list[int]) -> float:
    """Processor seconds, user and system, that `pids` have used so far; 0 for ended processes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / TICKS
