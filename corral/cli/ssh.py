"""`corral ssh`: OpenSSH's own client in a running task, by a connection that the server ends."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Final

import click

from corral.cli.command_group import CommandGroup
from corral.cli.connection import connect
from corral.cli.logs import chosen_task, split_task
from corral.cli.ssh_config import installed, removed, shown
from corral.cli.ssh_files import SshFiles, SshName, find_program
from corral.kernel.errors import CorralError, Unavailable

if TYPE_CHECKING:
    from corral.client.exec import ExecStream

_PIECE: Final = 64 * 1024


class Ssh(CommandGroup):
    """A group whose first word is a job, where it is none of the commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command that is meant."""
        return super().parse_args(ctx, self._meant(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant, and its words."""
        return super().resolve_command(ctx, self._meant(args))

    def _meant(self, args: list[str]) -> list[str]:
        is_own = not args or args[0] in self.commands or args[0] in ("-h", "--help")
        return args if is_own else ["enter", *args]


@click.group("ssh", cls=Ssh, subcommand_metavar="[OPTIONS] JOB [TASK] [-- COMMAND ...]")
def ssh_command() -> None:
    """Enter a running TASK (default: the only one) of a JOB by OpenSSH's client: a shell, or a COMMAND.

    The task needs no SSH server and no port. `corral ssh config` makes `ssh JOB.corral`, `scp` and editors work.

    \b
    corral ssh digits
    corral ssh digits worker-0 -- nvidia-smi
    corral ssh -L 6006:localhost:6006 digits worker-0
    """


@ssh_command.command("enter", context_settings={"allow_interspersed_args": False})
@click.argument("job")
@click.argument("task", required=False, default="")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("-L", "local", multiple=True, metavar="[BIND:]PORT:localhost:PORT", help="Reach a port of the task here.")
@click.option("-D", "dynamic", multiple=True, metavar="[BIND:]PORT", help="Be a SOCKS proxy to the task's ports.")
@click.option("-N", "idle", is_flag=True, help="Run no command, only forward.")
@click.option("-t/-T", "--tty/--no-tty", default=None, help="With a terminal; default: as ssh decides.")
@click.option("-v", "loud", count=True, help="Show what ssh does; more letters show more.")
def enter(
    job: str,
    task: str,
    command: tuple[str, ...],
    local: tuple[str, ...],
    dynamic: tuple[str, ...],
    idle: bool,
    tty: bool | None,
    loud: int,
) -> None:
    """Enter a task; `enter` may be left out, unless a job is called as one of these commands."""
    from corral.cli.exec import named_task

    task, command = named_task(task, command)
    program = find_program("ssh")
    files = SshFiles.here()
    with connect() as client:
        role, index = chosen_task(client, job, task)
        name = SshName(job, f"{role}-{index}")
        files.prepare(client, name)
    words = [program, "-F", "none", *(word for option in files.options(name) for word in ("-o", option))]
    words += [word for each in local for word in ("-L", each)] + [word for each in dynamic for word in ("-D", each)]
    words += ["-N"] * idle + ([] if tty is None else ["-t" if tty else "-T"]) + ["-v"] * loud
    sys.stdout.flush()
    os.execv(program, [*words, "--", name.host, *command])


@ssh_command.command("config")
@click.argument("job", required=False, default="")
@click.option("--install", is_flag=True, help="Add it to ~/.ssh/config; a further time changes nothing.")
@click.option("--remove", is_flag=True, help="Remove it from ~/.ssh/config.")
def config(job: str, install: bool, remove: bool) -> None:
    """Print the SSH configuration for `JOB.corral` and `TASK.JOB.corral`; with a JOB, editors list it by name.

    \b
    corral ssh config --install
    ssh digits.corral
    scp model.pt worker-0.digits.corral:
    """
    if install and remove:
        raise click.UsageError("Choose one of --install and --remove.")
    names = [SshName.of_job(job)] if job else []
    if install:
        installed(names)
    elif remove:
        removed()
    else:
        click.echo(shown(names), nl=False)


@ssh_command.command("prepare", hidden=True)
@click.argument("host")
def prepare(host: str) -> None:
    """Have the key for a host signed, before ssh connects; a failure is told by `stdio`, which follows."""
    with contextlib.suppress(CorralError, click.UsageError), connect() as client:
        name = SshName.of_host(host)
        found = name if name.task else name.with_task(*chosen_task(client, name.job, ""))
        SshFiles.here().prepare(client, found, host=host)


@ssh_command.command("stdio", hidden=True)
@click.argument("host")
def stdio(host: str) -> int:
    """Carry the bytes of one SSH connection between ssh, which starts this, and the server."""
    from corral.client import config as sign_in
    from corral.client import operations
    from corral.client.exec import ExecStream

    name = SshName.of_host(host)
    if not name.task:
        with connect() as client:
            name = name.with_task(*chosen_task(client, name.job, ""))
    here = sign_in.current()
    path = operations.streams.enter_by_ssh(name.job, *split_task(name.task)).path
    with ExecStream(here.url + path, sign_in.require_token(here), ca=here.ca) as stream:
        threading.Thread(target=_feed, args=(stream,), daemon=True).start()
        for piece in stream:
            while piece:
                piece = piece[os.write(1, piece) :]
    return 0


def _feed(stream: ExecStream) -> None:
    """Pass on what ssh writes until it ends."""
    with contextlib.suppress(CorralError, OSError, ValueError, Unavailable):
        while data := os.read(0, _PIECE):
            stream.send(data)
        stream.end_input()
