"""Find every attempt of the servers before this one: by its folder, or by its processes where the folder is gone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from corral.engines.local import cgroups, processes
from corral.engines.local.containers import RUNTIMES, container_name
from corral.engines.local.folders import AttemptFolder, EndRecord, LaunchRecord, attempts_in
from corral.engines.local.live import FOLDER_GONE, NEVER_STARTED, POD_EXTERNAL_DELETED, STOP_REQUESTED, LiveAttempt
from corral.kernel.ids import AttemptId
from corral.runtime.process import Identity


def recover(root: str, trash: str, groups: Mapping[AttemptId, tuple[str, ...]]) -> list[LiveAttempt]:
    """Every attempt of the engine whose attempts are in `root`; nothing is signalled and nothing watched yet.

    `groups` are the control groups of its attempts that are there.
    An attempt that no shim has, or ever will have, is dropped, so that a repeated start is its first; unless it was to be
    stopped: then that is its end. One whose record was removed while it ran comes with that as its end.
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
    """An attempt as its folder tells it, None for one that is dropped; `pids` are its processes."""
    live = LiveAttempt(folder.attempt, folder, folder.launch() or _record_from(folder.attempt, pids, groups))
    live.process, live.stop, live.end = folder.process(), folder.stop(), folder.ended()
    if live.process is not None or live.end is not None or folder.exit_code() is not None:
        return live
    ours = folder.claim() or folder.claimed()
    if not ours:  # the shim has taken it since the look above
        live.process = folder.process() or _owner(folder)
        if live.process is not None:
            return live
    late_shim = ours and all(_is_waiting_shim(pid, folder) for pid in pids)
    if pids and not late_shim:
        live.end = EndRecord(POD_EXTERNAL_DELETED, FOLDER_GONE)
    elif live.stop is not None:
        live.end = EndRecord(STOP_REQUESTED, NEVER_STARTED)
    else:
        folder.discard(trash)
        return None
    folder.write_ended(live.end)
    return live


def _is_waiting_shim(pid: int, folder: AttemptFolder) -> bool:
    """Whether a process is the attempt's shim before it took the right to run it: now it never will."""
    return folder.path in processes.arguments(pid) and not processes.first_child(pid)


def _owner(folder: AttemptFolder) -> Identity | None:
    """The attempt's shim where it lives and its record is not complete: it writes it just now."""
    for pid, attempt in processes.marked():
        shim = processes.stat(pid)
        if attempt == folder.attempt and shim and shim.session == pid and folder.path in processes.arguments(pid):
            return Identity(processes.boot_id(), pid, shim.start)
    return None


def _of_engine(root: str, attempt: str, pids: list[int]) -> bool:
    """Whether an attempt without a folder is of the engine of `root`, and not of another server on this machine."""
    return any(processes.variable(pid, processes.FOLDER) == f"{root}/{attempt}" for pid in pids)


def _lost(root: str, attempt: AttemptId, pids: list[int], groups: tuple[str, ...]) -> LiveAttempt:
    end = EndRecord(POD_EXTERNAL_DELETED, FOLDER_GONE)
    return LiveAttempt(attempt, AttemptFolder(root, attempt), _record_from(attempt, pids, groups), end=end)


def _record_from(attempt: AttemptId, pids: list[int], groups: tuple[str, ...]) -> LaunchRecord:
    """What must be known to end an attempt whose record is gone: its groups, and the container that a client names."""
    name = container_name(attempt)
    for pid in pids:
        words = processes.arguments(pid)
        if f"--name={name}" in words and os.path.basename(words[0]) in RUNTIMES:
            return LaunchRecord("", container=name, container_runtime=words[0], cgroups=groups)
    return LaunchRecord("", cgroups=groups)
