"""Options that the commands of `corral deploy` share, and the list and the look at hosts that they begin with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.output import say
from corral.kernel.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from corral.deploy.checks.connection import Refusal
    from corral.deploy.checks.report import Survey
    from corral.deploy.hosts.reader import Host, Hosts
    from corral.deploy.remote.survey import Told

_BYTES: Final = 1024 * 1024
"""Bytes of a list of hosts, or of a file that one is read from."""


def known_checks(given: tuple[str, ...]) -> tuple[str, ...]:
    """The names of checks that `up` does. Raises InvalidInput for another."""
    if given:
        from corral.deploy.checks.before_up import ALL, OF_NEW_NODES
        from corral.spec.errors import did_you_mean, shorten

        for name in given:
            if name not in (*OF_NEW_NODES, ALL):
                hint = did_you_mean(name, (*OF_NEW_NODES, ALL))
                raise InvalidInput(
                    "no-such-check", f"There is no check {shorten(name)} that keeps a host out{hint or '.'}"
                )
    return given


hosts_argument = click.argument("hosts", type=click.Path(dir_okay=False, path_type=Path), default="hosts.yaml")
timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    help="Seconds that a host may take for an answer.",
)


def _bundle_folder(context: click.Context, given: Path | None) -> Path | None:
    """The folder of a bundle; that of a file lasts until the command ends. Raises InvalidInput for an altered file."""
    if given is None or not given.is_file():
        return given
    from corral.deploy.remote.bundle_file import unpacked

    return context.with_resource(unpacked(given))


bundle_option = click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="PATH",
    callback=lambda context, option, given: _bundle_folder(context, given),
    help="Install programs and images from this folder, or from the file that `corral deploy bundle` makes of one.",
)
packages_option = click.option(
    "--packages",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Install packages from the .deb files of this folder, not from the sources of the hosts.",
)
skip_option = click.option(
    "--skip-check",
    "skipped",
    metavar="CHECK",
    multiple=True,
    callback=lambda context, option, given: known_checks(given),
    help="Go on where this check fails, or any (all); can be repeated.",
)
hosts_option = click.option(
    "--hosts",
    type=click.Path(dir_okay=False, path_type=Path),
    default="hosts.yaml",
    show_default=True,
    help="The list of hosts.",
)


def chosen_hosts(path: Path, names: Sequence[str]) -> Hosts:
    """Read the list, and keep the hosts of these names, or all."""
    from corral.deploy.hosts.reader import load_hosts
    from corral.spec.errors import did_you_mean, shorten

    found = load_hosts(content_of(path), filename=str(path))
    for name in names:
        if found.named(name) is None:
            hint = did_you_mean(name, [host.name for host in found.hosts])
            raise NotFound("no-such-host", f"{path} has no host {shorten(name)}{hint or '.'}")
    return replace(found, hosts=tuple(host for host in found.hosts if not names or host.name in names))


def survey_of(hosts: Hosts, path: Path, *, seconds: float, ports: bool) -> Survey:
    """Look at the hosts, and tell on standard error of each that answered or did not."""
    from corral.deploy.remote.survey import look_at

    told = teller(len(hosts.hosts))
    return asyncio.run(look_at(hosts, path.absolute(), seconds=seconds, ports=ports, told=told))


def teller(count: int) -> Told:
    """A function that tells on standard error of each of so many hosts that it answered, or did not."""
    begun: list[str] = []

    def told(host: Host, refusal: Refusal | None) -> None:
        begun.append(host.name)
        says = "answered" if refusal is None else f"not reached: {refusal.message}"
        say(f"[{len(begun)}/{count}] {host.name}: {says}")

    return told


def content_of(path: Path) -> bytes:
    """Return the bytes of a file; the parser refuses one byte more than it takes."""
    try:
        with path.open("rb") as opened:
            return opened.read(_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("no-such-file", f"There is no file {path}.") from None
    except OSError as error:
        raise InvalidInput("unreadable-file", f"{path} cannot be read: {error.strerror}.") from None
