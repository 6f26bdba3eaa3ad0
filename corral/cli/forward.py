"""`corral forward`: a local port that forwards to a port of a running task, such as a notebook's."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Final

import click

from corral.cli.connection import connect
from corral.cli.logs import chosen_task
from corral.cli.output import say
from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from corral.client.exec import ExecStream
    from corral.client.sync import Client

_PIECE: Final = 64 * 1024


@click.command("forward")
@click.argument("job")
@click.argument("task", required=False, default="")
@click.argument("port", default="")
@click.option(
    "--local", "local", type=click.IntRange(0, 65535), default=0, help="The port here; default: any free one."
)
def forward_command(job: str, task: str, port: str, local: int) -> None:
    """Forward a local port to a PORT (name or number) of a running TASK of a JOB; default: the only one.

    Prints the local address; for a notebook, the whole URL. Ctrl-C ends it.

    \b
    corral forward mynotebook
    corral forward digits worker-0 tensorboard --local 6006
    """
    with connect() as client:
        role, index = chosen_task(client, job, task)
        task = f"{role}-{index}"
        known = client.ports(job, role, index)
        port = _chosen(port, known["ports"], task)
        try:
            listener = socket.create_server(("127.0.0.1", local))
        except OSError as error:
            raise InvalidInput("port-taken", f"Port {local} cannot be had here: {error.strerror}.") from None
        with listener:
            click.echo(f"http://127.0.0.1:{listener.getsockname()[1]}{known.get('path', '')}")
            say("Ctrl-C ends it.")
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    caller, _ = listener.accept()
                    words = (client, caller, (job, role, index, port))
                    threading.Thread(target=_join, args=words, daemon=True).start()


def _chosen(port: str, ports: dict[str, list[int]], task: str) -> str:
    names = ", ".join(sorted(ports)) or "none"
    if port:
        if port not in ports and port not in {str(number) for each in ports.values() for number in each}:
            raise NotFound("no-such-port", f"{task} was not given a port {port} (it has: {names}).")
        return port
    if len(ports) != 1:
        raise click.UsageError(f"Name one of the ports of {task}: {names}.")
    return next(iter(ports))


def _join(client: Client, caller: socket.socket, where: tuple[str, str, int, str]) -> None:
    """Pass bytes both ways until either side ends."""
    with caller:
        try:
            with client.reach(*where) as stream:
                threading.Thread(target=_send, args=(caller, stream), daemon=True).start()
                for piece in stream:
                    caller.sendall(piece)
        except CorralError as error:
            say(f"A connection was not made: {error.message}")
        except OSError:
            return


def _send(caller: socket.socket, stream: ExecStream) -> None:
    with contextlib.suppress(OSError, Unavailable):
        while data := caller.recv(_PIECE):
            stream.send(data)
        stream.end_input()
