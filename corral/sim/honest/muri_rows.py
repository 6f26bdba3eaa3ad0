"""Table A: mean completion time of Muri's traces on 8 nodes of 8 devices, in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from corral.sim.comparison import answer
from corral.sim.honest.pieces import Piece
from corral.sim.honest.questions import question

MACHINES: Final = "8x8"


def pieces(row: str, policy: str, columns: Sequence[str]) -> list[Piece]:
    """Return a piece for each trace."""
    return [Piece("A", row, policy, (column,)) for column in columns]


def files(piece: Piece) -> Sequence[str]:
    """Return the trace."""
    return [f"muri/{piece.columns[0]}.csv"]


def play(piece: Piece, data: Path) -> dict[str, float]:
    """Return the mean completion time under the policy."""
    result = answer(question(data / files(piece)[0], MACHINES, piece.policy))
    return {piece.columns[0]: result.figures()["mean_jct"]}
