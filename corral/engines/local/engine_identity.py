"""Identify the local engine that holds the tasks of a database, by its machine and data folder.

A local engine finds its tasks in its folder and among its machine's processes. Another engine that took the lead on the
same database would find none of them and start them all again.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from corral.model.store_writes import EngineHome
from corral.runtime.process import boot_id

_MACHINE_ID = Path("/etc/machine-id")


def home_of(folder: Path) -> EngineHome:
    """Return the home of the engine whose records are in `folder`. Its name is created once and stays in the folder.

    Raises OSError.
    """
    name = _name_in(folder)
    if not name:
        fresh = folder / f"name.{os.getpid()}"
        fresh.write_text(secrets.token_hex(16))
        try:
            os.link(fresh, folder / "name")
        except FileExistsError:  # another process of this server was faster
            pass
        finally:
            fresh.unlink()
        name = _name_in(folder)
    return EngineHome(name, str(folder.absolute()), socket.gethostname(), _machine_id(), boot_id())


def is_same(before: EngineHome, now: EngineHome) -> bool:
    """Return whether the recorded home is the present one, possibly moved within its machine."""
    if before.name != now.name or not _same_machine(before, now):
        return False
    return before.folder == now.folder or _name_in(Path(before.folder)) != now.name


def _same_machine(before: EngineHome, now: EngineHome) -> bool:
    if before.boot_id == now.boot_id:
        return True
    if before.machine or now.machine:
        return before.machine == now.machine
    return before.host == now.host


def _name_in(folder: Path) -> str:
    try:
        return (folder / "name").read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _machine_id() -> str:
    try:
        return _MACHINE_ID.read_text().strip()
    except OSError:
        return ""
