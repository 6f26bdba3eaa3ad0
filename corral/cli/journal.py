"""`corral journal`: the journal of decisions of a server, on the machine of its data folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import click

from corral.cli.command_group import CommandGroup
from corral.cli.exit_codes import OK
from corral.cli.output import output_option, say, show
from corral.cli.progress import progress_bar
from corral.cli.server import data_option, make_settings
from corral.cli.sim_options import FILE
from corral.cli.times import seconds_of
from corral.kernel.errors import NotFound
from corral.kernel.units import counted


@click.group("journal", cls=CommandGroup)
def journal_command() -> None:
    """The journal of a server's decisions."""


@journal_command.command("export")
@click.argument("target", type=FILE, metavar="FILE")
@click.option("--from", "since", default="", metavar="TIME", help="What happened from this time on.")
@click.option("--to", "until", default="", metavar="TIME", help="What happened until this time.")
@click.option(
    "--anonymise", is_flag=True, help="Replace names, and leave out commands, environments, images and texts."
)
@data_option
@output_option
def export_command(target: Path, since: str, until: str, anonymise: bool, data_folder: Path | None, output: str) -> int:
    """Write what the scheduler was told and decided to FILE, while the server is in use; `corral replay run` reads it.

    It begins at the last start of the scheduler's state before --from, which is at most a day earlier. FILE has the
    commands and environments of jobs: keep it as private as the data folder. A TIME is of the form 2026-11-27T10:00:00Z.

    With --anonymise names of users, groups, jobs, roles, queues, nodes, labels and tags are replaced, each by the same one
    in the whole file, and every decision is made again under the new names. Sizes, times and ids of jobs stay.

    \b
    corral journal export --from 2026-11-20 --to 2026-11-27 week.journal
    corral journal export --anonymise week.journal
    """
    from corral.control.journal.export import export
    from corral.control.journal.folder import private, recorded
    from corral.model.records import rfc3339

    begin, end = seconds_of("--from", since), seconds_of("--to", until)
    folder = make_settings(data_folder=data_folder).data_folder / "journal"
    if not folder.is_dir():
        raise NotFound("no-journal-folder", f"{folder} is not there; a server with `journal_days` above 0 writes it.")
    bounds = (-inf if begin is None else begin, inf if end is None else end)
    differs_from: int | None = None
    with _parts(target) as (part, renamed):
        with open(part, "wb", opener=private) as file:
            found = export(recorded(folder), file, since=bounds[0], until=bounds[1])
        if not found.steps:
            raise NotFound("nothing-recorded", f"{folder} has no step of that time from which a replay could begin.")
        if anonymise:
            differs_from = _anonymise(part, renamed, found.steps)
            renamed.replace(part)
        part.replace(target)
    size = target.stat().st_size
    said = {
        "file": str(target), "bytes": size, "steps": found.steps,
        "from": rfc3339(found.first_at), "to": rfc3339(found.last_at), "anonymous": anonymise,
    }  # fmt: skip
    if not show(said, output):
        say(f"{target} has {counted(found.steps, 'step')} from {said['from']} to {said['to']}, {size / 1024:.1f} KiB.")
    if differs_from is not None:
        say(f"From step {differs_from} on this Corral decides otherwise than the journal; a replay ends there too.")
    return OK


def _anonymise(source: Path, target: Path, steps: int) -> int | None:
    """Copy a journal under new names; returns the first step that is decided otherwise, if there is one."""
    from corral.control.journal.anonymous.export import anonymise
    from corral.control.journal.anonymous.names import KEY_BYTES
    from corral.control.journal.folder import private

    with (
        source.open("rb") as journal,
        open(target, "wb", opener=private) as file,
        progress_bar(steps, "Anonymising") as advance,
    ):
        return anonymise(journal, file, secrets.token_bytes(KEY_BYTES), told=advance)


@contextmanager
def _parts(target: Path) -> Iterator[tuple[Path, Path]]:
    """Give two files beside the target that are gone afterwards."""
    parts = [target.with_name(f".{target.name}.{os.getpid()}.{ending}") for ending in ("part", "renamed")]
    try:
        yield parts[0], parts[1]
    finally:
        for each in parts:
            each.unlink(missing_ok=True)
