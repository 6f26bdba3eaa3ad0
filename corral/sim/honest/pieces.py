"""Pieces of an honest row: simulations that can be played beside each other, and the modules that play them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast

import msgspec

from corral import __version__
from corral.kernel.errors import InvalidInput
from corral.sim.files import hash_of_all
from corral.sim.honest.settings import COSTS, REVIEW_SECONDS

_MODULES: Final = {
    "A": "corral.sim.honest.muri_rows",
    "B": "corral.sim.honest.shockwave_rows",
    "C": "corral.sim.honest.gavel_rows",
    "D": "corral.sim.honest.pollux_rows",
    "E": "corral.sim.honest.openb_rows",
}
"""The module of each table; it is a `Table`."""


class Piece(NamedTuple):
    """One simulation of a row, which measures some of its columns."""

    table: str
    row: str
    policy: str
    """As `corral sim run --policy` names it, or as the table's module says."""
    columns: tuple[str, ...]
    seed: int = 0

    @property
    def name(self) -> str:
        """Return a name for a file."""
        words = f"{self.table}-{self.row}-{'-'.join(self.columns)}-{self.seed}"
        return "".join(letter if letter.isalnum() or letter in "-+." else "_" for letter in words)


class Table(Protocol):
    """What a table's module offers."""

    def pieces(self, row: str, policy: str, columns: Sequence[str]) -> list[Piece]:
        """Return what is played for a row; a column of several pieces is their mean."""
        ...

    def files(self, piece: Piece) -> Sequence[str]:
        """Return the files and folders of the data folder that the piece reads."""
        ...

    def play(self, piece: Piece, data: Path) -> dict[str, float]:
        """Return the figures of the piece's columns. Raises NotFound or InvalidInput for a file or policy."""
        ...


def table_of(name: str) -> Table:
    """Return the module of a table; raises InvalidInput if it has none."""
    if name not in _MODULES:
        raise InvalidInput("no-honest-table", f"Nothing measures table {name} in mode honest.")
    return cast(Table, import_module(_MODULES[name]))


def digest_of(piece: Piece, data: Path) -> str:
    """Return a hash of everything that the figures of a piece depend on: files by their content, and Corral's version."""
    files = [(name, hash_of_all(data / name)) for name in table_of(piece.table).files(piece)]
    asked = (__version__, piece, COSTS, REVIEW_SECONDS, files)
    return hashlib.blake2b(msgspec.json.encode(asked), digest_size=16).hexdigest()
