"""`corral queues NAME --history` tells weeks with waits and amounts, and leaves out what is not known."""

from __future__ import annotations

from typing import Any, cast

from corral.cli.queue_history import history_row
from corral.client.schema import QueueHistoryWeek


def week(**told: Any) -> QueueHistoryWeek:
    begun = {"week": "2026-W48", "begin": "2026-11-23T00:00:00Z", "started": 0, "waitP50": None, "waitP95": None}
    return cast(QueueHistoryWeek, {**begun, "used": 0.0, "borrowed": None, "lent": None, **told})


def test_a_week_is_a_row_and_what_is_not_known_is_empty() -> None:
    busy = week(started=3, waitP50=60.0, waitP95=7200.0, used=36_000.0, borrowed=3_600.0, lent=0.0)
    assert history_row(busy) == ("2026-W48", 3, "1m", "2h", "10.0", "1.0", "0.0")
    assert history_row(week()) == ("2026-W48", 0, "", "", "0.0", "", "")
