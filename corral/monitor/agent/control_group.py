"""Read the figures of a task's control groups, of version 2 or 1.

Source of the files and units: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,cpuacct}.rst.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from corral.monitor.agent.bounded_files import numbers, read_number, read_text, whole

ROOT: Final = "/sys/fs/cgroup"
_NO_LIMIT: Final = 2**60
"""Bytes from which a limit of version 1 is none: it writes the largest multiple of a page."""
_PODS: Final = "kubepods"


class GroupFigures(NamedTuple):
    """What control groups tell of a task; None is what they do not tell."""

    cpu_seconds: float | None = None
    memory: int | None = None
    """Bytes, without cached files that the kernel can drop."""
    memory_limit: int | None = None
    shared: int | None = None
    """Bytes of tmpfs and shared memory."""
    read: int | None = None
    """Bytes from disks."""
    written: int | None = None


class GroupPaths(NamedTuple):
    """The folders of a task's control groups, "" where it has none of its own."""

    unified: str = ""
    memory: str = ""
    cpuacct: str = ""
    blkio: str = ""

    def __bool__(self) -> bool:
        return any(self)


def group_paths(text: str, attempt: str, root: str = ROOT) -> GroupPaths:
    """Return a task's own groups from `/proc/PID/cgroup` of one of its processes.

    The local engine names a group by the attempt; in a pod it is the container's. A group that the task shares with
    others is none of its own. A path that leads out of `root` is not followed.
    """
    found: dict[str, str] = {}
    for line in text.splitlines()[:64]:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        words = path.split("/")
        if ".." in words:
            continue
        if attempt in words:
            own = "/".join(words[: words.index(attempt) + 1])
        elif _PODS in path:
            own = path
        else:
            continue
        for controller in controllers.split(","):
            base = root if not controller else f"{root}/{controller}"
            found[controller or "unified"] = base + own
    return GroupPaths(*(found.get(name, "") for name in GroupPaths._fields))


def group_figures(paths: GroupPaths) -> GroupFigures:
    """Return the figures of a task's groups; those whose files are missing are None."""
    if paths.unified:
        return _version_2(paths.unified)
    return _version_1(paths)


def _version_2(folder: str) -> GroupFigures:
    cpu = numbers(read_text(f"{folder}/cpu.stat").splitlines(), "usage_usec").get("usage_usec")
    memory = numbers(read_text(f"{folder}/memory.stat").splitlines(), "inactive_file", "shmem")
    read, written = io_bytes(read_text(f"{folder}/io.stat"))
    return GroupFigures(
        cpu_seconds=None if cpu is None else cpu / 1e6,
        memory=_without(read_number(f"{folder}/memory.current"), memory.get("inactive_file", 0)),
        memory_limit=read_number(f"{folder}/memory.max"),
        shared=memory.get("shmem"),
        read=read,
        written=written,
    )


def _version_1(paths: GroupPaths) -> GroupFigures:
    cpu = read_number(f"{paths.cpuacct}/cpuacct.usage") if paths.cpuacct else None
    read, written = blkio_bytes(read_text(f"{paths.blkio}/blkio.throttle.io_service_bytes") if paths.blkio else "")
    if not paths.memory:
        return GroupFigures(None if cpu is None else cpu / 1e9, read=read, written=written)
    memory = numbers(read_text(f"{paths.memory}/memory.stat").splitlines(), "total_inactive_file", "total_shmem")
    limit = read_number(f"{paths.memory}/memory.limit_in_bytes")
    return GroupFigures(
        cpu_seconds=None if cpu is None else cpu / 1e9,
        memory=_without(read_number(f"{paths.memory}/memory.usage_in_bytes"), memory.get("total_inactive_file", 0)),
        memory_limit=None if limit is None or limit >= _NO_LIMIT else limit,
        shared=memory.get("total_shmem"),
        read=read,
        written=written,
    )


def io_bytes(text: str) -> tuple[int | None, int | None]:
    """Return the bytes read and written of `io.stat`, over all disks; None for each if there is no file."""
    if not text:
        return None, None
    totals = {"rbytes": 0, "wbytes": 0}
    for word in text.split():
        name, _, value = word.partition("=")
        if name in totals and (found := whole(value)) is not None:
            totals[name] += found
    return totals["rbytes"], totals["wbytes"]


def blkio_bytes(text: str) -> tuple[int | None, int | None]:
    """Return the bytes read and written of `blkio.throttle.io_service_bytes`, over all disks."""
    if not text:
        return None, None
    totals = {"Read": 0, "Write": 0}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in totals and (found := whole(words[2])) is not None:
            totals[words[1]] += found
    return totals["Read"], totals["Write"]


def _without(used: int | None, droppable: int) -> int | None:
    return None if used is None else max(0, used - droppable)
