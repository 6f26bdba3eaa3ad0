"""Put the watch over nodes' health beside a control: its keeper, its validation jobs, and the check scripts."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, NamedTuple

from corral.control.health.checks import Checks
from corral.control.health.keeper import HealthKeeper
from corral.control.health.validations import Validations
from corral.control.loop import Control
from corral.kernel.ids import AttemptId
from corral.model.health.ledger import HealthTerms
from corral.storage.log_sources import LogSources

BUILT_IN: Final = "built-in"
NONE: Final = "none"
SUITE: Final = "suite:"
"""What the name or the file of a benchmark suite stands behind."""
_LOG_BYTES: Final = 65_536
"""The last bytes of a validation's log that are read."""


class HealthSettings(NamedTuple):
    """The settings of the watch, under the names that the server's settings have."""

    administrator: str
    """The account of validation jobs."""
    health: str
    health_half_life_hours: float
    health_prefer_score: float
    health_cordon_score: float
    health_failed_starts: int
    health_most_cordoned: int
    health_validation: str
    health_checks: Path | None
    health_check_seconds: float
    health_check_limit_seconds: float

    @classmethod
    def of(cls, settings: object) -> HealthSettings:
        """Those among the server's settings."""
        return cls(*(getattr(settings, name) for name in cls._fields))


def watch_beside(
    control: Control, logs: LogSources, settings: HealthSettings
) -> tuple[HealthKeeper | None, list[Coroutine[Any, Any, None]]]:
    """Have a keeper watch a control; the loops run beside it. There is none if the setting `health` is `off`."""
    if settings.health == "off":
        return None, []
    keeper = HealthKeeper(control.store, control.clock, health_terms(settings))
    control.on_stored.append(keeper.stored)
    control.on_intents = keeper.heard
    control.inventories.overlaid = keeper.overlaid

    async def read_log(attempt: AttemptId) -> bytes:
        source = await logs.source(attempt, (await logs.streams(attempt))[0])
        try:
            return (await source.read(max(0, await source.size() - _LOG_BYTES), _LOG_BYTES))[1]
        finally:
            await source.close()

    if settings.health_validation != NONE:
        given = settings.health_validation
        suite = given.removeprefix(SUITE) if given.startswith(SUITE) else ""
        document = None if suite or given == BUILT_IN else Path(given)
        keeper.validations = Validations(
            control.store, control.clock, control, settings.administrator, document=document, read_log=read_log,
            suite=suite,
        )  # fmt: skip
    loops = [keeper.run(control)]
    if settings.health_checks is not None:
        every, limit = settings.health_check_seconds, settings.health_check_limit_seconds
        checks = Checks(control, keeper, control.clock, settings.health_checks, every=every, limit=limit)
        loops.append(checks.run())
    return keeper, loops


def health_terms(settings: HealthSettings) -> HealthTerms:
    """The terms of the ledger."""
    return HealthTerms(
        settings.health_half_life_hours * 3600,
        settings.health_prefer_score,
        settings.health_cordon_score,
        settings.health_failed_starts,
        settings.health_most_cordoned,
        prefers=settings.health != "watch",
        cordons=settings.health == "cordon",
        validates=settings.health_validation != NONE,
    )
