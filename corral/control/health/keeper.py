"""Watch the health of nodes beside the control loop, and act on it by the same requests as people.

Nothing here may stop scheduling: what fails is logged, and tried again at the next look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, NotFound, Unavailable
from corral.kernel.ids import JobId, TaskKey
from corral.model.accounts import AuditWrite
from corral.model.cordons import Cordon
from corral.model.hangs.scores import RankScores
from corral.model.health.ledger import HealthTerms
from corral.model.health.records import HEALTH, HealthView, health_view
from corral.model.health.signs import NODE, Sign
from corral.model.health.states import Cause
from corral.model.inventory import Inventory
from corral.model.placement import TaskPlacement
from corral.model.store_writes import ControlBatch, Intent
from corral.monitor.health.figure_signs import Figures, FigureSigns
from corral.monitor.health.hangs import HangingTask
from corral.monitor.health.watch import Watch, empty_nodes

if TYPE_CHECKING:
    from corral.control.health.validations import Validations
    from corral.control.loop import Control
    from corral.store import Store

log = structlog.get_logger()

LOOK_SECONDS: Final = 2.0
"""Seconds between two looks at the nodes."""
FIGURE_SECONDS: Final = 30.0
"""Seconds between two looks at what was measured."""
_MOST_SIGNS: Final = 10_000
"""Signs of checks and monitors that wait for the next look; further ones are dropped."""


class HealthKeeper:
    """Feeds the ledger with what control stores and sees, keeps it in the store, and carries out what follows."""

    def __init__(self, store: Store, clock: Clock, terms: HealthTerms) -> None:
        self.terms = terms
        self._store = store
        self._clock = clock
        self._watch: Watch | None = None
        """None until what is stored has been read."""
        self._signs: list[Sign] = []
        self._told: set[str] = set()
        """The troubles that were logged."""
        self._turn = asyncio.Lock()
        self.control: Control
        """Set by `begin`."""
        self.figures: list[Callable[[], Mapping[str, Figures]]] = []
        """What tells, by node, what was measured there last."""
        self._figure_signs = FigureSigns()
        self._figures_at = float("-inf")
        """When figures were looked at last, by a clock that is never set."""
        self.on_hanging: Callable[[Sequence[HangingTask]], None] = lambda tasks: None
        """Told of tasks that stopped while their peers went on; it must not wait."""
        self.validations: Validations | None = None
        """Runs validation jobs; None: only administrators can end a cordon."""

    # ---- called by the control loop

    def stored(self, writes: ControlBatch) -> None:
        """Look at what a step has decided."""
        self._guarded("batch", lambda watch: watch.stored(writes, self._clock.now()))

    def heard(self, intents: Sequence[Intent]) -> None:
        """Look at what programs reported."""
        if intents:
            self._guarded("reports", lambda watch: watch.heard(intents, self._node_of, self._clock.now()))

    def overlaid(self, inventory: Inventory) -> Inventory:
        """An inventory with a taint on suspected nodes."""
        return inventory if self._watch is None else self._watch.overlaid(inventory)

    def _guarded(self, what: str, look: Callable[[Watch], None]) -> None:
        if self._watch is None:
            return
        try:
            look(self._watch)
        except Exception as error:
            self._trouble(what, error)

    def _trouble(self, what: str, error: Exception) -> None:
        """Log a failure, each kind of it once."""
        if what not in self._told:
            self._told.add(what)
            log.error("the health of nodes is not watched in full", part=what, error=repr(error)[:500])

    def _place_of(self, job: JobId, key: TaskKey) -> TaskPlacement | None:
        found = self.control.world.jobs.get(job)
        task = found.tasks.get(key) if found is not None else None
        return task.placement if task is not None and task.stays else None

    def _node_of(self, job: JobId, key: TaskKey) -> str:
        """The node of a task that is not being ended; a node that is lost has its own sign."""
        place = self._place_of(job, key)
        lost = place is None or self.control.machines.lost(place.node, self._clock.now())
        return "" if lost or place is None else place.node

    def _device_of(self, job: JobId, key: TaskKey) -> int:
        place = self._place_of(job, key)
        return place.devices[0] if place is not None and len(place.devices) == 1 else NODE

    # ---- called by others

    def add(self, signs: Iterable[Sign]) -> None:
        """Take signs of checks and of health monitors; they count at the next look."""
        self._signs.extend(signs)
        del self._signs[_MOST_SIGNS:]

    def views(self) -> list[HealthView]:
        """The nodes of which anything is known, the worst first.

        Raises Unavailable until what is stored has been read.
        """
        known, now, half_life = self._known().ledger.known.values(), self._clock.now(), self.terms.half_life_seconds
        found = [health_view(each, now, half_life) for each in known]
        return sorted(found, key=lambda view: (-view.score, view.node))

    def scores(self, job: JobId) -> RankScores:
        """How fast the tasks of a running job make steps now, beside each other; none if it does not run.

        Raises Unavailable until what is stored has been read.
        """
        watch, found = self._known(), self.control.world.jobs.get(job)
        return RankScores() if found is None else watch.scores(job, found.run.attempt)

    async def act(self, node: str, cause: Cause, by: str, why: str, audit: AuditWrite | None = None) -> HealthView:
        """Move a node to another state for an administrator, and carry out what follows.

        Raises NotFound `node-not-found`, Conflict `health-state`, Unavailable.
        """
        watch = self._known()
        if node not in self.control.machines.nodes and node not in watch.ledger.known:
            raise NotFound("node-not-found", f"There is no node {node[:100]}; `corral nodes` lists them.")
        async with self._turn:
            watch.ledger.move(node, cause, by, why, self._clock.now())
            await self._keep(watch, audit)
            await self._carry_out(watch)
        return health_view(watch.ledger.of(node), self._clock.now(), self.terms.half_life_seconds)

    def _known(self) -> Watch:
        if self._watch is None:
            raise Unavailable("control-starting", "The server is starting; try again in a second.")
        return self._watch

    # ---- beside the control loop

    async def run(self, control: Control) -> None:
        """Watch from when control leads until cancelled."""
        self.control = control
        await control.ready.wait()
        while True:
            try:
                if self._watch is None:
                    self._watch = Watch(self.terms, await self._store.node_health())
                    self._prefer_others(self._watch, frozenset())
                await self.look()
            except (CorralError, OSError) as error:
                log.warning("the health of nodes could not be kept", error=str(error)[:500])
            except Exception as error:
                self._trouble("look", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look at the nodes, move them where thresholds say so, store that, and act.

        Raises Unavailable like the store; what was not stored or done is tried again.
        """
        watch, control = self._known(), self.control
        if not control.world_is_whole:
            return
        async with self._turn:
            now = self._clock.now()
            await self._look_at_figures(now)
            signs, self._signs = self._signs, []
            for sign in signs:
                watch.ledger.add(sign)
            machines, before = control.machines, watch.ledger.suspects
            watch.machines(machines.nodes, lambda name: machines.lost(name, now), now)
            if hanging := watch.hanging(self._node_of, self._device_of, now):
                self.on_hanging(hanging)
            if self.validations is not None:
                await self.validations.look(watch.ledger)
            watch.ledger.review(now, machines.cordons, empty_nodes(watch.ledger.closed, control.world.held_nodes))
            await self._keep(watch)
            self._prefer_others(watch, before)
            await self._carry_out(watch)

    async def _look_at_figures(self, now: float) -> None:
        """Look for signs in what was measured, at most every FIGURE_SECONDS; in a thread, for it may be much."""
        steady = time.monotonic()
        if not self.figures or steady - self._figures_at < FIGURE_SECONDS:
            return
        try:
            figures = {node: each for told in self.figures for node, each in told().items()}
            if not figures:
                return
            self._figures_at = steady
            self.add(await asyncio.to_thread(lambda: list(self._figure_signs.look(figures, now))))
        except Exception as error:  # what agents tell must not keep other signs from being seen
            self._trouble("figures", error)

    def _prefer_others(self, watch: Watch, before: frozenset[str]) -> None:
        """Have the scheduler see the nodes anew if other ones are suspected than before."""
        if watch.ledger.suspects != before:
            self.control.inventories.stale = True
            self.control.wake()

    async def _keep(self, watch: Watch, audit: AuditWrite | None = None) -> None:
        nodes, entries = watch.ledger.take()
        if not nodes and not entries and audit is None:
            return
        try:
            await self._store.keep_health(nodes, entries, audit=audit)
        except Unavailable:
            watch.ledger.give_back(nodes, entries)
            raise

    async def _carry_out(self, watch: Watch) -> None:
        """Set and remove the cordons that follow, and begin validations."""
        if self.validations is not None:
            await self.validations.begin(watch.ledger, empty_nodes(watch.ledger.closed, self.control.world.held_nodes))
            await self._keep(watch)
        new, gone = watch.cordons_wanted(self.control.machines.cordons)
        for cordon in new:
            if not await self._is_set(cordon):
                await self._store.put_cordon(cordon)
        for node in gone:
            health = watch.ledger.of(node)
            await self._store.remove_cordon(node, actor=health.by or HEALTH, at=self._clock.now())

    async def _is_set(self, cordon: Cordon) -> bool:
        """Whether the store has a cordon that the core has not read yet."""
        known = (await self._store.cordons()).get(cordon.node)
        return known is not None and (known.by != HEALTH or known.validating == cordon.validating)
