"""What watches jobs and reports on them beside a control: idle devices, hangs, use, budgets, and the weekly report."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corral.control.budget_keeper import BudgetKeeper
from corral.control.control_api import ControlApi
from corral.control.hangs.bundles import Bundles
from corral.control.hangs.keeper import HangKeeper
from corral.control.health.keeper import HealthKeeper
from corral.control.idle.keeper import IdleKeeper
from corral.control.loop import Control
from corral.control.metrics.measured_use import MeasuredUse
from corral.control.weekly_reports import weekly_reports
from corral.kernel.ids import JobId

if TYPE_CHECKING:
    from corral.storage.remote_folder import RemoteFolder  # its library is loaded only where there is a remote folder


class ReportSettings(NamedTuple):
    """The settings of reports, under the names that the server's settings have."""

    administrator: str
    """The account of the server's own jobs."""
    mail_server: str
    report_mail_to: str
    report_mail_at: str
    data_folder: Path
    """Where the bundles of jobs that hung are kept."""

    @classmethod
    def of(cls, settings: object) -> ReportSettings:
        """Those among the server's settings."""
        return cls(*(getattr(settings, name) for name in cls._fields))


def watchers(
    control: Control,
    api: ControlApi,
    settings: ReportSettings,
    shared: RemoteFolder | None = None,
    health: HealthKeeper | None = None,
) -> list[Coroutine[Any, Any, None]]:
    """The loops that run beside a control; `shared` is the folder that several servers share.

    `health` finds tasks that stop while their peers go on.

    Raises InvalidInput for settings that cannot be read.
    """
    to, at = settings.report_mail_to, settings.report_mail_at
    reports = weekly_reports(control, api.read_series, to, at, mail=bool(settings.mail_server))
    kept = shared.below("hangs") if shared is not None else None
    bundles = api.bundles = Bundles(settings.data_folder / "hangs", shared=kept)
    control.removed = _both(control.removed, bundles.forget)
    hangs = HangKeeper(control, bundles, api.log_sources, api.metrics.everywhere)
    if health is not None:
        health.on_hanging = hangs.stopped
    loops = [
        IdleKeeper(control, api.metrics.everywhere).run(control.ready),
        hangs.run(control.ready),
        MeasuredUse(control, api.metrics.measured).run(control.ready),
        BudgetKeeper(control, settings.administrator).run(control.ready),
    ]
    if reports is not None:
        loops.append(reports.run(control.ready))
    return loops


def _both(first: Callable[[JobId], None], then: Callable[[JobId], None]) -> Callable[[JobId], None]:
    def removed(job: JobId) -> None:
        first(job)
        then(job)

    return removed
