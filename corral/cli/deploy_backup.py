"""`corral deploy backup` and `restore`: what a new cluster cannot make again, in one file."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corral.cli.exit_codes import OK
from corral.cli.output import say
from corral.kernel.errors import CorralError, InvalidInput

if TYPE_CHECKING:
    from corral.deploy.hosts.reader import Host, Hosts


def backup(hosts: Hosts, list_path: Path, target: Path) -> int:
    """Write a backup of the cluster to a new file, and list what is in it."""
    from corral.deploy.remote.backup import take
    from corral.deploy.remote.ssh import NotReached

    heads = _heads(hosts)
    try:
        manifest = asyncio.run(take(hosts, heads, list_path.absolute(), target, _told))
    except NotReached as error:
        raise CorralError("no-backup", f"{error.refusal.message}.") from None
    for name, part in manifest.parts.items():
        click.echo(f"{part.digest}  {name}  {part.size}")
    say(f"{target} has the keys of the cluster {hosts.cluster}: store it where only administrators can read it.")
    return OK


def restore(hosts: Hosts, list_path: Path, source: Path, cluster: str, other: str) -> int:
    """Restore a backup, once the cluster's name is repeated; one of another cluster only if that is named."""
    from corral.deploy.remote.backup import give_back
    from corral.deploy.remote.backup_file import read
    from corral.deploy.remote.ssh import NotReached

    if cluster != hosts.cluster:
        raise InvalidInput("other-cluster", f"The list is of the cluster {hosts.cluster}: repeat that name.")
    head = _heads(hosts)[0]
    with tempfile.TemporaryDirectory(dir=source.absolute().parent, prefix=".corral-restore-") as folder:
        manifest, files = read(source, Path(folder))
        if manifest.cluster != (other or hosts.cluster):
            raise InvalidInput(
                "other-cluster",
                f"{source} is of the cluster {manifest.cluster}: name it with --from-cluster if that is meant.",
            )
        try:
            said = asyncio.run(give_back(hosts, head, list_path.absolute(), manifest, files))
        except NotReached as error:
            raise CorralError("not-restored", f"{error.refusal.message}. Begin it again, or run up.") from None
    say(f"Corral is as it was at {manifest.made}; {said}.")
    return OK


def _told(name: str, says: str) -> None:
    say(f"{name}: {says}.")


def _heads(hosts: Hosts) -> list[Host]:
    from corral.deploy.checks.components import control_planes

    planes = control_planes(hosts)
    if hosts.corral is None or not planes:
        raise InvalidInput("no-corral", "The list of hosts does not ask for Corral: add the section corral.")
    return planes
