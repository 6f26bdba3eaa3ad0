"""Table D: mean completion time of Pollux' workloads on 16 nodes of 4 devices, in seconds.

Jobs declare no duration. Those of a policy with ` --elastic` run on any number of devices, choose their batch size, and
report their throughput, gradient noise and batch size each minute; the others keep the workload's size and batch size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from corral.sim.honest.pieces import Piece
from corral.sim.honest.questions import question
from corral.sim.simulation import Simulation

MACHINES: Final = "16x4"
POLICY: Final = "las+goodput+order --elastic"
"""The policy of the row that has to beat Pollux."""
REPORT_SECONDS: Final = 60.0
_ELASTIC: Final = " --elastic"
_PROFILES: Final = "pollux/profiles"


def pieces(row: str, policy: str, columns: Sequence[str]) -> list[Piece]:
    """Return a piece for each workload; columns are their numbers."""
    return [Piece("D", row, policy, (column,)) for column in columns]


def files(piece: Piece) -> Sequence[str]:
    """Return the workload, and the profiles of the applications."""
    return [f"pollux/workloads/workload-{piece.columns[0]}.csv", _PROFILES]


def play(piece: Piece, data: Path) -> dict[str, float]:
    """Return the mean completion time under the policy."""
    return {piece.columns[0]: simulation(piece, data).run().figures()["mean_jct"]}


def simulation(piece: Piece, data: Path) -> Simulation:
    """Return the simulation of a piece, ready to be played."""
    policy, elastic = piece.policy.removesuffix(_ELASTIC), piece.policy.endswith(_ELASTIC)
    workload, profiles = files(piece)
    asked = question(data / workload, MACHINES, policy, profiles=data / profiles)
    knobs = replace(asked.knobs, told=False, reports=REPORT_SECONDS if elastic else 0.0, elastic=elastic)
    asked = replace(asked, knobs=knobs)
    return asked.simulation(asked.read())
