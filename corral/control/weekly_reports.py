"""Queue the weekly report as mail, once a week and address; the notifier sends it like other messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from corral.control.loop import Control
from corral.kernel.clock import Clock
from corral.kernel.errors import InvalidInput
from corral.model.fairness import week_of
from corral.model.notifications.channels import Outgoing, mail_channel
from corral.model.notifications.mail_addresses import read_addresses
from corral.model.notifications.messages import REPORT, Message
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.weekly_report import WeekFigures, WeekTime, read_week_time, report_text, week_due
from corral.monitor.look_again import look_again

log = structlog.get_logger()

LOOK_SECONDS: Final = 60.0
LAST: Final = "weekly-report"
"""The store's setting with the last week that was reported."""
_OWNER: Final = ":reports"
"""Stands for a user in the queue of messages; no account has such a name."""

Ask = Callable[[SeriesQuestion], Awaitable[tuple[Sequence[SeriesView], int]]]


class WeeklyReports:
    """Reports each week to some addresses. What fails is logged once, and tried again a minute later."""

    def __init__(
        self, control: Control, ask: Ask | None, addresses: Sequence[str], at: WeekTime, clock: Clock | None = None
    ) -> None:
        """`ask` reads series; None: there are none. `clock` is control's unless it is given."""
        self._control = control
        self._store = control.store
        self._ask = ask or _no_series
        self._addresses = addresses
        self._at = at
        self._clock = clock or control.clock
        self._last: str | None = None

    async def run(self, ready: asyncio.Event) -> None:
        """Look from when control leads until cancelled."""
        await look_again(ready, self.look, lambda: LOOK_SECONDS, "the weekly report has to wait")

    async def look(self) -> bool:
        """Queue the report if one is due; returns whether one was queued.

        The week that was due before reports were first asked for is not reported.
        """
        now = self._clock.now()
        week = week_due(self._at, now)
        if self._last is None:
            stored = await self._store.setting(LAST)
            if not isinstance(stored, str):
                await self._store.put_setting(LAST, week)
                stored = week
            self._last = stored
        if week <= self._last:
            return False
        subject, text = report_text(week, await self._figures(week, now))
        message = Message(REPORT, now, subject, text)
        outgoing = [
            Outgoing(f"report/{week}/{each}", _OWNER, mail_channel(each).id, each, message) for each in self._addresses
        ]
        await self._store.queue_messages(outgoing, now)
        await self._store.put_setting(LAST, week)
        self._last = week
        return True

    async def _figures(self, week: str, now: float) -> WeekFigures:
        from corral.service.jobs.idle_jobs import idle_view  # only servers with reports load these
        from corral.service.usage.efficiency import report_between
        from corral.service.usage.fairness import fairness_between

        begin, end = week_of(week, now)
        efficiency = await report_between(self._store, self._ask, begin, end, now)
        rows = await self._store.idle_rows(since=begin)
        warned = [idle_view(row, now) for row in rows if begin <= row.spell.warned_at < end]
        warned.sort(key=lambda each: (-each.wasted_device_seconds, each.job))
        devices = sum(len(node.devices) for node in self._control.machines.nodes.values())
        return WeekFigures(efficiency, await fairness_between(self._store, begin, end, now), warned, devices)


async def _no_series(question: SeriesQuestion) -> tuple[Sequence[SeriesView], int]:
    return (), 0


def weekly_reports(control: Control, ask: Ask | None, to: str, at: str, *, mail: bool) -> WeeklyReports | None:
    """The reports that the settings ask for; None if nobody is to be mailed.

    Raises InvalidInput for settings that cannot be read, and for addresses without a mail server.
    """
    try:
        addresses, when = read_addresses(to), read_week_time(at)
    except ValueError as error:
        raise InvalidInput("invalid-setting", f"report_mail_to or report_mail_at cannot be read: {error}.") from None
    if addresses and not mail:
        raise InvalidInput("invalid-setting", "report_mail_to needs a mail server (CORRAL_MAIL_SERVER).")
    return WeeklyReports(control, ask, addresses, when) if addresses else None
