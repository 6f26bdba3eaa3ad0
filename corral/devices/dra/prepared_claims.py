"""The driver's durable record of prepared claims, which keeps a device out of a second claim.

Kubernetes does not refuse a device in two claims. One file per prepared claim is written atomically (temporary file,
fsync, rename, fsync of the folder). The files lie in the kubelet's root, so wiping that also wipes the records of its
containers. An unreadable file stops the start: ignoring it could give a device twice.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, CorralError, InvalidInput

_UID: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


class Given(msgspec.Struct, frozen=True):
    """One device given to one request of a claim."""

    request: str
    pool: str
    device: str
    shared: bool = False
    """Whether the claim has admin access, which does not exclude other claims from the device."""


class Entry(msgspec.Struct, frozen=True):
    """One prepared claim."""

    uid: str
    namespace: str
    name: str
    boot: str
    """The boot id at prepare time. No container of an earlier boot still runs."""
    given: tuple[Given, ...]
    cdi: dict[str, Any]
    """The claim's CDI document, kept so that it can be rewritten."""

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name} ({self.uid})"


class Ledger:
    """The prepared claims of one driver on this node. Call `close` when done."""

    def __init__(self, folder: Path) -> None:
        """Read the folder, creating it if missing.

        Raises Conflict when another driver runs, InvalidInput for a damaged file.
        """
        self._folder = folder / "claims"
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _locked(folder / "lock")
        try:
            self._entries = {entry.uid: entry for entry in map(_read, sorted(self._folder.glob("*.json")))}
        except CorralError:
            self.close()
            raise
        for leftover in self._folder.glob(".*.tmp"):
            leftover.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the folder's lock."""
        os.close(self._lock)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def get(self, uid: str) -> Entry | None:
        """Return the entry of a claim."""
        return self._entries.get(uid)

    def holders(self, given: Iterable[Given], but: str) -> list[tuple[Given, Entry]]:
        """List the entries of claims other than `but` that hold one of the devices exclusively."""
        wanted = {(each.pool, each.device): each for each in given if not each.shared}
        return [
            (wanted[each.pool, each.device], entry)
            for entry in self._entries.values()
            if entry.uid != but
            for each in entry.given
            if not each.shared and (each.pool, each.device) in wanted
        ]

    def reserve(self, entry: Entry) -> None:
        """Reserve the devices in memory; `keep` writes them. Raises Conflict when another claim has one."""
        for each, holder in self.holders(entry.given, entry.uid):
            raise Conflict(
                "device-taken", f"Device {each.device} is prepared for {holder}; it is given once at a time."
            )
        self._entries[entry.uid] = entry

    def keep(self, entry: Entry) -> None:
        """Write the entry to disk, synced when this returns."""
        write_whole(self._folder / f"{checked_uid(entry.uid)}.json", msgspec.json.encode(entry))

    def erase(self, uid: str) -> None:
        """Remove the entry from disk, synced when this returns. Call `free` afterwards."""
        with suppress(FileNotFoundError):
            (self._folder / f"{checked_uid(uid)}.json").unlink()
        _sync_folder(self._folder)

    def free(self, uid: str) -> None:
        """Free the claim's devices in memory."""
        self._entries.pop(uid, None)


def checked_uid(uid: str) -> str:
    """Return the UID if it is safe in a file name. Raises InvalidInput otherwise."""
    if not _UID.fullmatch(uid):
        raise InvalidInput("invalid-uid", "The claim's UID is not one that Kubernetes gives.")
    return uid


def write_whole(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write `content` to `path` atomically and durably."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Conflict("driver-runs", f"Another device plugin of this driver runs; it holds {path}.") from None
    return descriptor


def _read(path: Path) -> Entry:
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        sentence = f"{path} is damaged ({error}). Remove it once no container of claim {path.stem} runs."
        raise InvalidInput("damaged-ledger", sentence) from None
    if entry.uid != path.stem:
        raise InvalidInput("damaged-ledger", f"{path} is about another claim ({entry.uid}).")
    return entry
