"""A cgroup for all containers of a node, on cgroup v1 and v2, by which they are found and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")


class Tree:
    """The cgroup `/NAME`, in every hierarchy that this machine mounts."""

    def __init__(self, name: str) -> None:
        self.path = f"/{name}"
        unified = (_ROOT / "cgroup.controllers").exists()
        # A plain folder that something made there takes folders, too, and they could not be removed.
        there = [path for path in _ROOT.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink()]
        hierarchies = [_ROOT] if unified else there
        self._unified = unified
        self._folders = [path / name for path in hierarchies]

    def create(self) -> None:
        """Make it, empty."""
        for folder in self._folders:
            folder.mkdir()
            _prepare(folder, unified=self._unified)

    def pids(self, part: str = "") -> list[int]:
        """All processes in it, or in those below it whose path contains `part`."""
        found: set[int] = set()
        for folder in self._folders:
            for path, _, _ in os.walk(folder):
                if part in path or part.replace("-", "_") in path:
                    with contextlib.suppress(OSError):
                        found.update(map(int, Path(path, "cgroup.procs").read_text().split()))
        return sorted(found)

    def remove(self, others: Callable[[], list[int]] = list) -> None:
        """End every process in it, and `others`, and remove it; raises RuntimeError when it still exists after 60 s."""
        deadline = time.monotonic() + 60
        while True:
            for pid in {*self.pids(), *others()}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in self._folders:
                for path, _, _ in os.walk(folder, topdown=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(path)
            left = [str(folder) for folder in self._folders if folder.exists()]
            if not left and not others():
                return
            if time.monotonic() > deadline:
                said = [_described(pid) for pid in (*self.pids(), *others())]
                raise RuntimeError(f"cgroups are still there: {left}; processes: {said}")
            time.sleep(0.05)


def _described(pid: int) -> str:
    """A process with its name, state, parent, and what it waits for in the kernel."""
    found = [str(pid)]
    for name in ("stat", "wchan"):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/{name}").read_text(errors="replace").strip()[:60])
    return " ".join(found)


def _prepare(folder: Path, *, unified: bool) -> None:
    """Prepare it for children: on v1 a cpuset starts empty, on v2 controllers must be enabled for children."""
    if unified:
        controllers = (folder / "cgroup.controllers").read_text().split()
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
        return
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists():
            (folder / name).write_text((folder.parent / name).read_text())
