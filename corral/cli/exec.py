"""`corral exec`: run a command or a terminal in a running task."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.logs import chosen_task
from corral.kernel.errors import CorralError, Unavailable

if TYPE_CHECKING:
    from corral.client.exec import ExecStream

_PIECE = 64 * 1024
_TASK = re.compile(r"\S+-[0-9]+")


@click.command("exec", context_settings={"allow_interspersed_args": False})
@click.argument("job")
@click.argument("task", required=False, default="")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("-t/-T", "--tty/--no-tty", default=None, help="With a terminal; default: if this is one.")
def exec_command(job: str, task: str, command: tuple[str, ...], tty: bool | None) -> int:
    """Run COMMAND (default: sh) in a running TASK (default: the only one) of a JOB, in its folder and environment.

    \b
    corral exec digits worker-0
    corral exec mynotebook -- pwd
    corral exec digits worker-0 -- nvidia-smi
    """
    task, command = named_task(task, command)
    terminal = sys.stdin.isatty() and sys.stdout.isatty() if tty is None else tty
    with (
        connect() as client,
        client.exec(job, *chosen_task(client, job, task), command or ["sh"], tty=terminal) as stream,
    ):
        with _raw_terminal(stream) if terminal else contextlib.nullcontext():
            threading.Thread(target=_feed, args=(stream,), daemon=True).start()
            for piece in stream:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
        return stream.exit_code or 0


def named_task(task: str, command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the task and the command that the words after a job are; either may be left out."""
    if task and not _TASK.fullmatch(task):  # the word is no task, so it belongs to the command
        task, command = "", (task, *command)
    return task, command[1:] if command[:1] == ("--",) else command


def _feed(stream: ExecStream) -> None:
    """Pass on standard input until it ends."""
    with contextlib.suppress(CorralError, OSError, ValueError, Unavailable):
        while data := os.read(sys.stdin.fileno(), _PIECE):
            stream.send(data)
        stream.end_input()


@contextlib.contextmanager
def _raw_terminal(stream: ExecStream) -> Iterator[None]:
    """Pass every key to the task, and keep the task's terminal at the size of this one."""
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
