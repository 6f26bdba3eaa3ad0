"""The published tables: their cells, bounds and what we measure for each, driven by `bench/tables.toml`.

A *cell* is one figure of a paper. In mode *compat* our number, under the anchor's own semantics, must equal the anchor's
within the cell's bound. In mode *honest* it is measured under Corral's semantics (`corral/sim/honest/`), and must be better
than the anchor's.
"""

from __future__ import annotations

import gzip
import operator
import os
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.sim.trace import TraceProblem

Lines = Callable[[str], Iterable[str]]
"""Opens a file of the data folder by its relative name and returns its lines."""

Measure = Callable[[str, Sequence[str], Lines], dict[str, float]]
"""Measures the columns of one row of a table."""

COMPAT: Final = "compat"
HONEST: Final = "honest"

_MODULES: Final = {
    "A": "corral.sim.compat.muri_table",
    "B": "corral.sim.compat.shockwave_table",
    "C": "corral.sim.compat.gavel_table",
    "D": "corral.sim.compat.pollux_table",
    "E": "corral.sim.compat.openb_table",
}
"""The module of each table whose function `measure` is a Measure."""

_BOUNDS: Final = ("digits", "percent", "points")
_BETTER: Final = {"below": operator.lt, "above": operator.gt, "at most": operator.le}
"""Bounds without an amount: how ours must compare with the anchor."""


@dataclass(frozen=True)
class Bound:
    """How far our number may be from the anchor's: `amount` decimal digits that must agree, percents, or points.

    The kinds `below`, `above` and `at most` say that it must be better than the anchor's, and have no amount.
    """

    kind: str
    amount: float = 0.0

    def holds(self, ours: float, anchor: float) -> bool:
        """Return whether `ours` is within the bound."""
        if self.kind in _BETTER:
            return bool(_BETTER[self.kind](ours, anchor))
        if self.kind == "digits":
            return round(ours, int(self.amount)) == anchor
        if self.kind == "percent":
            return abs(ours - anchor) <= abs(anchor) * self.amount / 100
        return abs(ours - anchor) <= self.amount

    def words(self) -> str:
        """Return the bound for a person."""
        if self.kind in _BETTER:
            return self.kind
        if self.kind == "digits":
            return "printed digit"
        return f"{self.amount:g} %" if self.kind == "percent" else f"{self.amount:g} points"


@dataclass(frozen=True)
class Cell:
    """One figure of a table; without a bound, or without a printed figure, it is only reported."""

    table: str
    mode: str
    row: str
    column: str
    unit: str
    anchor: float | None
    """The printed figure; None where none is printed for the same data."""
    bound: Bound | None
    policy: str = ""
    """The policy that a row of mode honest plays, as `corral sim run --policy` names it; fixed before it is measured."""


@dataclass(frozen=True)
class Outcome:
    """What we measured for a cell. `seconds` is the processor time of the whole row of which the cell is part."""

    cell: Cell
    ours: float
    seconds: float

    @property
    def holds(self) -> bool | None:
        """Return whether the bound is held; None without a bound or a printed figure."""
        cell = self.cell
        return None if cell.bound is None or cell.anchor is None else cell.bound.holds(self.ours, cell.anchor)

    def record(self) -> dict[str, object]:
        """Return the row that `-o json` prints."""
        cell = self.cell
        return {
            "table": cell.table,
            "mode": cell.mode,
            "row": cell.row,
            "policy": cell.policy or None,
            "column": cell.column,
            "unit": cell.unit,
            "ours": self.ours,
            "anchor": cell.anchor,
            "bound": cell.bound.words() if cell.bound else None,
            "holds": self.holds,
            "seconds": round(self.seconds, 2),
        }


def parse_tables(text: str) -> list[Cell]:
    """Read the cells of `tables.toml`. Raises InvalidInput when the file is not as its header says."""
    try:
        document = tomllib.loads(text)
        return [cell for table in document["table"] for row in table["row"] for cell in _cells(table, row)]
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("tables-file", f"The file of tables does not parse as TOML: {error}.") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput("tables-file", f"The file of tables lacks or misspells {error}.") from None


def _cells(table: dict[str, Any], row: dict[str, Any]) -> Iterator[Cell]:
    kinds = [kind for kind in (*_BOUNDS, "must_be") if kind in row]
    if len(kinds) > 1:
        raise ValueError(f"the bound of {row['name']}")
    unprinted = dict.fromkeys(row.get("unprinted", ()))
    if both := unprinted.keys() & row["anchor"].keys():
        raise ValueError(f"the printed figure of {min(both)}")
    for column, anchor in (row["anchor"] | unprinted).items():
        bound = None
        if kinds and anchor is not None and column not in row.get("reported", ()):
            bound = _bound(kinds[0], row[kinds[0]], column)
        unit = table["units"][column] if "units" in table else table["unit"]
        policy = row["policy"] if table["mode"] == HONEST else ""
        printed = None if anchor is None else float(anchor)
        yield Cell(table["name"], table["mode"], row["name"], column, unit, printed, bound, policy)


def _bound(kind: str, said: Any, column: str) -> Bound:
    value = said[column] if isinstance(said, dict) else said
    if kind != "must_be":
        return Bound(kind, float(value))
    if value not in _BETTER:
        raise ValueError(f"the bound {value!r}")
    return Bound(value)


def traces_folder(checkout: Path) -> Path:
    """Return the folder of published traces: CORRAL_DATA, else `shared/data` beside a checkout."""
    return Path(os.environ.get("CORRAL_DATA") or checkout.parent / "shared" / "data")


def chosen(cells: Sequence[Cell], table: str | None, row: str | None, mode: str | None = None) -> list[Cell]:
    """Return the cells of one table, row or mode. Raises NotFound when there is none."""
    found = [
        cell for cell in cells if table in (None, cell.table) and row in (None, cell.row) and mode in (None, cell.mode)
    ]
    if not found:
        names = ", ".join(sorted({cell.table for cell in cells}))
        raise NotFound("no-such-table", f"There is no such table or row; the tables are {names}.")
    return found


def measured(cells: Sequence[Cell], data: Path) -> Iterator[list[Outcome]]:
    """Measure cells of mode compat, row by row.

    Raises NotFound when a file of the data folder is not there, and InvalidInput when it is not what its name says or when
    nothing measures a row.
    """
    opened = ""

    def lines(name: str) -> Iterable[str]:
        nonlocal opened
        opened = name
        try:
            raw = (data / name).read_bytes()
            return (gzip.decompress(raw) if name.endswith(".gz") else raw).decode().splitlines()
        except FileNotFoundError:
            raise NotFound("no-data", f"{data / name} is not there; set CORRAL_DATA to the folder of traces.") from None
        except (gzip.BadGzipFile, EOFError, UnicodeDecodeError):
            raise InvalidInput("trace-file", f"{data / name} cannot be decoded: download it again.") from None

    for (table, _mode, row), group in groupby(cells, key=lambda cell: (cell.table, cell.mode, cell.row)):
        asked = list(group)
        module = import_module(_MODULES[table]) if table in _MODULES else None
        if module is None or row not in module.ROWS:
            raise InvalidInput("no-such-row", f"Nothing measures the row {row} of table {table}.")
        begun = time.process_time()
        try:
            measure: Measure = module.measure
            found = measure(row, [cell.column for cell in asked], lines)
        except TraceProblem as problem:
            raise InvalidInput("trace-line", f"{data / opened}, line {problem.line}: {problem.reason}.") from None
        except ValueError as problem:
            raise InvalidInput("no-measurement", f"Row {row} of table {table} cannot be measured: {problem}") from None
        seconds = time.process_time() - begun
        yield [Outcome(cell, found[cell.column], seconds) for cell in asked]
