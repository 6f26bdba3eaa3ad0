"""`corral sim tables`: measure the published tables and show ours beside the anchor's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.exit_codes import INTERRUPTED, JOB_FAILED, OK
from corral.cli.output import show, table
from corral.cli.progress import progress_bar

if TYPE_CHECKING:
    from corral.sim.tables import Cell, Outcome

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_file = click.Path(dir_okay=False, path_type=Path)
_folder = click.Path(file_okay=False, path_type=Path)


@click.command("tables")
@click.option("--table", "name", metavar="NAME", help="Only this table: A, B, C, D or E.")
@click.option("--row", metavar="NAME", help="Only this row, such as SRTF.")
@click.option(
    "--mode",
    type=click.Choice(("compat", "honest")),
    help="Only the anchors' semantics (compat), or only Corral's (honest).",
)
@click.option(
    "--tables-file", type=_file, default=None, help="Anchors and bounds; default: bench/tables.toml of the checkout."
)
@click.option("--data", type=_folder, default=None, help="The folder of traces [CORRAL_DATA].")
@click.option(
    "--results", type=_folder, metavar="FOLDER", help="Write the figures of each honest simulation to a file."
)
@click.option("--resume", is_flag=True, help="Use the figures in --results that were measured from the same question.")
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    show_default="processors",
    help="How many run at once.",
)
@click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
              help="How to print it.")  # fmt: skip
def tables_command(
    name: str | None, row: str | None, mode: str | None, tables_file: Path | None, data: Path | None,
    results: Path | None, resume: bool, processes: int, output: str,
) -> int:  # fmt: skip
    """Measure the published tables: ours, the anchor's, the bound, and whether it holds.

    Exit code 1 when a bound does not hold. An interrupt prints the rows that are finished.
    """
    from corral.kernel.errors import NotFound
    from corral.sim.tables import chosen, parse_tables, traces_folder

    if resume and results is None:
        raise click.UsageError("--resume needs --results FOLDER.")
    source = tables_file or _CHECKOUT / "bench" / "tables.toml"
    if not source.is_file():
        raise NotFound("no-tables", f"{source} is not there; name it with --tables-file.")
    cells = chosen(parse_tables(source.read_text()), name, row, mode)
    outcomes, code = _measured(cells, data or traces_folder(_CHECKOUT), results, resume, processes)
    if not show([outcome.record() for outcome in outcomes], output):
        click.echo(_table(outcomes))
    return code or (JOB_FAILED if any(outcome.holds is False for outcome in outcomes) else OK)


def _measured(
    cells: Sequence[Cell], data: Path, results: Path | None, resume: bool, processes: int
) -> tuple[list[Outcome], int]:
    """Return the outcomes and the exit code; after an interrupt those that are finished."""
    from corral.sim.table_runs import Figures, KeptFigures, Unit, measure_all, outcomes_of, units_of

    units = units_of(cells, data)
    found: dict[Unit, Figures] = {}
    kept = None if results is None else KeptFigures(results)
    code = OK
    try:
        with progress_bar(len(units), "Measuring") as advance:
            for unit, figures in measure_all(units, processes, kept, resume=resume):
                found[unit] = figures
                advance(len(found))
    except KeyboardInterrupt:
        code = INTERRUPTED
    return outcomes_of(units, found), code


def _table(outcomes: Sequence[Outcome]) -> str:
    headings = ("TABLE", "MODE", "ROW", "COLUMN", "OURS", "ANCHOR", "UNIT", "BOUND", "HOLDS")
    words = {True: "yes", False: "no", None: "-"}
    rows = [
        (
            outcome.cell.table,
            outcome.cell.mode,
            outcome.cell.row,
            outcome.cell.column,
            f"{outcome.ours:,.2f}",
            "-" if outcome.cell.anchor is None else f"{outcome.cell.anchor:,.10g}",
            outcome.cell.unit,
            outcome.cell.bound.words() if outcome.cell.bound else "",
            words[outcome.holds],
        )
        for outcome in outcomes
    ]
    return table(headings, rows, right=frozenset({4, 5}))
