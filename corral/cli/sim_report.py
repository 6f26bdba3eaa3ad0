"""`corral sim report`: draw the results of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corral.cli.exit_codes import OK
from corral.cli.sim_options import FILE

if TYPE_CHECKING:
    from corral.sim.gantt import By


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=FILE, metavar="RESULT...")
@click.option("--html", "page", type=FILE, required=True, help="The page to write.")
@click.option("--colour", type=click.Choice(("user", "job")), default="user", show_default=True,
              help="What has a colour of its own in charts of devices.")  # fmt: skip
def report_command(results: Sequence[Path], page: Path, colour: By) -> int:
    """Draw the results of simulations as a page: figures, and charts of completion, queueing, devices and waiting jobs.

    A RESULT is a file that `sim run --results` or `sim compare --results` wrote. The page needs no other file.
    """
    from corral.sim.report import report_of
    from corral.sim.report_page import report_page
    from corral.sim.results import read_result

    page.write_text(report_page(report_of([read_result(file) for file in results], colour)), encoding="utf-8")
    click.echo(page)
    return OK
