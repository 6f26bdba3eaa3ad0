"""Run validation jobs as an account of the server, and move nodes by how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from secrets import randbits
from typing import TYPE_CHECKING, Final

import structlog

from corral.control.core.new_jobs import stored_job
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.kernel.ids import AttemptId, JobId, JobIds
from corral.model.benchmarks import BenchmarkRun
from corral.model.health.ledger import Ledger
from corral.model.health.records import HEALTH, NodeHealth
from corral.model.health.states import Cause, HealthState
from corral.model.inventory import Node
from corral.model.store_writes import IntentKind, JobRecord

if TYPE_CHECKING:
    from corral.control.loop import Control
    from corral.store import Store

log = structlog.get_logger()

LONGEST_SECONDS: Final = 4 * 3600.0
"""Seconds after which a validation that has not ended has failed."""
_MOST_BYTES: Final = 1_000_000
"""Bytes of the administrator's document."""
_LONGEST_WHY: Final = 300

ReadLog = Callable[[AttemptId], Awaitable[bytes]]
"""Reads the end of an attempt's log."""


class Validations:
    """Submits a job to each node that is validating and empty, and judges how it ended."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        control: Control,
        user: str,
        *,
        document: Path | None,
        read_log: ReadLog,
        suite: str = "",
    ) -> None:
        """`user` is the account of the jobs; without a `document` or a benchmark `suite` they are the built-in check."""
        self._store = store
        self._clock = clock
        self._control = control
        self._user = user
        self._document = document
        self._suite = suite
        self._read_log = read_log
        self._ids = JobIds(randbits)

    async def begin(self, ledger: Ledger, empty: Collection[str]) -> None:
        """Submit the jobs of nodes that are validating and on which no task is.

        Raises Unavailable like the store.
        """
        for health in ledger.closed:
            if health.state is not HealthState.VALIDATING or health.job or health.node not in empty:
                continue
            node = self._control.node(health.node)
            if node is None:
                continue
            now = self._clock.now()
            try:
                ledger.note_job(health.node, await self._submit(node, now))
            except Unavailable:
                raise
            except (CorralError, OSError) as error:
                why = f"the validation job could not be submitted: {error}"[:_LONGEST_WHY]
                ledger.move(health.node, Cause.FAILED, HEALTH, why, now)

    async def _submit(self, node: Node, now: float) -> JobId:
        from corral.monitor.health.validation import validation_job

        identity = self._ids.next(int(now * 1000))
        short = "".join(letter if letter.isalnum() else "-" for letter in node.name.partition("/")[2].lower())
        name = f"validate-{short.strip('-')[:30]}-{str(identity)[-6:]}"
        job = validation_job(node, name, self._text(node))
        spec = job.spec
        new = stored_job(
            identity, now, job.to_json(), name=job.name, user=self._user, queue=spec.queue, priority=job.priority,
            job_type=spec.job_type, tags=tuple(spec.tags),
        )  # fmt: skip
        await self._store.submit(new)
        self._control.wake()
        return identity

    def _text(self, node: Node) -> str:
        """The job of the suite, or the administrator's document; "" if there is neither.

        Raises InvalidInput if it is too long, not text or no suite, and NotFound without a suite of that name.
        """
        if self._suite:
            from corral.benchmarks.suites.named import suite_text
            from corral.monitor.health.suite_validation import suite_job

            return suite_job(node, suite_text(self._suite))
        if self._document is None:
            return ""
        with self._document.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidInput("bad-validation", f"{self._document} is longer than {_MOST_BYTES} bytes.")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput("bad-validation", f"{self._document} is not UTF-8 text: {error}.") from None

    async def look(self, ledger: Ledger) -> None:
        """Move the nodes whose validation has ended, and stop jobs of nodes that no longer need theirs.

        Raises Unavailable like the store.
        """
        now, jobs = self._clock.now(), self._control.world.jobs
        for health in list(ledger.known.values()):
            job = JobId(health.job)
            if health.state is not HealthState.VALIDATING:
                if health.job and job in jobs:
                    await self._stop(job)
            elif health.job and job not in jobs:
                await self._judge(ledger, health, now)
            elif now - health.since > LONGEST_SECONDS:
                hours = LONGEST_SECONDS / 3600
                ledger.move(health.node, Cause.FAILED, HEALTH, f"the validation did not end within {hours:.0f} h", now)

    async def _stop(self, job: JobId) -> None:
        await self._store.add_intent(job, IntentKind.STOP, {}, actor=HEALTH, at=self._clock.now())
        self._control.wake()

    async def _judge(self, ledger: Ledger, health: NodeHealth, now: float) -> None:
        record = await self._store.find_job(health.job)
        if record is None:
            ledger.move(health.node, Cause.FAILED, HEALTH, "its validation job is gone", now)
        elif record.run.completion is not None:
            why = await self._fault(record, health.node, now)
            cause, said = (Cause.FAILED, why) if why else (Cause.PASSED, f"its validation {record.name} succeeded")
            ledger.move(health.node, cause, HEALTH, said[:_LONGEST_WHY], now)

    async def _fault(self, record: JobRecord, name: str, now: float) -> str:
        """What a validation found wrong; "" if nothing."""
        from corral.monitor.health.validation import Figures, below_data_sheet, read_figures, slow_figures

        completion = record.run.completion
        if completion is None or not completion.succeeded:
            ended = "" if completion is None else f" with {completion.code}: {completion.diagnostics.strip()[-200:]}"
            return f"its validation {record.name} ended{ended}".rstrip(": ")
        node = self._control.node(name)
        attempts = await self._store.job_attempts(record.id, next(iter(record.run.roles)), 0, limit=1)
        if node is None or not attempts.items:
            return ""
        found = read_figures(node, await self._read_log(AttemptId(attempts.items[0].id)), now)
        if found is None:
            return ""
        await self._keep(node, found.figures, now)
        if why := below_data_sheet(node, found):
            return why
        known = await self._store.figures_alike(found.alike)
        others = [Figures(other, found.alike, now, figures) for other, figures in known.items()]
        if why := slow_figures(found, others):
            return why
        await self._store.put_figures(name, found.alike, now, found.figures)
        return ""

    async def _keep(self, node: Node, figures: Mapping[str, float], now: float) -> None:
        """Keep what a suite measured for the history of the node."""
        from corral.benchmarks.results.figures import figures_of
        from corral.monitor.health.suite_validation import sku_of

        told = {name: value for name, value in figures.items() if "/" in name and not name.endswith("_per_second")}
        if not self._suite or not told:
            return
        run = BenchmarkRun(
            str(self._ids.next(int(now * 1000))), now, self._user, f"validation: {Path(self._suite).name}"
        )
        kept = figures_of(node.name, sku_of(node), told)
        await self._store.keep_benchmark(run, [each._replace(run=run.id) for each in kept])
