"""The weekly report is queued once, also across restarts, and mailed through a real SMTP server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from corral.control.notifications import notifier_of
from corral.control.weekly_reports import LAST, WeeklyReports, weekly_reports
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import InvalidInput
from corral.model.weekly_report import read_week_time
from corral.monitor.mail import SmtpMailer
from corral.service.secret_box import SecretBox
from tests.control.harness import House, short
from tests.store.makers import attempted, batch
from tests.testbeds.mail_server import MailServer

KEY = b"k" * 32
SATURDAY = datetime(2026, 11, 28, tzinfo=UTC).timestamp()
HOUR = 3600.0
DAY = 24 * HOUR


def reports(house: House, clock: VirtualClock, *to: str) -> WeeklyReports:
    return WeeklyReports(house.control, None, to or ("boss@example.org",), read_week_time("monday 07:00"), clock)


async def queued(house: House) -> list[Any]:
    return list((await house.store.messages_of(":reports")).items)


async def test_each_week_is_reported_once_to_each_address_from_the_first_whole_one_on(house: House) -> None:
    await house.begin()
    clock = VirtualClock(SATURDAY)
    made = reports(house, clock, "boss@example.org", "ops@example.org")
    assert not await made.look(), "the week before reports were asked for"
    clock.advance(2 * DAY + 6.9 * HOUR)
    assert not await made.look()
    clock.advance(0.2 * HOUR)
    assert await made.look() and not await made.look()
    assert not await reports(house, clock).look(), "after a restart"
    assert {(each.channel, each.subject) for each in await queued(house)} == {
        ("boss@example.org", "Corral in the week 2026-W48"),
        ("ops@example.org", "Corral in the week 2026-W48"),
    }
    clock.advance(15 * DAY)
    assert await reports(house, clock).look(), "of weeks in which no server ran the last is reported"
    assert await house.store.setting(LAST) == "2026-W50" and len(await queued(house)) == 3


async def test_what_cannot_be_read_is_tried_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.begin()
    clock = VirtualClock(SATURDAY)
    made = reports(house, clock)
    await made.look()
    clock.advance(3 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(made, "_figures", lambda week, now: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await made.look()
    assert await made.look()


async def test_a_report_is_mailed_with_the_weeks_figures(house: House) -> None:
    control = await house.begin()
    clock = VirtualClock(SATURDAY)
    made = reports(house, clock)
    await made.look()
    job = await house.submit(short("waits", devices=40))
    held = attempted(
        job, user="ada", node="local/n1", device_millis=2000, code=0, started_at=SATURDAY, ended_at=SATURDAY + HOUR
    )
    await house.control_store.commit(batch(control.epoch, attempts=(held,)))
    clock.advance(3 * DAY)
    server = MailServer()
    listening = await server.serve()
    try:
        assert await made.look()
        mailer = SmtpMailer(server.url, "corral@example.org")
        notifier = notifier_of(control, key=KEY, secret_box=SecretBox(KEY), mailer=mailer)
        notifier._clock = clock
        await notifier.look()
        await notifier.settle()
    finally:
        listening.close()
        await listening.wait_closed()
    (mail,) = server.messages
    assert "Subject: Corral in the week 2026-W48" in mail and "To: boss@example.org" in mail
    assert "Jobs held 2.0 device-hours" in mail and "ada: 2.0 held, 0.0 lost, use unknown" in mail
    assert [each.state for each in await queued(house)] == ["sent"]


@pytest.mark.parametrize(
    ("to", "at", "mail", "said"),
    [
        ("boss", "monday 07:00", True, "'boss' is no mail address"),
        ("boss@example.org", "soon", True, "written as monday 07:00"),
        ("boss@example.org", "monday 07:00", False, "report_mail_to needs a mail server"),
    ],
)
async def test_unusable_settings_are_refused(house: House, to: str, at: str, mail: bool, said: str) -> None:
    await house.begin()
    with pytest.raises(InvalidInput, match=said):
        weekly_reports(house.control, None, to, at, mail=mail)
    assert weekly_reports(house.control, None, "", "monday 07:00", mail=False) is None
