"""The cells of the published tables and the files that they are measured on."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from corral.sim.tables import Cell, parse_tables

TABLES = Path(__file__).resolve().parents[3] / "bench" / "tables.toml"


def cells_of(table: str, row: str) -> dict[str, Cell]:
    """The cells of one compat row, by column."""
    cells = parse_tables(TABLES.read_text())
    return {cell.column: cell for cell in cells if (cell.table, cell.mode, cell.row) == (table, "compat", row)}


def lines_of(data_folder: Path) -> Callable[[str], Iterable[str]]:
    """A reader of the published files; a test without them is skipped with a message."""

    def lines(name: str) -> Iterable[str]:
        file = data_folder / name
        if not file.is_file():
            pytest.skip(f"a published trace is not here: set CORRAL_DATA to the folder that has {name}")
        raw = file.read_bytes()
        return (gzip.decompress(raw) if name.endswith(".gz") else raw).decode().splitlines()

    return lines
