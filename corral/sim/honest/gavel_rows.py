"""Table C: Gavel's physical cluster of 8 V100, 16 P100 and 24 K80 under Corral's own semantics, in hours.

Every device is a node of its own, as in the anchor's simulator, which knows no servers. Jobs say their speed on each model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from corral.sim.comparison import answer
from corral.sim.honest.pieces import Piece
from corral.sim.honest.questions import question

MACHINES: Final = "8x1:v100,16x1:p100,24x1:k80"
HOUR: Final = 3600.0
_TRACES: Final = {"JCT": "gavel/max_min_fairness.trace", "makespan": "gavel/minimize_makespan.trace"}
_SPEEDS: Final = "gavel/physical_cluster_throughputs.json"


def pieces(row: str, policy: str, columns: Sequence[str]) -> list[Piece]:
    """Return a piece for each column: `JCT` and `makespan` have traces of their own."""
    return [Piece("C", row, policy, (column,)) for column in columns]


def files(piece: Piece) -> Sequence[str]:
    """Return the trace, and the throughputs on each model."""
    return [_TRACES[piece.columns[0]], _SPEEDS]


def play(piece: Piece, data: Path) -> dict[str, float]:
    """Return the mean completion time, or the makespan, under the policy."""
    trace, speeds = files(piece)
    result = answer(question(data / trace, MACHINES, piece.policy, profiles=data / speeds))
    column = piece.columns[0]
    seconds = result.figures()["mean_jct"] if column == "JCT" else result.makespan
    return {column: seconds / HOUR}
