"""`corral sim report`: draw the results of simulations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import OK
from corral.cli.sim_options import FILE

if TYPE_CHECKING:
    from corral.sim.gantt import By
    from corral.sim.report import Report


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=FILE, metavar="RESULT...")
@click.option("--out", type=FILE, required=True, help="The file to write.")
@click.option("--format", "layout", type=click.Choice(("html", "png", "json")),
              help="A page, a picture, or the numbers; default: by the ending of the file.")  # fmt: skip
@click.option("--colour", type=click.Choice(("user", "job")), default="user", show_default=True,
              help="What has a colour of its own in charts of devices.")  # fmt: skip
def report_command(results: Sequence[Path], out: Path, layout: str | None, colour: By) -> int:
    """Draw the results of simulations: figures, charts of jobs and devices, and Gantt charts.

    A RESULT is a file that `--results` of `sim run`, `sim compare` or `sim sweep` wrote. Results that differ by their
    seed only are one line, with confidence intervals. An HTML page needs no other file; a PNG needs matplotlib.
    """
    from corral.sim.report import report_of
    from corral.sim.results import read_result

    writer = _WRITERS.get(layout or out.suffix.removeprefix(".").lower())
    if writer is None:
        raise click.UsageError(f"The ending of {out} is none of {', '.join(_WRITERS)}; give --format.")
    if out.resolve() in (file.resolve() for file in results):
        raise click.UsageError(f"{out} is one of the results, which it would replace; name another file.")
    out.write_bytes(writer(report_of([read_result(file) for file in results], colour)))
    click.echo(out)
    return OK


def _page(report: Report) -> bytes:
    from corral.sim.report_page import report_page

    return report_page(report).encode()


def _picture(report: Report) -> bytes:
    from corral.sim.picture import report_picture

    return report_picture(report)


def _numbers(report: Report) -> bytes:
    return (json.dumps(report.record(), indent=1, ensure_ascii=False) + "\n").encode()


_WRITERS: Final[dict[str, Callable[[Report], bytes]]] = {"html": _page, "png": _picture, "json": _numbers}
