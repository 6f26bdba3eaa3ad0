"""`corral deploy backup` and `restore`: what a new cluster cannot make again, in one file."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import OK, REFUSED
from corral.cli.output import say
from corral.kernel.errors import CorralError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.deploy.hosts.backup import Manifest
    from corral.deploy.hosts.reader import Host, Hosts

CORRAL, HDFS = "corral", "hdfs"
"""What is restored alone where it is named."""
_SHOWN: Final = {CORRAL: "Corral", HDFS: "HDFS"}
_SECTIONS: Final = {CORRAL: "corral", HDFS: "hadoop"}
"""The section of the list that each needs."""


def backup(hosts: Hosts, list_path: Path, target: Path) -> int:
    """Write a backup of the cluster to a new file, and list what is in it. Where HDFS cannot be in it, Corral still is."""
    from corral.deploy.remote.backup import take
    from corral.deploy.remote.ssh import NotReached

    heads = _heads(hosts)
    if hosts.corral is None and hosts.hadoop is None:
        raise InvalidInput("no-corral", "The list of hosts has neither a section corral nor a section hadoop: add one.")
    try:
        manifest, refusal = asyncio.run(take(hosts, heads, list_path.absolute(), target, _told))
    except NotReached as error:
        raise CorralError("no-backup", f"{error.refusal.message}.") from None
    for name, part in manifest.parts.items():
        click.echo(f"{part.digest}  {name}  {part.size}")
    what = "keys" if manifest.has_corral else "names of all files"
    say(f"{target} has the {what} of the cluster {hosts.cluster}: store it where only administrators can read it.")
    if refusal is not None:
        say(f"HDFS is not in it: {refusal.message.rstrip('.')}. Make another backup once that is mended.")
        return REFUSED
    return OK


def restore(hosts: Hosts, list_path: Path, source: Path, cluster: str | None, other: str, only: str | None) -> int:
    """Restore a backup or one part of it, once the cluster's name is repeated; one of another cluster only if named.

    Asks for the name where it is not given, after what each part loses was told.
    """
    from corral.deploy.remote.backup import give_back
    from corral.deploy.remote.backup_file import read
    from corral.deploy.remote.ssh import NotReached

    if cluster is not None:
        _require_name(hosts, cluster)
    heads = _heads(hosts)
    with tempfile.TemporaryDirectory(dir=source.absolute().parent, prefix=".corral-restore-") as folder:
        manifest, files = read(source, Path(folder))
        if manifest.cluster != (other or hosts.cluster):
            raise InvalidInput(
                "other-cluster",
                f"{source} is of the cluster {manifest.cluster}: name it with --from-cluster if that is meant.",
            )
        chosen = _chosen(hosts, source, manifest, only)
        _say_losses(manifest, chosen, only)
        if cluster is None:
            _require_name(hosts, click.prompt("The name of the cluster that is restored", err=True))
        if CORRAL in chosen:
            try:
                said = asyncio.run(give_back(hosts, heads, list_path.absolute(), manifest, files, _told))
            except NotReached as error:
                raise CorralError("not-restored", f"{error.refusal.message}. Begin it again, or run up.") from None
            say(f"Corral is as it was at {manifest.made}; {said}.")
        if HDFS in chosen:
            _restore_hdfs(hosts, list_path, manifest, files, asked=only == HDFS)
    return OK


def _restore_hdfs(
    hosts: Hosts, list_path: Path, manifest: Manifest, files: Mapping[str, Path], *, asked: bool
) -> None:  # fmt: skip
    """Restore HDFS' metadata; an HDFS that is there still is left as it is, unless it was asked for alone."""
    from corral.deploy.remote.backup_hdfs import give_back_hdfs
    from corral.deploy.remote.ssh import NotReached

    try:
        said = asyncio.run(give_back_hdfs(hosts, list_path.absolute(), manifest, files, asked=asked))
    except NotReached as error:
        again = "Look at corral deploy status, then begin it again with --only hdfs"
        raise CorralError("not-restored", f"{error.refusal.message}. {again}.") from None
    if said is None:
        say("HDFS is there, and is left as it is: --only hdfs restores it all the same.")
    else:
        say(f"HDFS has the files of {manifest.made}; {said}.")


def _require_name(hosts: Hosts, cluster: str) -> None:
    if cluster != hosts.cluster:
        raise InvalidInput("other-cluster", f"The list is of the cluster {hosts.cluster}: repeat that name.")


def _chosen(hosts: Hosts, source: Path, manifest: Manifest, only: str | None) -> list[str]:
    """The parts of a backup that are restored; says which one is left out, and why. Raises InvalidInput for none."""
    there = [name for name, has in ((CORRAL, manifest.has_corral), (HDFS, manifest.has_hdfs)) if has]
    listed = [name for name, part in ((CORRAL, hosts.corral), (HDFS, hosts.hadoop)) if part is not None]
    if only is not None and only not in there:
        raise InvalidInput("not-in-backup", f"{source} has no {_SHOWN[only]}.")
    wanted = there if only is None else [only]
    if not set(wanted) & set(listed):
        has = " and ".join(_SHOWN[name] for name in there) if len(there) > 1 else f"{_SHOWN[there[0]]} alone"
        sections = " or ".join(_SECTIONS[name] for name in wanted)
        raise InvalidInput("no-section", f"{source} has {has}, and the list has no section {sections}: add one.")
    for name in wanted:
        if name not in listed:
            say(f"{_SHOWN[name]} is not restored: the list has no section {_SECTIONS[name]}.")
    for name in listed if only is None else ():
        if name not in there:
            say(f"{source} has no {_SHOWN[name]}: that is left as it is.")
    return [name for name in wanted if name in listed]


def _say_losses(manifest: Manifest, chosen: Sequence[str], only: str | None) -> None:
    """Say what each part that is restored loses."""
    if CORRAL in chosen:
        say(
            f"Corral's store goes back to {manifest.made}: what it stored since then is lost, and newer tasks are ended."
        )
    if HDFS in chosen:
        kept = "" if only == HDFS else ", unless the NameNode has that HDFS still"
        say(f"HDFS goes back to {manifest.made}{kept}: files written since then are lost, with their blocks.")


def _told(name: str, says: str) -> None:
    say(f"{name}: {says}.")


def _heads(hosts: Hosts) -> list[Host]:
    """The control planes of a list that asks for Corral."""
    from corral.deploy.checks.components import control_planes

    planes = control_planes(hosts)
    if hosts.corral is not None and not planes:
        raise InvalidInput("no-corral", "The list of hosts has Corral and no control plane.")
    return planes if hosts.corral is not None else []
