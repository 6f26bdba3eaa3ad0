"""`corral storages`: list storages and their folders, and fetch files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from corral.cli.accounts import Listing
from corral.cli.connection import connect
from corral.cli.output import output_option, say, show, table
from corral.cli.paging import items
from corral.kernel.errors import Conflict


@click.group("storages", cls=Listing, invoke_without_command=True)
@output_option
@click.pass_context
def storages_command(context: click.Context, output: str) -> None:
    """List the storages that you may use, browse them, and fetch files.

    They are created and changed as documents (corral apply), and granted to groups (corral groups grant).
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.storages()["items"]
    if show(found, output, names=[each["name"] for each in found]):
        return
    rows = [
        (
            each["name"],
            each["type"],
            "shared" if each["share"] else "own folder",
            "read only" if each["readOnly"] else "",
            ", ".join(each["groups"]),
            each["description"],
        )
        for each in found
    ]
    click.echo(table(("NAME", "TYPE", "SEEN", "", "GROUPS", "DESCRIPTION"), rows))


@storages_command.command("browse")
@click.argument("storage")
@click.argument("path", default="")
@output_option
def browse_storage(storage: str, path: str, output: str) -> None:
    """List a folder of a storage; links are shown and not followed."""
    with connect() as client:
        found = items(lambda **page: client.storage_files(storage, path, **page))
    show_files(found, output)


@storages_command.command("get")
@click.argument("storage")
@click.argument("path")
@click.option("-o", "--output", "to", default="", help="Where to write it (- is standard output); default: its name.")
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
def get_file(storage: str, path: str, to: str, force: bool) -> None:
    """Fetch a file from a storage."""
    with connect() as client:
        write_file(lambda: client.storage_file(storage, path), path, to, force=force)


def show_files(found: Sequence[Mapping[str, Any]], output: str) -> None:
    """Print the entries of a folder."""
    if show(found, output, names=[each["name"] for each in found]):
        return
    rows = [
        (each["kind"], each["size"] if each["kind"] == "file" else "", each["changedAt"], each["name"])
        for each in found
    ]
    click.echo(table(("KIND", "BYTES", "CHANGED", "NAME"), rows, right=frozenset({1})))


def write_file(fetch: Callable[[], Iterable[bytes]], path: str, to: str, *, force: bool) -> None:
    """Write the pieces of a file at `path` of a folder to `to`, "-" for standard output, "" for the file's own name.

    Raises Conflict for a file that is there already.
    """
    target = Path(to or path.rstrip("/").rpartition("/")[2])
    if to != "-" and not force and os.path.lexists(target):
        raise Conflict("file-exists", f"{target} is there already; write over it with --force, or elsewhere with -o.")
    pieces = fetch()
    if to == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    part = target.with_name(target.name + ".part")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    say(f"{target} has {target.stat().st_size:,} bytes.")
