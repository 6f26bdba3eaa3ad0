"""Run the check scripts of a folder in rounds, on a server's machine or beside a node's agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from corral.kernel.errors import InvalidInput
from corral.model.metrics.agent_page import CheckTold
from corral.model.metrics.samples import Value
from corral.model.metrics.task_families import TaskMetric
from corral.monitor.health.check_scripts import OK, PROBLEM, Checked, run_all

log = structlog.get_logger()


class CheckRounds:
    """Runs all scripts of a folder for some nodes again and again. No failure ends it."""

    def __init__(
        self,
        folder: Path,
        nodes: Callable[[], Sequence[str]],
        take: Callable[[list[Checked]], None],
        *,
        every: float,
        limit: float,
    ) -> None:
        """`take` is given what each round found; a round begins `every` seconds after the last has ended.

        A script may take `limit` seconds."""
        self._folder, self._nodes, self._take = folder, nodes, take
        self._every, self._limit = every, limit
        self._unknown: dict[tuple[str, str], str] = {}
        """By script and node, what was logged of runs that could not tell."""

    async def run(self) -> None:
        """Check until cancelled."""
        refused = ""
        while True:
            try:
                await self.round()
                refused = ""
            except InvalidInput as error:
                self._take([])
                if error.message != refused:
                    log.error("check scripts are not run", message=error.message)
                refused = error.message
            except Exception as error:  # a fault of the checks must end nothing else
                if repr(error) != refused:
                    log.error("check scripts are not run", error=repr(error)[:500])
                refused = repr(error)
            await asyncio.sleep(self._every)

    async def round(self) -> None:
        """Run every script for every node once.

        Raises InvalidInput if the folder is not usable.
        """
        found = await run_all(self._folder, self._nodes(), self._limit)
        self._take(found)
        for each in found:
            self._note(each)

    def _note(self, each: Checked) -> None:
        """Log a run that could not tell, once while its message stays the same."""
        key, said = (each.script, each.node), f"{each.code}: {each.message}"
        if each.code in (OK, PROBLEM):
            self._unknown.pop(key, None)
        elif self._unknown.get(key) != said:
            self._unknown[key] = said
            log.warning("a check script cannot tell", script=each.script, node=each.node, said=said)


class ChecksOfNode:
    """The check scripts of an agent's own node, and how their last runs ended."""

    def __init__(self, folder: Path, node: str, *, every: float, limit: float) -> None:
        self._rounds = CheckRounds(folder, lambda: (node,), self._keep, every=every, limit=limit)
        self.told: tuple[CheckTold, ...] = ()

    async def run(self) -> None:
        """Check until cancelled."""
        await self._rounds.run()

    def values(self) -> tuple[Value, ...]:
        """Whether each script found a problem, for Prometheus."""
        known = [each for each in self.told if each.code in (OK, PROBLEM)]
        return tuple(Value(TaskMetric.CHECK, (each.script,), float(each.code == PROBLEM)) for each in known)

    def _keep(self, found: list[Checked]) -> None:
        now = time.time()
        self.told = tuple(CheckTold(each.script, each.code, each.message, now) for each in found)
