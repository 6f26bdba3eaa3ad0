"""Why: to see what is wrong in a task one goes in: a command, a terminal, or a file out of it or into it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corral.cli.logs import split_task
from corral.cli.output import say
from corral.cli.server_of import connect
from corral.kernel.errors import CorralError, InvalidInput, Unavailable

if TYPE_CHECKING:
    from corral.client.exec import ExecStream
    from corral.client.sync import Client

_PIECE = 64 * 1024


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("job")
@click.argument("task")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("-t/-T", "--tty/--no-tty", default=None, help="With a terminal; default: if this is one.")
def exec_command(job: str, task: str, command: Sequence[str], tty: bool | None) -> int:
    """Run COMMAND (default: sh) inside a running TASK of a JOB, in its folder and environment.

    \b
    corral exec digits worker-0
    corral exec digits worker-0 -- nvidia-smi
    """
    role, index = split_task(task)
    terminal = sys.stdin.isatty() and sys.stdout.isatty() if tty is None else tty
    with connect() as client, client.exec(job, role, index, command or ["sh"], tty=terminal) as stream:
        with _raw_terminal(stream) if terminal else contextlib.nullcontext():
            threading.Thread(target=_feed, args=(stream,), daemon=True).start()
            for piece in stream:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
        return stream.exit_code or 0


@click.command("cp")
@click.argument("source")
@click.argument("target")
def cp_command(source: str, target: str) -> None:
    """Copy a file or folder from or to a running task; the task's side is written JOB/TASK:PATH.

    \b
    corral cp digits/worker-0:model.pt .
    corral cp fix.py digits/worker-0:
    """
    away = [side for side in (source, target) if _is_remote(side)]
    if len(away) != 1:
        raise click.UsageError("Exactly one side must be a task's, written JOB/TASK:PATH, such as digits/worker-0:out.")
    with connect() as client:
        if _is_remote(source):
            _fetch(client, source, Path(target))
        else:
            _put(client, Path(source), target)


def _fetch(client: Client, source: str, target: Path) -> None:
    """Bring it as a tar stream, and unpack it where it can do no harm."""
    import tarfile
    import tempfile

    job, role, index, path = _remote(source)
    folder, _, name = path.rstrip("/").rpartition("/")
    base = folder or ("/" if path.startswith("/") else ".")
    if name in ("", "..", "."):
        raise click.UsageError("Name the file or folder to copy after the colon.")
    command = ["tar", "-C", base, "-cf", "-", "--", name]
    inside = target.is_dir()
    into = target if inside else target.parent
    with client.exec(job, role, index, command) as stream, tempfile.TemporaryFile() as packed:
        for piece in stream:
            packed.write(piece)
        if stream.exit_code:
            raise InvalidInput("copy-failed", f"tar could not read {path} in the task; is it there?")
        packed.seek(0)
        with tarfile.open(fileobj=packed) as archive:
            for member in archive:
                if not inside:
                    member.name = target.name + member.name[len(name) :]
                archive.extract(member, into, filter="data")
    say(f"Copied to {into / (name if inside else target.name)}.")


def _put(client: Client, source: Path, target: str) -> None:
    import io
    import tarfile

    if not source.exists():
        raise InvalidInput("no-such-file", f"{source} is not there.")
    job, role, index, path = _remote(target)
    folder, _, name = path.rpartition("/")
    base = folder or ("/" if path.startswith("/") else ".")
    line = f"mkdir -p -- {shlex.quote(base)} && tar -C {shlex.quote(base)} -xf -"
    with client.exec(job, role, index, ["sh", "-c", line]) as stream:
        with tarfile.open(fileobj=_Pipe(stream), mode="w|", bufsize=_PIECE) as archive:  # type: ignore[call-overload]
            archive.add(source, arcname=name or source.name)
        stream.end_input()
        said = io.BytesIO()
        for piece in stream:
            said.write(piece[:1000])
        if stream.exit_code:
            raise InvalidInput(
                "copy-failed", f"The task could not write it: {said.getvalue()[:300].decode(errors='replace')}"
            )
    say(f"Copied to {target}.")


class _Pipe:
    """What tarfile writes to: the standard input of a command in a task."""

    def __init__(self, stream: ExecStream) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.send(data)
        return len(data)


def _is_remote(side: str) -> bool:
    where, colon, _ = side.partition(":")
    return bool(colon) and "/" in where and not where.startswith((".", "/"))


def _remote(side: str) -> tuple[str, str, int, str]:
    where, _, path = side.partition(":")
    job, _, task = where.partition("/")
    return job, *split_task(task), path


def _feed(stream: ExecStream) -> None:
    """Pass standard input on until it ends."""
    with contextlib.suppress(CorralError, OSError, ValueError, Unavailable):
        while data := os.read(sys.stdin.fileno(), _PIECE):
            stream.send(data)
        stream.end_input()


@contextlib.contextmanager
def _raw_terminal(stream: ExecStream) -> Iterator[None]:
    """Every key goes to the task, and the task's terminal is as large as this one."""
    import termios
    import tty

    def tell_size(*_: object) -> None:
        size = os.get_terminal_size()
        stream.resize(size.lines, size.columns)

    before = termios.tcgetattr(sys.stdin)
    former = signal.signal(signal.SIGWINCH, tell_size)
    try:
        tty.setraw(sys.stdin)
        tell_size()
        yield
    finally:
        signal.signal(signal.SIGWINCH, former)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
