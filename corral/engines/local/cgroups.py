"""Control groups: limit each task's memory, CPU and process count, and find all its processes.

Version 2 is used where the server may create groups (root, or a delegated subtree), else version 1's `memory`, `cpu`
and `pids`. Without either, `watching.py` limits memory and the shim limits processes. Every task has a group; its shim
stays outside. Each engine's groups are below its own parent, so that it recognises them after a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from corral.kernel.ids import AttemptId, parse_attempt_id

ROOT = Path("/sys/fs/cgroup")
_PERIOD = 100_000
_LINKS_OF_A_LEAF = 2
"""Links of a folder without folders in it: its own name, and `.` in it."""


class CgroupsV2:
    """The unified hierarchy."""

    version = 2
    limits_memory = True

    def __init__(self, parent: Path) -> None:
        self._parent = parent

    @property
    def parents(self) -> tuple[Path, ...]:
        """The parent groups of all attempts."""
        return (self._parent,)

    @property
    def limits_processes(self) -> bool:
        """Whether the kernel counts the processes of a group."""
        return "pids" in (self._parent / "cgroup.subtree_control").read_text().split()

    def make(self, attempt: AttemptId, memory_bytes: int, cpu_millis: int, processes: int = 0) -> tuple[str, ...]:
        """Create one group with all limits (0: none). Enter it by writing to its `cgroup.procs`.

        Raises OSError.
        """
        if not self._parent.is_dir():  # somebody removed it while empty; without it nothing could start
            self._parent.mkdir(exist_ok=True)
            _delegate(self._parent)
        group = self._parent / attempt
        group.mkdir(exist_ok=True)
        if memory_bytes:
            (group / "memory.max").write_text(str(memory_bytes))
            _write_if_there(group / "memory.swap.max", "0")
            _write_if_there(group / "memory.oom.group", "1")
        if cpu_millis:
            (group / "cpu.max").write_text(f"{cpu_millis * _PERIOD // 1000} {_PERIOD}")
        if processes:
            _write_if_there(group / "pids.max", str(processes))
        return (str(group),)


class CgroupsV1:
    """The `memory`, `cpu` and `pids` hierarchies, each where usable; at least one."""

    version = 1

    def __init__(self, memory: Path | None, cpu: Path | None, pids: Path | None = None) -> None:
        self._memory, self._cpu, self._pids = memory, cpu, pids

    @property
    def parents(self) -> tuple[Path, ...]:
        """The parent groups of all attempts."""
        return tuple(each for each in (self._pids, self._memory, self._cpu) if each is not None)

    def make(self, attempt: AttemptId, memory_bytes: int, cpu_millis: int, processes: int = 0) -> tuple[str, ...]:
        """Create one group per limit (0: none), at least one. Enter each by writing to its `cgroup.procs`.

        Raises OSError.
        """
        try:
            return self._make(attempt, memory_bytes, cpu_millis, processes)
        except FileNotFoundError:  # somebody removed a parent while it was empty
            for parent in self.parents:
                parent.mkdir(exist_ok=True)
            return self._make(attempt, memory_bytes, cpu_millis, processes)

    def _make(self, attempt: AttemptId, memory_bytes: int, cpu_millis: int, processes: int) -> tuple[str, ...]:
        group = self.parents[0] / attempt
        group.mkdir(exist_ok=True)
        made = [str(group)]
        if processes and self._pids is not None:
            _write_if_there(group / "pids.max", str(processes))
        if memory_bytes and self._memory is not None:
            group = self._memory / attempt
            group.mkdir(exist_ok=True)
            (group / "memory.limit_in_bytes").write_text(str(memory_bytes))
            _write_if_there(group / "memory.memsw.limit_in_bytes", str(memory_bytes))
            made.append(str(group))
        if cpu_millis and self._cpu is not None:
            group = self._cpu / attempt
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(cpu_millis * _PERIOD // 1000))
            made.append(str(group))
        return tuple(dict.fromkeys(made))

    @property
    def limits_processes(self) -> bool:
        """Whether the pids hierarchy is usable and counts."""
        return self._pids is not None and (self._pids / "pids.max").exists()

    @property
    def limits_memory(self) -> bool:
        """Whether the memory hierarchy is usable."""
        return self._memory is not None


def detect(name: str, root: Path = ROOT, own: Path = Path("/proc/self/cgroup")) -> CgroupsV2 | CgroupsV1 | None:
    """Return the control groups that this server may use, None if none. Creates its own parent group `name` in them."""
    places = _own_places(own)
    is_unified = (root / "cgroup.controllers").exists()  # version 1 has a plain folder there, where mkdir would succeed
    unified = _usable(root, places.get("", ""), name) if is_unified else None
    if unified is not None and (unified / "cgroup.controllers").exists() and _delegate(unified):
        return CgroupsV2(unified)
    memory = _usable(root / "memory", places.get("memory", ""), name)
    cpu = _usable(root / "cpu", places.get("cpu", ""), name)
    pids = _usable(root / "pids", places.get("pids", ""), name)
    if memory is not None and not (memory / "memory.limit_in_bytes").exists():
        memory = None
    if cpu is not None and not (cpu / "cpu.cfs_quota_us").exists():
        cpu = None
    if pids is not None and not (pids / "cgroup.procs").exists():
        pids = None
    return CgroupsV1(memory, cpu, pids) if memory or cpu or pids else None


def parent_name(engine_folder: Path) -> str:
    """Return the name of an engine's parent group, which is unique per engine folder."""
    return f"corral-{hashlib.sha256(os.fsencode(engine_folder)).hexdigest()[:12]}"


def found(parents: Iterable[Path]) -> dict[AttemptId, tuple[str, ...]]:
    """Return the existing groups of every attempt."""
    known: dict[AttemptId, list[str]] = {}
    for parent in parents:
        for entry in os.scandir(parent):
            try:
                parse_attempt_id(entry.name)
            except ValueError:
                continue
            known.setdefault(AttemptId(entry.name), []).append(entry.path)
    return {attempt: tuple(groups) for attempt, groups in known.items()}


def members(groups: Iterable[str]) -> set[int]:
    """Return the processes in some groups, and in groups that a task created below them."""
    pids: set[int] = set()
    for group in groups:
        for folder in _group_and_below(group):
            try:
                with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                    pids.update(map(int, file.read().split()))
            except OSError:
                continue
    return pids - {0}


def _group_and_below(group: str) -> Iterator[str]:
    """Yield a group and all groups below it, if it is there; one without any below has two links, and is not listed."""
    try:
        links = os.stat(group).st_nlink
    except OSError:
        return
    if links == _LINKS_OF_A_LEAF:
        yield group
    else:
        yield from (folder for folder, _, _ in os.walk(group))


def ran_out_of_memory(groups: tuple[str, ...]) -> bool:
    """Return whether the kernel killed a process of these groups for lack of memory."""
    for group in groups:
        for file in ("memory.events", "memory.oom_control"):
            try:
                lines = Path(group, file).read_text().splitlines()
            except OSError:
                continue
            if any(line.startswith("oom_kill ") and int(line.split()[1]) > 0 for line in lines):
                return True
    return False


def remove(groups: Iterable[str]) -> bool:
    """Remove empty groups and those below them. False if the kernel still holds one of them."""
    gone = True
    for group in groups:
        try:
            os.rmdir(group)
        except FileNotFoundError:
            continue
        except OSError:
            pass  # it has processes, or groups below it
        else:
            continue
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                gone = False
    return gone


def leave(parents: Iterable[Path]) -> None:
    """Remove the parent groups if they contain no attempt's group.

    An attempt's empty group is kept: its task may be about to enter it.
    """
    for parent in parents:
        with contextlib.suppress(OSError):
            os.rmdir(parent)


def _own_places(own: Path) -> dict[str, str]:
    """Return the path of this process in each hierarchy, by controller ("" is version 2)."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return {}
    places: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        places |= dict.fromkeys(controllers.split(","), path)
    return places


def _usable(root: Path, place: str, name: str) -> Path | None:
    """Create a group below this process's own, or below the root where that is not visible (in a container)."""
    if not root.is_dir():
        return None
    parent = root / place.lstrip("/")
    if not parent.is_dir():
        parent = root
    group = parent / name
    try:
        group.mkdir(exist_ok=True)
    except OSError:
        return None
    return group


def _delegate(group: Path) -> bool:
    """Enable the memory, CPU and pids controllers below `group`. False if the kernel does not allow it.

    The pids controller is optional.
    """
    controllers = (group / "cgroup.controllers").read_text().split()
    if not {"memory", "cpu"} <= set(controllers):
        return False
    try:
        (group / "cgroup.subtree_control").write_text("+memory +cpu")
        if "pids" in controllers:
            (group / "cgroup.subtree_control").write_text("+pids")
    except OSError:
        return False
    return True


def _write_if_there(file: Path, text: str) -> None:
    """Write a setting that some kernels lack (swap accounting) or refuse."""
    if file.exists():
        try:
            file.write_text(text)
        except OSError:
            return
