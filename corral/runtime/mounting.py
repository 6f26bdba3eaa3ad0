"""Mount a task's storages at their paths without a container, visible to this task only.

`mount SPEC COMMAND…` runs in a mount namespace of the task's own (made by `unshare`), still with the right to mount. It
binds each storage to its path, drops its privileges, becomes the task's user, and runs the command in its folder. It
does all this itself: the job chooses the paths, so no program found there may run with more rights than the task's user
has. A missing path is created if the task's user could create it. Otherwise its parent folder is covered by a tmpfs
with the same content, so that nothing stays on the machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

REFUSED: Final = 126
"""The exit code of a task whose storages cannot be mounted."""
_NOT_FOUND: Final = 127
_HANDLES: Final = "/proc/self/fd"
_NOSUID, _NODEV, _NOEXEC, _NOATIME, _NODIRATIME = 2, 4, 8, 1024, 2048
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _RELATIME = 1, 32, 4096, 16384, 1 << 21
_ST_RELATIME: Final = 4096
_KEPT: Final = _NOSUID | _NODEV | _NOEXEC | _NOATIME | _NODIRATIME
"""Mount flags whose bits are the same in `statvfs`."""
_NO_NEW_PRIVILEGES, _AMBIENT, _CLEAR_ALL = 38, 47, 4


def main(spec_file: str, command: list[str]) -> int:
    """Mount the storages of the spec file and execute the command; returns only on failure."""
    with open(spec_file, encoding="utf-8") as file:
        spec: dict[str, Any] = json.load(file)
    what, uid = f"{_HANDLES} cannot be entered", int(spec["uid"])
    try:
        os.chdir(_HANDLES)  # while no path of the job can be mounted over it
        for mount in sorted(spec["mounts"], key=lambda each: str(each["path"])):
            what = f"the storage {mount['name']} cannot be mounted at {mount['path']}"
            _mount(mount, uid)
        what = f"the working directory {spec['directory']} cannot be entered"
        if uid >= 0 or spec["drop"]:
            _give_up_rights()
        os.chdir(spec["directory"])
        if uid >= 0:
            what = f"the user {uid} cannot be had"
            _become(uid, spec.get("groups", ()))  # a server of before writes none
    except OSError as error:
        print(f"corral: {what}: {error.strerror or error}", file=sys.stderr, flush=True)
        return REFUSED
    return _start(command)


def _start(command: list[str]) -> int:
    """Execute the command; on failure, the exit code that a shell would give."""
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"corral: {command[0]} cannot be started: {error.strerror or error}", file=sys.stderr, flush=True)
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else REFUSED


def _mount(mount: Mapping[str, Any], uid: int) -> None:
    source, path = str(mount["source"]), str(mount["path"])
    if not os.path.isdir(path):
        _make(path, uid)
    if mount.get("own"):
        _bind_own(source, path)
    else:
        _call_mount(source, path, "", _BIND | _RECURSIVE)
    flags = os.statvfs(path).f_flag
    same = (flags & _KEPT) | (_RELATIME if flags & _ST_RELATIME else 0) | _NOSUID | _NODEV
    _call_mount("none", path, "", _BIND | _REMOUNT | same | (_READ_ONLY if mount["read_only"] else 0))


def _bind_own(source: str, path: str) -> None:
    """Bind a user's own folder without following a link: other users may write next to it."""
    handle = os.open(source, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _call_mount(str(handle), path, "", _BIND | _RECURSIVE)  # the working directory is /proc/self/fd
    finally:
        os.close(handle)


def _make(path: str, uid: int) -> None:
    """Create a folder at `path`, really if the task's user may do so, or else in memory."""
    top = path
    missing: list[str] = []
    while not os.path.lexists(top):
        top, name = os.path.split(top)
        missing.insert(0, name)
    handle = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _may_write(os.fstat(handle), uid):
            _make_below(handle, missing, uid)
            return
    finally:
        os.close(handle)
    if top == "/":
        raise OSError(0, "there is no such folder, and none can be made in /; choose a path such as /mnt/data")
    _cover(top)
    os.makedirs(path)


def _may_write(folder: os.stat_result, uid: int) -> bool:
    """Whether the task's user (-1: this process's) may create an entry in a folder."""
    user = os.getuid() if uid < 0 else uid
    if user == 0:
        return True
    if folder.st_uid == user:
        return bool(folder.st_mode & 0o200)
    group = os.getgid() if uid < 0 else uid
    return bool(folder.st_mode & (0o020 if folder.st_gid == group else 0o002))


def _make_below(handle: int, names: list[str], uid: int) -> None:
    """Create nested folders by open handles, so that concurrent changes of the path have no effect."""
    here = os.dup(handle)
    try:
        for name in names:
            os.mkdir(name, 0o755, dir_fd=here)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
            if uid >= 0:
                os.fchown(here, uid, uid)
    finally:
        os.close(here)


def _cover(folder: str) -> None:
    """Cover `folder` by a tmpfs, and bind all its entries into it again, by their handles (`_HANDLES`)."""
    was = os.stat(folder)
    inside: dict[str, tuple[int, os.stat_result, str]] = {}
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        found = os.lstat(path)
        link = os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
        inside[name] = (-1 if link else os.open(path, os.O_PATH | os.O_NOFOLLOW), found, link)
    _call_mount("none", folder, "tmpfs", _NOSUID | _NODEV, f"mode={stat.S_IMODE(was.st_mode):o}")
    for name, (handle, found, link) in inside.items():
        target = os.path.join(folder, name)
        if link:
            os.symlink(link, target)
            continue
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        _call_mount(str(handle), target, "", _BIND | _RECURSIVE)
        os.close(handle)


def _call_mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _give_up_rights() -> None:
    """Drop the right to mount for this process and its successors, and forbid gaining privileges."""
    library = ctypes.CDLL(None, use_errno=True)
    nothing = ctypes.c_ulong(0)
    if library.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), nothing, nothing, nothing) != 0:
        raise OSError(ctypes.get_errno(), "its rights cannot be given up")
    library.prctl(_AMBIENT, ctypes.c_ulong(_CLEAR_ALL), nothing, nothing, nothing)


def _become(uid: int, groups: Sequence[int]) -> None:
    """Become the task's user, with the groups of its devices alone; because it was root, this drops all capabilities."""
    os.setgroups(groups)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
