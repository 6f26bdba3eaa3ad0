"""`corral open`: open a service of a running job in a browser, such as its notebook or TensorBoard."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.logs import split_task
from corral.cli.output import say
from corral.kernel.errors import NotFound

if TYPE_CHECKING:
    from corral.client.schema import ServiceView
    from corral.client.sync import Client

_NAMED = 6
"""Services that a message names."""


@click.command("open")
@click.argument("job")
@click.argument("task", required=False, default="")
@click.argument("port", required=False, default="")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def open_command(job: str, task: str, port: str, no_browser: bool) -> None:
    """Open a declared PORT (name or number) of a running TASK of a JOB in a browser; default: the only one.

    Prints the address, which works within a minute, in one browser, once.

    \b
    corral open mynotebook
    corral open digits worker-0 tensorboard
    """
    with connect() as client:
        chosen = _chosen(job, client.services(job)["items"], task, port)
        open_in_browser(client, job, *split_task(chosen["task"]), chosen["name"], no_browser=no_browser)


def open_in_browser(client: Client, job: str, role: str, index: int, port: str, *, no_browser: bool) -> None:
    """Print the address of a service, and open it where there is a browser."""
    url = client.open_service(job, role, index, port)["url"]
    click.echo(url)
    if not no_browser and sys.stdout.isatty() and _has_screen():
        if webbrowser.open_new_tab(url):
            say("It was opened in a browser.")
        else:
            say("No browser took it; open it within a minute.")


def _chosen(job: str, services: list[ServiceView], task: str, port: str) -> ServiceView:
    fitting = [
        each
        for each in services
        if (not task or each["task"] == task) and (not port or port in (each["name"], str(each["port"])))
    ]
    if len(fitting) == 1:
        return fitting[0]
    shown = fitting or services
    names = ", ".join(f"{each['task']} {each['name']}" for each in shown[:_NAMED])
    names += ", …" if len(shown) > _NAMED else ""
    if fitting:
        raise click.UsageError(f"Name one of the services of {job}: {names}.")
    asked = " ".join(word for word in (task, port) if word)
    said = f"{job} has no running service{f' {asked}' if asked else ''}"
    raise NotFound("no-such-service", f"{said} (it has: {names or 'none; a job file declares `ports`'}).")


def _has_screen() -> bool:
    """Whether a browser would have a window here, and not take this terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
