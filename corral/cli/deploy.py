"""`corral deploy`: a list of hosts, a check of them, and a plan of what a cluster needs on each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from corral.cli.exit_codes import OK
from corral.cli.output import say
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound
from corral.kernel.plug_ins import plug_ins

_BYTES: Final = 1024 * 1024
"""Bytes of a list of hosts, or of a file that one is read from."""


@click.group("deploy")
def deploy_command() -> None:
    """Prepare bare machines for a cluster, over SSH."""


def _formats(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each plug-in that reads another system's list of machines."""
    for name, point in sorted(plug_ins("corral.host_lists").items()):
        found = point.load()
        path = click.Path(dir_okay=False, path_type=Path)
        command = click.option(
            f"--from-{name}", f"from_{name}", nargs=len(found.files), type=path,
            metavar=" ".join(found.files), help=found.help,
        )(command)  # fmt: skip
    return command


@deploy_command.command("init")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="hosts.yaml")
@_formats
@click.option(
    "--from-inventory",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read Kubespray's inventory: YAML if its name ends so, else INI.",
)
def init_command(file: Path, from_inventory: Path | None, **others: tuple[Path, ...] | None) -> int:
    """Write a list of hosts to FILE (hosts.yaml), as an example or from another system's list.

    A file that is there is never replaced. What is left out of another list is told on standard error.

    \b
    corral deploy init
    corral deploy init lab.yaml --from-inventory inventory/mycluster/inventory.ini
    """
    from corral.deploy.hosts.kubespray import from_inventory as read_inventory
    from corral.deploy.hosts.reader import hosts_of
    from corral.deploy.hosts.template import EXAMPLE, text_of

    chosen = {name.removeprefix("from_"): paths for name, paths in others.items() if paths}
    if len(chosen) + (from_inventory is not None) > 1:
        raise InvalidInput("several-origins", "Name one list to read from.")
    if from_inventory is not None:
        data, notes = read_inventory(_content(from_inventory), str(from_inventory))
        origin = str(from_inventory)
    elif chosen:
        ((name, paths),) = chosen.items()
        data, notes = plug_ins("corral.host_lists")[name].load().read([(str(path), _content(path)) for path in paths])
        origin = " and ".join(str(path) for path in paths)
    else:
        data, notes, origin = {}, [], ""
    if data:
        hosts_of(data, filename=origin)
    _write_new(file, text_of(data, origin) if data else EXAMPLE)
    for note in notes:
        say(note)
    click.echo(f"Wrote {file}.")
    return OK


def _content(path: Path) -> bytes:
    """Return the bytes of a file; the parser refuses one byte more than it takes."""
    try:
        with path.open("rb") as opened:
            return opened.read(_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("no-such-file", f"There is no file {path}.") from None
    except OSError as error:
        raise InvalidInput("unreadable-file", f"{path} cannot be read: {error.strerror}.") from None


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        os.link(beside, path)
    except FileExistsError:
        raise Conflict("file-exists", f"{path} is there already; name another file, or remove it first.") from None
    except OSError as error:
        raise CorralError("unwritable-file", f"{path} cannot be written: {error.strerror}.") from None
    finally:
        beside.unlink(missing_ok=True)
