"""Run the check scripts for the nodes of the local engine, and tell the keeper of problems."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from corral.control.health.keeper import HealthKeeper
from corral.kernel.clock import Clock
from corral.kernel.errors import InvalidInput
from corral.monitor.health.check_scripts import Checked, run_all

if TYPE_CHECKING:
    from corral.control.loop import Control

log = structlog.get_logger()

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
        self._folder = folder
        self._every = every
        self._limit = limit
        self._unknown: dict[tuple[str, str], str] = {}
        """By script and node, what was logged of runs that could not tell."""

    async def run(self) -> None:
        """Check from when control leads until cancelled."""
        await self._control.ready.wait()
        refused = ""
        while True:
            try:
                await self.round()
                refused = ""
            except InvalidInput as error:
                if error.message != refused:
                    log.error("check scripts are not run", message=error.message)
                refused = error.message
            except Exception as error:  # a fault of the checks must not end control
                if repr(error) != refused:
                    log.error("check scripts are not run", error=repr(error)[:500])
                refused = repr(error)
            await asyncio.sleep(self._every)

    async def round(self) -> None:
        """Run every script for every node once.

        Raises InvalidInput if the folder is not usable.
        """
        inventory = self._control.machines.inventory(LOCAL)
        nodes = [node.name for node in inventory.nodes[:_MOST_NODES]] if inventory is not None else []
        found = await run_all(self._folder, nodes, self._limit)
        now = self._clock.now()
        self._keeper.add(sign for each in found if (sign := each.sign(now)) is not None)
        for each in found:
            self._note(each)

    def _note(self, each: Checked) -> None:
        """Log a run that could not tell, once while its message stays the same."""
        key, said = (each.script, each.node), f"{each.code}: {each.message}"
        if each.code in (0, 1):
            self._unknown.pop(key, None)
        elif self._unknown.get(key) != said:
            self._unknown[key] = said
            log.warning("a check script cannot tell", script=each.script, node=each.node, said=said)
