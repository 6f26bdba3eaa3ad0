"""Find the attempts of earlier servers: by their folders, or by their processes if the folder is gone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from corral.engines.local import cgroups, processes
from corral.engines.local.attempt_folder import AttemptFolder, EndRecord, LaunchRecord, attempts_in
from corral.engines.local.containers import RUNTIMES, container_name
from corral.engines.local.live_attempt import FOLDER_GONE, NEVER_STARTED, LiveAttempt
from corral.kernel.ids import AttemptId
from corral.model.exits import EXTERNALLY_DELETED, STOP_REQUESTED
from corral.runtime.process import Identity


def recover(root: str, trash: str, groups: Mapping[AttemptId, tuple[str, ...]]) -> list[LiveAttempt]:
    """Return every attempt of the engine whose folders are in `root`. Nothing is signalled or watched yet.

    `groups` are the existing control groups of its attempts. An attempt without a shim, now and later, is dropped, so
    that a repeated start is its first. One that was to be stopped gets that as its end instead. One whose folder was
    removed while it ran gets that as its end.
    """
    carrying: dict[str, list[int]] = {}
    for pid, attempt in processes.marked():
        carrying.setdefault(attempt, []).append(pid)
    for attempt, inside in groups.items():
        if pids := cgroups.members(inside):
            carrying.setdefault(attempt, []).extend(pids)
    found: list[LiveAttempt] = []
    with_folder = attempts_in(root)
    for attempt in with_folder:
        folder = AttemptFolder(root, attempt)
        live = _from_folder(folder, trash, carrying.get(attempt, []), groups.get(attempt, ()))
        if live is not None:
            found.append(live)
    for attempt in sorted(map(AttemptId, set(carrying).difference(with_folder))):
        if attempt in groups or _of_engine(root, attempt, carrying[attempt]):
            found.append(_lost(root, attempt, carrying[attempt], groups.get(attempt, ())))
    return found


def _from_folder(folder: AttemptFolder, trash: str, pids: list[int], groups: tuple[str, ...]) -> LiveAttempt | None:
    """Return the attempt of a folder, None if it is dropped. `pids` are its processes."""
    live = LiveAttempt(folder.attempt, folder, folder.launch() or _record_from(folder.attempt, pids, groups))
    live.process, live.stop, live.end = folder.process(), folder.stop(), folder.ended()
    if live.process is not None or live.end is not None or folder.exit_code() is not None:
        return live
    ours = folder.claim() or folder.claimed()
    if not ours:  # the shim has claimed it since the check above
        live.process = folder.process() or _owner(folder)
        if live.process is not None:
            return live
    late_shim = ours and all(_is_waiting_shim(pid, folder) for pid in pids)
    if pids and not late_shim:
        live.end = EndRecord(EXTERNALLY_DELETED, FOLDER_GONE)
    elif live.stop is not None:
        live.end = EndRecord(STOP_REQUESTED, NEVER_STARTED)
    else:
        folder.discard(trash)
        return None
    folder.write_ended(live.end)
    return live


def _is_waiting_shim(pid: int, folder: AttemptFolder) -> bool:
    """Return whether a process is the attempt's shim before its claim. It can no longer claim the attempt."""
    return folder.path in processes.arguments(pid) and not processes.first_child(pid)


def _owner(folder: AttemptFolder) -> Identity | None:
    """Return the attempt's live shim whose record is incomplete because it is just writing it."""
    for pid, attempt in processes.marked():
        shim = processes.stat(pid)
        if attempt == folder.attempt and shim and shim.session == pid and folder.path in processes.arguments(pid):
            return Identity(processes.boot_id(), pid, shim.start)
    return None


def _of_engine(root: str, attempt: str, pids: list[int]) -> bool:
    """Return whether an attempt without a folder belongs to this engine, and not to another server on this machine."""
    return any(processes.variable(pid, processes.FOLDER) == f"{root}/{attempt}" for pid in pids)


def _lost(root: str, attempt: AttemptId, pids: list[int], groups: tuple[str, ...]) -> LiveAttempt:
    end = EndRecord(EXTERNALLY_DELETED, FOLDER_GONE)
    return LiveAttempt(attempt, AttemptFolder(root, attempt), _record_from(attempt, pids, groups), end=end)


def _record_from(attempt: AttemptId, pids: list[int], groups: tuple[str, ...]) -> LaunchRecord:
    """Return the record needed to end an attempt that lost its own: its groups, and its container's name and runtime."""
    name = container_name(attempt)
    for pid in pids:
        words = processes.arguments(pid)
        if f"--name={name}" in words and os.path.basename(words[0]) in RUNTIMES:
            return LaunchRecord("", container=name, container_runtime=words[0], cgroups=groups)
    return LaunchRecord("", cgroups=groups)
