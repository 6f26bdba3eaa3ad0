"""`corral journal`: the journal of decisions of a server, on the machine of its data folder."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path

import click

from corral.cli.exit_codes import OK
from corral.cli.output import output_option, say, show
from corral.cli.server import data_option, make_settings
from corral.cli.sim_options import FILE
from corral.cli.times import seconds_of
from corral.kernel.errors import NotFound
from corral.kernel.units import counted


@click.group("journal")
def journal_command() -> None:
    """The journal of a server's decisions."""


@journal_command.command("export")
@click.argument("target", type=FILE, metavar="FILE")
@click.option("--from", "since", default="", metavar="TIME", help="What happened from this time on.")
@click.option("--to", "until", default="", metavar="TIME", help="What happened until this time.")
@data_option
@output_option
def export_command(target: Path, since: str, until: str, data_folder: Path | None, output: str) -> int:
    """Write what the scheduler was told and decided to FILE, while the server is in use; `corral replay run` reads it.

    It begins at the last start of the scheduler's state before --from, which is at most a day earlier. FILE has the
    commands and environments of jobs: keep it as private as the data folder. A TIME is of the form 2026-11-27T10:00:00Z.
    """
    from corral.control.journal.export import export
    from corral.control.journal.folder import private, recorded
    from corral.model.records import rfc3339

    begin, end = seconds_of("--from", since), seconds_of("--to", until)
    folder = make_settings(data_folder=data_folder).data_folder / "journal"
    if not folder.is_dir():
        raise NotFound("no-journal-folder", f"{folder} is not there; a server with `journal_days` above 0 writes it.")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb", opener=private) as file:
            bounds = (-inf if begin is None else begin, inf if end is None else end)
            found = export(recorded(folder), file, since=bounds[0], until=bounds[1])
        if not found.steps:
            raise NotFound("nothing-recorded", f"{folder} has no step of that time from which a replay could begin.")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    size = target.stat().st_size
    said = {
        "file": str(target), "bytes": size, "steps": found.steps,
        "from": rfc3339(found.first_at), "to": rfc3339(found.last_at),
    }  # fmt: skip
    if not show(said, output):
        say(f"{target} has {counted(found.steps, 'step')} from {said['from']} to {said['to']}, {size / 1024:.1f} KiB.")
    return OK
