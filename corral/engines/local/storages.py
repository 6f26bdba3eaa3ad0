"""Give tasks of this machine their storages at their paths: as bind mounts, container volumes or symbolic links.

Sources that this machine can mount itself (NFS, and SMB shares with a credentials file) are mounted once and bound for
each task. Their mount point is outside the server's own folder, since deleting that must not reach a file server. All
others are existing folders. Where tasks cannot have their own mount namespace, a storage is a symbolic link, if one can
be created at its path.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from corral.engines.local import processes
from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.model.storages import Mount
from corral.spec.storage import DEFAULT_PLACE

MOUNTS = Path("/run/corral/storages")
"""The folder below which this machine mounts storages."""
_MOUNT_SECONDS: Final = 30
_LOOK_SECONDS: Final = 10.0
"""Seconds for a folder to answer. A folder of an unreachable file server may block its reader forever."""
_DEATH_SECONDS: Final = 5.0
"""Seconds to wait for a killed mount. One that hangs in the kernel may never die."""
_KINDS: Final = {"nfs": "nfs", "samba": "cifs", "azureFile": "cifs"}
"""The storage types that this machine can mount itself, with the kernel's file system types."""
_NOT_HERE: Final = ("unknown filesystem type", "unsupported", "No such device", "bad option; for several filesystems")
_AS_ROOT: Final = ("--mount", "--propagation", "slave")
_AS_USER: Final = ("--user", "--map-current-user", "--keep-caps", *_AS_ROOT)


class BoundStorage(NamedTuple):
    """A storage of one attempt: a folder of this machine, and its path in the task."""

    name: str
    source: str
    path: str
    read_only: bool
    own: bool = False
    """Whether it is one user's folder in a storage: then a link in its place is not followed."""


class LocalStorages:
    """The storages of one server's tasks."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._looks: dict[str, asyncio.Event] = {}
        """Unfinished checks, by folder."""
        self._undead: dict[str, asyncio.subprocess.Process] = {}
        """Killed mounts that have not died yet, by target. They may still mount there."""
        self._namespaces: bool | None = None

    async def bring(self, mounts: Sequence[Mount]) -> None:
        """Mount all storages that these are of, and check that they answer.

        Raises Unavailable while one cannot be mounted or does not answer, InvalidInput for one that this machine can
        never mount.
        """
        await self._mount(mounts)
        for mount in mounts:
            if not mount.is_moved:
                await self._reach(mount, self._source(mount))

    async def _reach(self, mount: Mount, source: str) -> None:
        """Check a folder in a thread of its own, one per folder, as the call may never return."""
        if source not in self._looks:
            loop = asyncio.get_running_loop()
            self._looks[source] = done = asyncio.Event()
            threading.Thread(target=_look, name=f"look {source}", args=(source, loop, done), daemon=True).start()
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._looks[source].wait()
        except TimeoutError:
            raise _away(mount, f"{source} did not answer in {_LOOK_SECONDS:g} seconds") from None
        self._looks.pop(source, None)

    async def _mount(self, mounts: Sequence[Mount]) -> None:
        for mount in mounts:
            if mount.host_path or mount.type in ("folder", "uri"):
                continue
            if mount.type not in _KINDS:
                message = (
                    f"The storage {mount.name} ({mount.type}) cannot be mounted by this machine; mount it yourself, on "
                    "every machine, and name the folder in the document's hostPath."
                )
                raise InvalidInput("storage-not-mountable", message)
            target = self._mounted_at(mount)
            async with self._locks.setdefault(target, asyncio.Lock()):
                await self._bring(mount, target)

    async def _bring(self, mount: Mount, target: str) -> None:
        if is_mounted(target):
            return
        stuck = self._undead.get(target)
        if stuck is not None and stuck.returncode is None:
            raise _away(mount, f"the mount before it (process {stuck.pid}) was killed and hangs in the kernel still")
        self._undead.pop(target, None)
        if os.geteuid() != 0:
            message = (
                f"The storage {mount.name} can be mounted by root alone; mount it, and name the folder in hostPath."
            )
            raise InvalidInput("storage-not-mountable", message)
        os.makedirs(MOUNTS, exist_ok=True)
        os.chmod(MOUNTS, 0o700)  # tasks get storages by bind mounts only; nobody else may enter
        os.makedirs(target, mode=0o711, exist_ok=True)
        process = await _started(mount_command(mount, target))
        try:
            _, said = await asyncio.wait_for(process.communicate(), _MOUNT_SECONDS)
        except TimeoutError:
            raise _away(mount, f"nothing came of it in {_MOUNT_SECONDS} seconds") from None
        finally:
            if process.returncode is None:  # the next mount must not run beside it or its helper
                processes.kill_group(process.pid, signal.SIGKILL)
                if not await _died(process):
                    self._undead[target] = process
        if process.returncode == 0:
            return
        words = " ".join(said.decode(errors="replace").split())[:300]
        if any(each in words for each in _NOT_HERE):
            message = f"The storage {mount.name} cannot be mounted by this machine's kernel: {words}"
            raise InvalidInput("storage-not-mountable", message)
        raise _away(mount, words)

    def bind(self, mounts: Sequence[Mount], attempt: str, uid: int) -> list[BoundStorage]:
        """Return the folders of these storages for one attempt, whose folder is `attempt`. Creates users' own folders.

        Raises NotFound for a missing storage, OSError if a folder cannot be created.
        """
        return [self._bound(mount, attempt, uid) for mount in mounts]

    def _bound(self, mount: Mount, attempt: str, uid: int) -> BoundStorage:
        if mount.is_moved:
            source = f"{attempt}/storages/{mount.name}"
            os.makedirs(f"{attempt}/storages", mode=0o711, exist_ok=True)
            os.mkdir(source, 0o700)
            if uid >= 0:
                os.chown(source, uid, uid)
            return BoundStorage(mount.name, source, mount.path, mount.read_only)
        source = self._source(mount)
        if not os.path.isdir(source):
            raise NotFound("storage-not-here", f"The storage {mount.name} is not on this machine: no folder {source}.")
        if mount.folder:
            source = _own_folder(source, mount, uid)
        return BoundStorage(mount.name, source, mount.path, mount.read_only, bool(mount.folder))

    def _source(self, mount: Mount) -> str:
        """Return the path of a storage on this machine, unless its data are moved."""
        return mount.host_path or (mount.source if mount.type == "folder" else self._mounted_at(mount))

    def namespace(self) -> tuple[str, ...]:
        """Return the command prefix for a new mount namespace, empty where none can be created."""
        if self._namespaces is None:
            words = self._words()
            self._namespaces = bool(words) and _answers((*words, "true"))
        return self._words() if self._namespaces else ()

    def entering(self, pid: int, directory: str, uid: int, groups: Sequence[int] = ()) -> list[str]:
        """Return the command prefix to run in the namespace of a task's process, as its user with some groups.

        Files there may be the job's, even `/etc`, so nobody enters with more rights or gains any there.
        """
        words = [shutil.which("nsenter") or "nsenter", f"--target={pid}", "--mount", f"--wdns={directory}"]
        if os.geteuid() != 0:
            return [*words, "--user", "--preserve-credentials", "--"]
        if uid < 0:
            return [*words, "--"]
        alone = [shutil.which("setpriv") or "setpriv", "--no-new-privs"]
        if not groups:
            return [*alone, "--", *words, f"--setuid={uid}", f"--setgid={uid}", "--"]
        own = [f"--regid={uid}", f"--groups={','.join(map(str, groups))}"]  # nsenter would clear them with its --setgid
        return [*alone, *own, "--", *words, f"--setuid={uid}", "--"]

    def _words(self) -> tuple[str, ...]:
        """Return the words of `unshare`, by its full path because the job chooses its own PATH."""
        program = shutil.which("unshare")
        return (program, *(_AS_ROOT if os.geteuid() == 0 else _AS_USER)) if program else ()

    def _mounted_at(self, mount: Mount) -> str:
        """Return the mount point for a source with its options. A changed document gets another one."""
        said = (mount.type, mount.server, mount.source, mount.account, mount.credentials_file, *mount.options)
        digest = hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:12]
        return str(MOUNTS / f"{mount.name}-{digest}")


def _look(source: str, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    """Ask the kernel about a folder. Only the fact that it answers matters."""
    os.path.isdir(source)
    with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
        loop.call_soon_threadsafe(done.set)


def is_mounted(path: str) -> bool:
    """Return whether something is mounted exactly there.

    Reads mountinfo, since a stat could block on an unreachable server.
    """
    escaped = path.replace("\\", "\\134").replace(" ", "\\040")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        return any(line.split(" ", 5)[4] == escaped for line in mounts)


def mount_command(mount: Mount, target: str) -> list[str]:
    """Return the command that mounts a storage at `target`."""
    options = list(mount.options)
    if mount.type == "nfs":
        source = f"{mount.server}:{mount.source}"
    else:
        source = mount.source if mount.type == "samba" else _azure_address(mount)
        options.append(f"credentials={mount.credentials_file}" if mount.credentials_file else "guest")
    words = ["mount", "-t", _KINDS[mount.type]]
    options += ["nosuid", "nodev"]
    return [*words, "-o", ",".join(options), "--", source, target]


def link_all(bound: Sequence[BoundStorage], uid: int) -> None:
    """Create a symbolic link at each storage's path; for another user (`uid`) only at `/mnt/NAME`, visible to all.

    Raises NotFound if the path is taken, or no link can be created.
    """
    for each in bound:
        if uid >= 0 and each.path != f"{DEFAULT_PLACE}/{each.name}":
            message = (
                f"The storage {each.name} cannot be had at {each.path}: this machine lets tasks mount nothing, and links "
                f"are made for them at {DEFAULT_PLACE}/{each.name} alone; leave out mountPath."
            )
            raise NotFound("storage-not-mountable", message)
        with contextlib.suppress(OSError):
            if os.readlink(each.path) == each.source:
                continue
        try:
            os.makedirs(os.path.dirname(each.path), exist_ok=True)
            os.symlink(each.source, each.path)
        except OSError as error:
            message = (
                f"The storage {each.name} cannot be had at {each.path}: this machine lets tasks mount nothing (it has no "
                f"user namespaces for them), and no link can be made there: {error.strerror}."
            )
            raise NotFound("storage-not-mountable", message) from None


def volumes(bound: Sequence[BoundStorage]) -> list[str]:
    """Return the options that give storages to a container."""
    return [f"--volume={each.source}:{each.path}{':ro' if each.read_only else ''}" for each in bound]


def spec_of(bound: Sequence[BoundStorage], directory: str, uid: int, groups: Sequence[int] = ()) -> bytes:
    """Return the runtime's mount instructions, carried out before it becomes the command (`runtime.mounting`)."""
    mounts = [each._asdict() for each in bound]
    who = {"uid": uid, "groups": list(groups), "drop": os.geteuid() != 0}
    return json.dumps({"mounts": mounts, "directory": directory, **who}).encode()


async def _started(argv: Sequence[str]) -> asyncio.subprocess.Process:
    """Start a process in its own group. If the caller is cancelled, neither it nor its helper is left running."""
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*argv, stdin=quiet, stdout=quiet, stderr=pipe, start_new_session=True)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # asyncio would kill only the process, which may have started its helper
        process = await starting
        processes.kill_group(process.pid, signal.SIGKILL)
        await _died(process)
        raise


async def _died(process: asyncio.subprocess.Process) -> bool:
    """Return whether a killed process is dead within `_DEATH_SECONDS`."""
    try:
        async with asyncio.timeout(_DEATH_SECONDS):
            await process.wait()
    except TimeoutError:
        return False
    return True


def _own_folder(source: str, mount: Mount, uid: int) -> str:
    """Return a user's own folder in a storage, created at the first use."""
    if mount.folder in (".", ".."):
        raise NotFound("storage-not-here", f"The name {mount.folder} cannot be a folder in the storage {mount.name}.")
    place = os.open(source, os.O_PATH | os.O_DIRECTORY)
    try:
        if not _has_folder(place, mount):
            try:
                os.mkdir(mount.folder, 0o700, dir_fd=place)
            except FileExistsError:  # created meanwhile, for another task of the same user
                _has_folder(place, mount)
            else:
                if uid >= 0:
                    _give(place, mount, uid)
    finally:
        os.close(place)
    return f"{source}/{mount.folder}"


def _has_folder(place: int, mount: Mount) -> bool:
    """Return whether the open storage has the user's own folder.

    Raises NotFound if the name is taken by something else.
    """
    try:
        found = os.stat(mount.folder, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        raise _no_folder(mount)
    return True


def _give(place: int, mount: Mount, uid: int) -> None:
    """Give the folder just created to the user, but not anything that somebody put in its place meanwhile.

    Raises NotFound if it cannot be that folder.
    """
    try:
        own = os.open(mount.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _no_folder(mount) from None
        raise
    try:
        makers = (os.geteuid(), uid, os.fstat(place).st_uid)  # a file server may report the share's owner as creator
        if os.fstat(own).st_uid not in makers or os.listdir(own):
            raise _no_folder(mount)
        os.fchown(own, uid, uid)
    finally:
        os.close(own)


def _no_folder(mount: Mount) -> NotFound:
    message = f"In the storage {mount.name} the entry {mount.folder} is not a folder that this user owns."
    return NotFound("storage-not-here", message)


def _azure_address(mount: Mount) -> str:
    return f"//{mount.account}.file.core.windows.net/{mount.source}"


def _away(mount: Mount, why: str) -> Unavailable:
    return Unavailable("storage-away", f"The storage {mount.name} cannot be mounted now: {why}.", retry_after=10)


def _answers(words: Sequence[str]) -> bool:
    try:
        return subprocess.run(words, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
