"""`corral cp`: copy a file or folder from or to a running task, as a tar stream.

A task may send anything. Its archive is checked header by header as it arrives, written to a temporary file, and
unpacked only when all of it has arrived and passed the checks.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shlex
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from corral.cli.connection import connect
from corral.cli.logs import chosen_task
from corral.cli.output import say
from corral.kernel.errors import CorralError, InvalidInput
from corral.runtime.unpack import Limits, TooLarge, UnsafeArchive, entries, write

if TYPE_CHECKING:
    from corral.client.exec import ExecStream
    from corral.client.sync import Client

_PIECE: Final = 64 * 1024
_PADDING: Final = 1024**2
"""Bytes read after an archive's end, or after data that is not an archive, to reach the command's exit code."""
_SAID: Final = 300
"""Characters shown of the output of a command in a task."""
_LIMITS: Final = Limits(entries=1_000_000, total_bytes=1024**4, name_bytes=256 * 1024**2)


@click.command("cp")
@click.argument("source")
@click.argument("target")
def cp_command(source: str, target: str) -> None:
    """Copy a file or folder from or to a running task; the remote side is JOB/TASK:PATH, or JOB:PATH.

    \b
    corral cp digits/worker-0:model.pt .
    corral cp fix.py digits/worker-0:
    """
    away = [side for side in (source, target) if _is_remote(side)]
    if len(away) != 1:
        raise click.UsageError(
            "Exactly one side must be a task's, written JOB/TASK:PATH or, of a job of one task, JOB:PATH."
        )
    with connect() as client:
        if _is_remote(source):
            _fetch(client, source, Path(target))
        else:
            _put(client, Path(source), target)


def _fetch(client: Client, source: str, target: Path) -> None:
    job, role, index, path = _remote(client, source)
    folder, _, name = path.rstrip("/").rpartition("/")
    base = folder or ("/" if path.startswith("/") else ".")
    if name in ("", "..", "."):
        raise click.UsageError("Name the file or folder to copy after the colon.")
    inside = target.is_dir()
    into, called = (target, name) if inside else (target.parent, target.name)
    with client.exec(job, role, index, ["tar", "-C", base, "-cf", "-", "--", name]) as stream:
        keep(stream, name, into, called)
    say(f"Copied to {into / called}.")


def keep(stream: ExecStream, name: str, into: Path, called: str) -> None:
    """Unpack the tar of `name` that a command in a task writes, as `called` in the folder `into`.

    Raises InvalidInput `copy-failed` when the command fails or a file cannot be written. Nothing is written when it
    raises `copy-too-large`, or `unsafe-copy` for a broken archive or one that would write anything else.
    """
    around = next(each for each in (into.absolute(), *into.absolute().parents) if each.is_dir())
    bound = min(_LIMITS.total_bytes, shutil.disk_usage(around).free // 2)  # both copies exist for a while
    try:
        with tempfile.TemporaryFile(dir=around) as packed:
            _receive(stream, packed, name, _LIMITS._replace(total_bytes=bound))
            if stream.exit_code:
                raise InvalidInput("copy-failed", f"tar could not read {name} in the task; is it there?")
            packed.seek(0)
            place(packed, name, into, called)
    except TooLarge:
        message = (
            f"{name} has more than the {bound:,} bytes that there is room for in {around}, where it lies twice for a "
        )
        raise InvalidInput("copy-too-large", f"{message}while; make room, or copy a part of it.") from None
    except UnsafeArchive as error:
        raise InvalidInput("unsafe-copy", f"What the task sent is not copied: {error}.") from None
    except OSError as error:
        raise InvalidInput("copy-failed", f"{error.filename or into} cannot be written: {error.strerror}.") from None


def _receive(stream: ExecStream, packed: IO[bytes], name: str, limits: Limits) -> None:
    """Write an archive to a file as it arrives, and stop at the first header that is refused."""
    arriving = _Arriving(stream, packed)
    count = 0
    try:
        for _, member, plain in entries(arriving, limits, "r|"):
            _check(member, plain, name)
            count += 1
        arriving.finish()
    except UnsafeArchive:
        with contextlib.suppress(UnsafeArchive):
            arriving.finish()  # a failed command reports its exit code at the end
        if arriving.failed is not None:
            raise arriving.failed from None
        if not stream.exit_code:
            raise
    if not count and not stream.exit_code:
        raise UnsafeArchive("it is empty")


def place(packed: IO[bytes], name: str, into: Path, called: str) -> None:
    """Unpack an archive of `name` as `called` in a folder, which is created if missing.

    Raises UnsafeArchive, OSError.
    """
    into.mkdir(parents=True, exist_ok=True)
    target = os.path.realpath(into)
    if not _replaceable(os.path.join(target, called)):
        raise UnsafeArchive(f"{str(into / called)!r} is there already and is neither file nor folder")
    for opened, member, plain in entries(packed, _LIMITS, "r:"):
        _check(member, plain, name)
        if member.islnk():
            member.linkname = called + posixpath.normpath(member.linkname)[len(name) :]
        write(opened, member, called + plain[len(name) :], target, faithful=True)


def _check(member: tarfile.TarInfo, plain: str, name: str) -> None:
    """Raise UnsafeArchive for an entry outside of the requested path, or a link that leads out of it."""
    if not _below(plain, name):
        raise UnsafeArchive(f"{member.name[:100]!r} was not asked for")
    if member.issym():
        leads = posixpath.normpath(posixpath.join(posixpath.dirname(plain), member.linkname))
        if not _below(leads, name):
            raise UnsafeArchive(f"the link {member.name[:100]!r} leads out of {name}")


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")


def _replaceable(path: str) -> bool:
    try:
        found = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(found) or stat.S_ISDIR(found)


class _Arriving:
    """The file that tarfile reads: the output of a command, copied into another file as well."""

    def __init__(self, pieces: Iterable[bytes], packed: IO[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self._packed = packed
        self._rest = b""
        self.failed: CorralError | None = None

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        taken: list[bytes] = []
        while size:
            self._rest = self._rest or self._next()
            if not self._rest:
                break
            taken.append(self._rest[:size])
            self._rest = self._rest[size:]
            size -= len(taken[-1])
        data = b"".join(taken)
        self._packed.write(data)
        return data

    def finish(self) -> None:
        """Read on to the end of the command.

        Raises UnsafeArchive when more than `_PADDING` bytes follow.
        """
        left = _PADDING - len(self._rest)
        while piece := self._next():
            left -= len(piece)
            if left < 0:
                raise UnsafeArchive(f"more than {_PADDING} bytes follow its end")

    def _next(self) -> bytes:
        if self.failed is not None:
            raise self.failed
        try:
            return next((piece for piece in self._pieces if piece), b"")
        except CorralError as error:
            self.failed = error
            raise


def _put(client: Client, source: Path, target: str) -> None:
    if not source.exists():
        raise InvalidInput("no-such-file", f"{source} is not there.")
    job, role, index, path = _remote(client, target)
    folder, _, name = path.rpartition("/")
    base = folder or ("/" if path.startswith("/") else ".")
    line = f"mkdir -p -- {shlex.quote(base)} && tar -C {shlex.quote(base)} -xf -"
    with client.exec(job, role, index, ["sh", "-c", line]) as stream:
        with tarfile.open(fileobj=_Pipe(stream), mode="w|", bufsize=_PIECE) as archive:  # type: ignore[call-overload]
            archive.add(source, arcname=name or source.name)
        stream.end_input()
        said = b""
        for piece in stream:
            said = (said + piece[:1000])[: 4 * _SAID]
        if stream.exit_code:
            shown = "".join(each if each.isprintable() else " " for each in said.decode(errors="replace"))
            raise InvalidInput("copy-failed", f"The task could not write it: {shown[:_SAID].strip()}")
    say(f"Copied to {target}.")


class _Pipe:
    """The file that tarfile writes to: the standard input of a command in a task."""

    def __init__(self, stream: ExecStream) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.send(data)
        return len(data)


def _is_remote(side: str) -> bool:
    where, colon, _ = side.partition(":")
    return bool(colon and where) and not where.startswith((".", "/"))


def _remote(client: Client, side: str) -> tuple[str, str, int, str]:
    where, _, path = side.partition(":")
    job, _, task = where.partition("/")
    return job, *chosen_task(client, job, task), path
