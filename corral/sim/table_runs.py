"""Measure cells of the published tables in processes beside each other; results of honest pieces are kept in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from corral.kernel.errors import CorralError
from corral.sim.files import read_bounded
from corral.sim.honest.pieces import Piece, digest_of, table_of
from corral.sim.tables import HONEST, Cell, Outcome, measured
from corral.sim.workers import answered


class Unit(NamedTuple):
    """What one process measures: a row of mode compat, or a piece of an honest row."""

    cells: tuple[Cell, ...]
    """All cells of the row."""
    data: Path
    piece: Piece | None = None


class Figures(msgspec.Struct, frozen=True):
    """What a unit measured, by column, and the seconds of processor time that it took."""

    values: dict[str, float]
    seconds: float
    question: str = ""
    """The hash of everything that was asked."""


class KeptFigures:
    """A file for each piece in a folder, found again by what was asked."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def found(self, piece: Piece, data: Path) -> Figures | None:
        """Return the figures of an equal piece; a file that holds none, or others, counts as absent."""
        try:
            kept = msgspec.json.decode(read_bounded(self._file(piece)), type=Figures)
        except (CorralError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return kept if kept.question == digest_of(piece, data) else None

    def keep(self, piece: Piece, data: Path, figures: Figures) -> None:
        """Write the figures; an interrupt leaves the whole file or none."""
        kept = msgspec.structs.replace(figures, question=digest_of(piece, data))
        part = self._file(piece).with_suffix(".part")
        part.write_bytes(msgspec.json.encode(kept))
        part.replace(self._file(piece))

    def _file(self, piece: Piece) -> Path:
        return self._folder / f"{piece.name}.json"


def units_of(cells: Sequence[Cell], data: Path) -> list[Unit]:
    """Return what has to be measured for the cells, in their order. Raises InvalidInput for an unknown table."""
    units = []
    for (table, mode, row), group in groupby(cells, key=lambda cell: (cell.table, cell.mode, cell.row)):
        asked = tuple(group)
        if mode != HONEST:
            units.append(Unit(asked, data))
            continue
        pieces = table_of(table).pieces(row, asked[0].policy, [cell.column for cell in asked])
        units += [Unit(asked, data, piece) for piece in pieces]
    return units


def figures_of(unit: Unit) -> Figures:
    """Measure a unit; raises NotFound or InvalidInput as `measured` does."""
    if unit.piece is None:
        outcomes = next(iter(measured(unit.cells, unit.data)))
        return Figures({each.cell.column: each.ours for each in outcomes}, outcomes[0].seconds)
    begun = time.process_time()
    values = table_of(unit.piece.table).play(unit.piece, unit.data)
    return Figures(values, time.process_time() - begun)


def measure_all(
    units: Sequence[Unit], processes: int, kept: KeptFigures | None = None, *, resume: bool = False
) -> Iterator[tuple[Unit, Figures]]:
    """Yield the figures of each unit as soon as they are there.

    With `kept`, those of pieces are written; with `resume` too, those that are there are not measured again. Raises as
    `figures_of` does.
    """
    missing = []
    for unit in units:
        found = kept.found(unit.piece, unit.data) if kept and resume and unit.piece else None
        if found is None:
            missing.append(unit)
        else:
            yield unit, found
    for unit, figures in _measured(figures_of, missing, processes):
        if kept is not None and unit.piece is not None:
            kept.keep(unit.piece, unit.data, figures)
        yield unit, figures


def _measured(
    measure: Callable[[Unit], Figures], units: Sequence[Unit], processes: int
) -> Iterator[tuple[Unit, Figures]]:
    if processes > 1 and len(units) > 1:
        yield from answered(measure, units, min(processes, len(units)))
        return
    for unit in units:
        yield unit, measure(unit)


def outcomes_of(units: Sequence[Unit], found: dict[Unit, Figures]) -> list[Outcome]:
    """Return the outcome of each cell whose units are all measured; a column of several pieces is their mean."""
    outcomes = []
    for cells, group in groupby(units, key=lambda unit: unit.cells):
        row = list(group)
        seconds = sum(found[unit].seconds for unit in row if unit in found)
        for cell in cells:
            parts = [unit for unit in row if unit.piece is None or cell.column in unit.piece.columns]
            if parts and all(unit in found for unit in parts):
                mean = sum(found[unit].values[cell.column] for unit in parts) / len(parts)
                outcomes.append(Outcome(cell, mean, seconds))
    return outcomes
