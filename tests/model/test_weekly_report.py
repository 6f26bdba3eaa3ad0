"""When the weekly report is due, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from corral.model.efficiency.figures import Figures, Mean
from corral.model.efficiency.records import EfficiencyReport, EfficiencySum
from corral.model.efficiency.verdict import JobHeld, RoleHeld, judge
from corral.model.fairness import FairnessReport, FairnessRow
from corral.model.idle.records import IdleJob
from corral.model.notifications.mail_addresses import read_addresses
from corral.model.usage import Use
from corral.model.weekly_report import WeekFigures, WeekTime, read_week_time, report_text, week_due

HOUR = 3600.0


@pytest.mark.parametrize(
    ("at", "now", "week"),
    [
        ("monday 07:00", "2026-11-30T07:00", "2026-W48"),
        ("monday 07:00", "2026-11-30T06:59", "2026-W47"),
        ("monday 07:00", "2026-12-06T23:59", "2026-W48"),
        ("friday 16:30", "2026-12-04T16:29", "2026-W47"),
        ("friday 16:30", "2026-12-04T16:30", "2026-W48"),
        ("sunday 23:59", "2026-12-06T23:59", "2026-W48"),
        ("monday 00:00", "2027-01-11T00:00", "2027-W01"),
        ("monday 00:00", "2027-01-04T00:00", "2026-W53"),
    ],
)
def test_the_last_whole_week_is_due_at_its_time(at: str, now: str, week: str) -> None:
    assert week_due(read_week_time(at), datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp()) == week


def test_settings_are_read_or_refused_in_one_sentence() -> None:
    assert read_week_time(" Tuesday 09:05 ") == WeekTime(1, 9, 5)
    for wrong in ("", "monday", "moonday 07:00", "monday 24:00", "monday 7:00", "monday 07:60"):
        with pytest.raises(ValueError, match="monday 07:00"):
            read_week_time(wrong)
    assert read_addresses("a@b.org, c@d.org,a@b.org,") == ("a@b.org", "c@d.org") and read_addresses("") == ()
    for wrong in ("me", "a@b@c", "a b@c.org", "<a@b.org>", "a@b.org\nBcc: x@y.org"):
        with pytest.raises(ValueError, match="is no mail address"):
            read_addresses(wrong)
    with pytest.raises(ValueError, match="at most 20 addresses, got 21"):
        read_addresses(",".join(f"u{at}@x.org" for at in range(21)))


def figures(idle: int = 1) -> WeekFigures:
    role = RoleHeld("worker", 1, Use(16 * HOUR, 4 * HOUR, 2 * HOUR), 8000, 0, 0)
    held = JobHeld("j1", "train", "ann", "lab", "succeeded", 0.0, 7200.0, 7200.0, 0, (role,))
    job = judge(held, {"worker": Figures(1, Mean(25.0, 99.0), 2)})
    total = EfficiencySum("", 168 * HOUR, 4 * HOUR, 16 * HOUR, 4 * HOUR)
    users = (EfficiencySum("ann", 16 * HOUR, 4 * HOUR, 16 * HOUR, 4 * HOUR), EfficiencySum("bob", 152 * HOUR))
    begin, end = "2026-11-23T00:00:00.000Z", "2026-11-30T00:00:00.000Z"
    fairness = FairnessReport(begin, end, (FairnessRow("lab", 200 * HOUR, 168 * HOUR, 0.84, 5, 1.0, 600.0),), 0.97)
    waste = IdleJob("j1", "", "ann", "lab", "acted", None, 8, 8, 8 * HOUR, acted_at=end, reason="late")
    warned = [msgspec.structs.replace(waste, name=f"train-{at}") for at in range(idle)]
    return WeekFigures(EfficiencyReport(begin, end, total, users, (job,), 3), fairness, warned, 4)


def test_a_report_tells_use_fairness_users_idle_devices_and_jobs() -> None:
    subject, text = report_text("2026-W48", figures())
    assert subject == "Corral in the week 2026-W48"
    for said in (
        "from 2026-11-23 to before 2026-11-30 (UTC)",
        "Jobs held 168.0 device-hours, 25 % of the 672 of the 4 devices of now; 4.0 of them came to nothing.",
        "Of 16.0 device-hours whose use was measured, 25 % were used.",
        "3 smaller jobs count as held, not as measured.",
        "lab: owed 200.0, got 168.0 device-hours (ratio 0.84); 5 jobs started, 95 % of them within 10 min",
        "Jain's index is 0.970; 1 is even.",
        "ann: 16.0 held, 4.0 lost, 25 % used",
        "bob: 152.0 held, 0.0 lost, use unknown",
        "ann~train-0 (lab): 8.0 device-hours, acted on; more time: late",
        "ann~train, worker: 2 instead of 8 devices; 12.0 device-hours unused",
    ):
        assert said in text


def test_a_week_without_anything_says_so_and_long_parts_are_cut() -> None:
    nothing = WeekFigures(EfficiencyReport("a", "b", EfficiencySum("")), FairnessReport("a", "b"), (), 0)
    text = report_text("2026-W48", nothing)[1]
    for said in ("Jobs held 0.0 device-hours; 0.0", "No queue", "No user held", "No owner was warned.", "None, as far"):
        assert said in text
    lines = report_text("2026-W48", figures(idle=50))[1].splitlines()
    assert "  and 31 more" in lines and len(lines) < 60
