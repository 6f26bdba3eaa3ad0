"""The folder of an attempt: its lock and its record, from which a restarted server recovers everything.

```
ATTEMPT/                 created exclusively before anything is spawned
  launch.NONCE           the launch record (ports, container, cgroups); the nonce binds a shim to this very folder
  pid                    created exclusively by the shim: boot id and its /proc/self/stat; `-` when a server claimed it
  stop                   a requested stop: signal and when to kill, so that escalation survives the server
  ended                  why the engine itself ended the attempt (killed after the grace, out of memory, tombstone)
  outside                created by the shim if the task could not enter its control group: the command was not started
  exit.CODE              created by the shim when the command ended
  mounts                 the mounts of the task alone, where it has storages
  storages/              the storages of the task whose data are copied
  private/               owned by the task's user: plan, token and secrets for the runtime, which removes them, and its
                         report, `result`
  work/                  the working folder, when the job names none; a link where later attempts find it again
```

The files of a folder, and their meaning after a crash of the server (a dropped attempt may be started again):

| found | meaning |
|---|---|
| `exit.CODE` | ended with that code |
| `ended`, no process | ended by the engine, for the reason in it |
| `outside`, no process | never started, and not to be started without its limits |
| `pid` of another boot | the machine restarted |
| `pid`, process alive | running: adopted |
| `pid`, process gone | the shim was killed (its group too, if none of its processes is left) |
| no `pid`, no process | never started: the server claims `pid`, so a late shim gives up, and drops the folder |
| no `pid`, or no folder, but processes | the record was removed: they are killed, and the end is reported |
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from corral.engines.local.processes import parse_stat
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.runtime.process import Identity

_log = logging.getLogger(__name__)
CLAIMED = "-"
T = TypeVar("T")
_MAX_RESULT = 65536
_MAX_REASON = 4000


class LaunchRecord(msgspec.Struct, frozen=True):
    """An attempt's launch, as the engine needs it later: ports, limits, container, control groups and uid."""

    node: str
    ports: dict[str, tuple[int, ...]] = {}
    memory_bytes: int = 0
    container: str = ""
    """The name of its container, "" for none."""
    container_runtime: str = ""
    cgroups: tuple[str, ...] = ()
    """The control groups created for it."""
    uid: int = -1
    """The uid of its processes, -1 for the server's own."""
    device_groups: tuple[int, ...] = ()
    """The groups of its processes, by which they open its devices."""
    directory: str = ""
    """The folder in which the command runs."""
    runtime: bool = False
    """Whether the runtime runs between shim and command."""
    mounted: bool = False
    """Whether it has its own mount namespace, with its storages."""


class StopRecord(msgspec.Struct, frozen=True):
    """A requested stop. `kill_at` is in seconds since boot, so that a jumping clock does not move it."""

    signal: int
    kill_at: float


class EndRecord(msgspec.Struct, frozen=True):
    """The engine's own reason for the end, written before the engine acts on it."""

    code: int
    reason: str
    signal: int = 0


class AttemptFolder:
    """The files of one attempt. Every write is atomic, so a crash leaves a state of the table above."""

    __slots__ = ("attempt", "nonce", "path")

    def __init__(self, root: str, attempt: AttemptId) -> None:
        self.attempt = attempt
        self.path = f"{root}/{attempt}"
        self.nonce = ""

    def create(self, record: LaunchRecord, *, work: bool, kept: str = "") -> None:
        """Create the folder and its launch file. `kept` is a folder that outlives it, for its working folder.

        Raises FileExistsError when the attempt has a folder already: it was started or ended before.
        """
        os.mkdir(self.path, 0o711)
        self.nonce = secrets.token_hex(8)
        self._write(f"launch.{self.nonce}", msgspec.json.encode(record))
        if work and kept:
            os.makedirs(kept, 0o700, exist_ok=True)
            os.symlink(kept, f"{self.path}/work")
        elif work:
            os.mkdir(f"{self.path}/work", 0o700)

    def bury(self, end: EndRecord) -> None:
        """Create the tombstone of an attempt that must never start.

        Raises FileExistsError when it has a folder already.
        """
        temporary = f"{self.path}.{secrets.token_hex(4)}.new"
        os.mkdir(temporary, 0o711)
        _write(f"{temporary}/ended", msgspec.json.encode(end))
        try:
            os.rename(temporary, self.path)
        except OSError as error:
            shutil.rmtree(temporary)
            raise FileExistsError(self.path) from error

    def claim(self) -> bool:
        """Claim the attempt before a late shim does. False when the shim was first."""
        try:
            handle = os.open(f"{self.path}/pid", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w") as file:
            file.write(f"{CLAIMED}\n")
        return True

    def claimed(self) -> bool:
        """Return whether an earlier server claimed the attempt."""
        return Path(self.path, "pid").read_text(errors="replace").strip() == CLAIMED

    def process_time(self) -> float:
        """Return when the shim recorded itself, in seconds since 1970."""
        return os.stat(f"{self.path}/pid").st_mtime

    def process(self) -> Identity | None:
        """Return the shim as it recorded itself; None if it has not, was killed meanwhile, or its record is damaged."""
        try:
            text = Path(self.path, "pid").read_text(errors="replace")
        except FileNotFoundError:
            return None
        if not text.endswith("\n") or text.strip() == CLAIMED:
            return None
        boot, _, line = text.partition(" ")
        try:
            shim = parse_stat(line)
        except ValueError:
            return None
        return Identity(boot, shim.pid, shim.start)

    def removed(self) -> bool:
        """Return whether this folder, or its launch file, was removed.

        False while the folder of all attempts cannot be read (a disk that is away), since nobody knows then.
        """
        try:
            os.stat(f"{self.path}/launch.{self.nonce}")
        except FileNotFoundError:
            return os.path.isdir(os.path.dirname(self.path))
        except OSError:
            return False
        return False

    def launch(self) -> LaunchRecord | None:
        """Return the launch record, None if the server was killed before it was written."""
        for name in os.listdir(self.path):
            if name.startswith("launch.") and not name.endswith(".new"):
                self.nonce = name.removeprefix("launch.")
                return _decode(f"{self.path}/{name}", LaunchRecord)
        return None

    def exit_code(self) -> int | None:
        """Return the command's exit code as recorded by the shim, None without one or without the folder."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return None
        for name in names:
            if name.startswith("exit."):
                return int(name.removeprefix("exit."))
        return None

    def outside(self) -> bool:
        """Return whether the task could not enter its control group, so that its command was not started."""
        return os.path.exists(f"{self.path}/outside")

    def exit_time(self, code: int) -> float:
        """Return when the command ended, in seconds since 1970."""
        return os.stat(f"{self.path}/exit.{code}").st_mtime

    def result(self) -> str:
        """Return the runtime's report as one sentence, "" if there is none."""
        # The task can write this file: it may have been replaced by a link or a pipe.
        try:
            handle = os.open(f"{self.path}/private/result", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            raw = os.read(handle, _MAX_RESULT) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
        finally:
            os.close(handle)
        try:
            return str(msgspec.json.decode(raw, type=dict).get("message", ""))[:_MAX_REASON] if raw else ""
        except msgspec.DecodeError:
            return "the task's own report cannot be read"

    def stop(self) -> StopRecord | None:
        """Return the requested stop, or None."""
        return _decode(f"{self.path}/stop", StopRecord)

    def ended(self) -> EndRecord | None:
        """Return the engine's own reason for the end, or None."""
        return _decode(f"{self.path}/ended", EndRecord)

    def write_stop(self, stop: StopRecord) -> None:
        """Record a stop, replacing an earlier one."""
        self._write("stop", msgspec.json.encode(stop))

    def write_ended(self, end: EndRecord) -> None:
        """Record why the engine ends the attempt. The first reason stays.

        A write error is only logged: ending the attempt and reporting its end matter more.
        """
        try:
            if self.ended() is None:
                self._write("ended", msgspec.json.encode(end))
        except OSError as error:
            _log.warning("Why %s ended could not be recorded: %s", self.attempt, error)

    def write_private(self, name: str, content: bytes, uid: int) -> str:
        """Write a 0600 file that only the task's user can read and remove. Return its path."""
        folder = f"{self.path}/private"
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o700)
            if uid >= 0:
                os.chown(folder, uid, -1)
        handle = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            if uid >= 0:
                os.fchown(handle, uid, -1)
            file.write(content)
        return f"{folder}/{name}"

    def write_own(self, name: str, content: bytes) -> str:
        """Write a 0600 file of the server's own, which the task's user can neither read nor replace.

        Return its path.
        """
        path = f"{self.path}/{name}"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return path

    def discard(self, trash: str) -> None:
        """Move the folder to the trash by renaming. The caller deletes its content, which may take longer.

        A folder that is already gone is no error.
        """
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path, f"{trash}/{self.attempt}.{secrets.token_hex(4)}")

    def _write(self, name: str, content: bytes) -> None:
        path = f"{self.path}/{name}"
        temporary = f"{path}.new"
        _write(temporary, content)
        os.rename(temporary, path)


def attempts_in(root: str) -> list[AttemptId]:
    """Return the attempts that have a folder, oldest job first. Removes leftovers of interrupted writes."""
    found = []
    for name in sorted(os.listdir(root)):
        if name.endswith(".new"):
            shutil.rmtree(f"{root}/{name}", ignore_errors=True)
            continue
        try:
            parse_attempt_id(name)
        except ValueError:
            continue
        found.append(AttemptId(name))
    return found


def _write(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def _decode(path: str, kind: type[T]) -> T | None:
    """Decode a record; None if it is missing, or a power cut emptied it."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        _log.warning("%s cannot be read and counts as missing: %s", path, error)
        return None


def empty(folder: str) -> None:
    """Remove everything in a folder, as far as possible."""
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        if not _removed_at_once(path):
            shutil.rmtree(path, ignore_errors=True)


def _removed_at_once(folder: str) -> bool:
    """Remove a folder with nothing but files and empty folders in it; False when there is more, or it is none.

    That is how most attempts leave theirs, and less work than removing any tree. No link is followed.
    """
    try:
        if os.path.islink(folder):
            return False
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    os.rmdir(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        return False
    return True
