"""The simulation that a row of an honest table asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from corral.sim.comparison import Question
from corral.sim.honest.settings import COSTS, REVIEW_SECONDS
from corral.sim.simulation import Knobs

_UNTOLD: Final = " --untold"


def question(trace: Path, machines: str, policy: str, *, seed: int = 0, profiles: Path | None = None) -> Question:
    """Return what is played: a policy as `corral sim run --policy` names it, with ` --untold` if no job declares its
    duration.
    """
    told = not policy.endswith(_UNTOLD)
    return Question(
        trace=trace,
        machines=machines,
        policy=policy.removesuffix(_UNTOLD),
        knobs=Knobs(costs=COSTS, told=told, seed=seed),
        profiles=profiles,
        review_seconds=REVIEW_SECONDS,
    )
