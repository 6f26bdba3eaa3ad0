"""Prepare the server's data folder and its key; a folder that is not usable is refused at the start."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from corral.kernel.errors import Conflict, InvalidInput

_SUBFOLDERS: Final = ("run", "logs", "engine", "blobs/code", "blobs/logs")
_KEY_BYTES: Final = 32
_LED: Final = b'"event": "leading"'
_LONGEST_SOCKET_PATH: Final = 107
_LONGEST_SOCKET_NAME: Final = "control.sock.new"


def prepare(folder: Path) -> None:
    """Create the data folder and its subfolders before the server starts.

    Raises InvalidInput if the path is not usable, Conflict if it is not writable.
    """
    folder = folder.absolute()
    if len(str(folder / "run" / _LONGEST_SOCKET_NAME).encode()) > _LONGEST_SOCKET_PATH:
        raise InvalidInput(
            "data-folder-too-long", f"The path {folder} is too long for Unix sockets; use a shorter --data."
        )
    try:
        folder.mkdir(mode=_passable(), parents=True, exist_ok=True)
        for name in _SUBFOLDERS:
            (folder / name).mkdir(mode=_passable() if name == "engine" else 0o700, parents=True, exist_ok=True)
        probe = folder / "run" / f".writable.{os.getpid()}"  # all processes of a server check at the same moment
        probe.write_bytes(b"")
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise InvalidInput("data-folder-is-a-file", f"{folder} is not a folder; choose another with --data.") from None
    except OSError as error:
        raise Conflict(
            "data-folder-not-writable",
            f"The data folder {folder} cannot be written ({error.strerror}); choose another with --data.",
        ) from None


def _passable() -> int:
    """The folder mode: other users' tasks of a root server may pass through to their own folder, but list nothing."""
    return 0o711 if os.getuid() == 0 else 0o700


def read_key(folder: Path) -> bytes:
    """Read the 32-byte key that seals secrets and signs job tokens.

    Raises Conflict if the file is missing or damaged.
    """
    path = folder / "key"
    try:
        key = base64.b64decode(path.read_bytes(), validate=True)
    except (OSError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise Conflict("key-unreadable", f"The key {path} is missing or damaged; put it back from its backup.")
    return key


def make_key(folder: Path) -> None:
    """Create the key if it does not exist; processes that do so at the same moment get the same one.

    Raises Conflict if it cannot be written.
    """
    try:
        if not (folder / "key").exists():
            _write_key(folder)
    except OSError as error:
        raise Conflict(
            "data-folder-not-writable", f"The key cannot be written to {folder} ({error.strerror}); look at its disk."
        ) from None


def _write_key(folder: Path) -> None:
    new = folder / f".key.{os.getpid()}"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(_KEY_BYTES)))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(new, folder / "key")
    finally:
        new.unlink(missing_ok=True)


def left_behind(folder: Path) -> list[str]:
    """Traces of an earlier server in the folder: a key, logs, the engine's folder. A failed first start leaves none."""
    found = []
    if (folder / "key").exists():
        found.append("a key")
    if _holds_anything(folder / "blobs" / "logs") or _has_led(folder / "logs"):
        found.append("logs")
    if _holds_anything(folder / "engine"):
        found.append("an engine folder")
    return found


def _holds_anything(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _has_led(logs: Path) -> bool:
    """Whether a control has led here; a server that never did had nothing to lose."""
    if (logs / "control.log.1").exists():
        return True
    with contextlib.suppress(OSError):
        return any(_LED in line for line in (logs / "control.log").open("rb"))
    return False
