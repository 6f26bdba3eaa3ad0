"""Assign test files to lanes (pytest-xdist workers), and order them.

A file is never split: its module fixtures are made once. Files that share an expensive set-up (a Kubernetes control
plane, a Hadoop cluster, the portal's server) belong to a *pool*. They run in one lane and in a row, as daemons without a
test use processor time too. Of the pools and files that a lane may take, the one with the most work left comes first, by
the seconds of an earlier run: that keeps the end of a run short (LPT; Graham, "Bounds on Multiprocessing Timing
Anomalies", 1969).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.suite.outcomes import file_of

ROOT: Final = Path(__file__).resolve().parents[2]
SECONDS: Final = Path(__file__).with_name("seconds.json")
"""Seconds by file, of the last published run; a file without an entry counts as `UNKNOWN` seconds."""
UNKNOWN: Final = 5.0


@functools.cache
def pool_of(file: str) -> str:
    """The name of the pool that a file belongs to; "" for a file of its own."""
    if file.startswith("tests/portal/"):
        return "portal"
    for hadoop in ("yarn", "kerberised"):
        if file.startswith(f"tests/engines/{hadoop}/"):
            return hadoop
    if file.startswith("tests/engines/kubernetes/"):
        text = (ROOT / file).read_text()
        # Two control planes, in two lanes: one for the files that need a kubelet.
        return next((mark for mark in ("kubelet", "kubernetes") if f"pytest.mark.{mark}" in text), "")
    return ""


@dataclass
class Plan:
    """The files that wait for a lane, and the lane of each pool."""

    seconds: Mapping[str, float]
    pool_of: Callable[[str], str] = pool_of
    owners: dict[str, str] = field(default_factory=dict)
    inside: dict[str, str] = field(default_factory=dict)
    """The pool whose files a lane runs now. It goes through them in a row, so that their set-up ends with the last."""

    def choose(self, lane: str, waiting: Iterable[str]) -> str | None:
        """The file that a lane takes next; None when all waiting ones are in other lanes' pools."""
        work: dict[str, float] = {}
        first_of: dict[str, str] = {}  # a pool's files run in the order of their names, as in one process
        for file in sorted(waiting):
            group = self.pool_of(file) or file
            if self.owners.get(group, lane) == lane:
                work[group] = work.get(group, 0.0) + self.seconds.get(file, UNKNOWN)
                first_of.setdefault(group, file)
        if not work:
            return None
        group = self.inside.get(lane, "")
        if group not in work:
            group = max(work, key=work.__getitem__)
        self.inside[lane] = self.pool_of(first_of[group])
        if self.inside[lane]:
            self.owners[group] = lane
        return first_of[group]

    def forget(self, lane: str) -> None:
        """Give a crashed lane's pools to others."""
        self.inside.pop(lane, None)
        self.owners = {pool: owner for pool, owner in self.owners.items() if owner != lane}


def known_seconds() -> dict[str, float]:
    """Seconds by file, of the last published run."""
    return dict(json.loads(SECONDS.read_text())) if SECONDS.exists() else {}


class LongestFirst(LoadScopeScheduling):
    """xdist's scheduling by scope, with files as scopes and `Plan` to choose among them."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        self._plan = Plan(known_seconds())

    def _split_scope(self, nodeid: str) -> str:
        return file_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        chosen = self._plan.choose(node.gateway.id, self.workqueue)
        if chosen is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Remove a lane. If it crashed, its running test counts as failed and the rest is assigned again.

        xdist's own method would give that test to the next lane too, and crash one lane after another with it.
        """
        self._plan.forget(node.gateway.id)
        units = self.assigned_work.pop(node)
        left = [(unit, test) for unit in units.values() for test, done in unit.items() if not done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({file: unit for file, unit in units.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed
