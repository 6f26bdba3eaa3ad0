"""Run the check scripts for the nodes of the local engine, and tell the keeper of problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corral.control.health.keeper import HealthKeeper
from corral.kernel.clock import Clock
from corral.monitor.health.check_rounds import CheckRounds
from corral.monitor.health.check_scripts import Checked

if TYPE_CHECKING:
    from corral.control.loop import Control

_MOST_NODES: Final = 256
LOCAL: Final = "local"
"""The engine whose nodes are this machine, or parts of it."""


class Checks:
    """Runs all scripts of a folder in rounds."""

    def __init__(
        self, control: Control, keeper: HealthKeeper, clock: Clock, folder: Path, *, every: float, limit: float
    ) -> None:
        """A round begins `every` seconds, and a script may take `limit` seconds."""
        self._control = control
        self._keeper = keeper
        self._clock = clock
        self._rounds = CheckRounds(folder, self._nodes, self._tell, every=every, limit=limit)

    async def run(self) -> None:
        """Check from when control leads until cancelled."""
        await self._control.ready.wait()
        await self._rounds.run()

    def _nodes(self) -> Sequence[str]:
        inventory = self._control.machines.inventory(LOCAL)
        return [node.name for node in inventory.nodes[:_MOST_NODES]] if inventory is not None else []

    def _tell(self, found: list[Checked]) -> None:
        now = self._clock.now()
        self._keeper.add(sign for each in found if (sign := each.sign(now)) is not None)
