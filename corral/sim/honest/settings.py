"""What the simulations of all honest tables assume. The figures are fixed here, once for all tables."""

from __future__ import annotations

from typing import Final

from corral.sim.progress import Costs

COSTS: Final = Costs(restart=30.0, checkpoint=0.0, scatter=0.1)
"""A start after an interruption takes 30 s without progress, as Pollux measured (OSDI 2021). A job that must go saves its
state first, as it does when a server asks it to yield. Scattered gangs are slower by the simulator's default."""

REVIEW_SECONDS: Final = 60.0
"""How often a plan is made without an event; as on a server."""
