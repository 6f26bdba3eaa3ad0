"""The words of `corral estimates`."""

from __future__ import annotations

from typing import Any, cast

from corral.cli.estimate_report import report_text


def of_queue(queue: str, **more: Any) -> dict[str, Any]:
    counts = {"given": 10, "jobs": 9, "started": 8, "waiting": 1, "notStarted": 1, "held": 6, "early": 1, "late": 2}
    times = {"coverage": 6 / 9, "width": 5400.0, "pastWidth": 90000.0, "bias": -60.0, "error": 600.0}
    return {"queue": queue} | counts | times | more


def test_a_row_for_each_queue_and_one_for_all_of_several() -> None:
    told: dict[str, Any] = {"queues": [of_queue("research"), of_queue("vision", bias=30.0)], "total": of_queue("")}
    lines = report_text(cast(Any, told)).splitlines()
    assert [line.split()[0] for line in lines] == ["QUEUE", "research", "vision", "all"]
    assert lines[1].split() == [*["research", "10", "8", "1", "6", "1", "2", "67", "%", "1h30m", "1d1h", "-1m", "10m"]]
    assert "+30s" in lines[2]
    assert len(report_text(cast(Any, told | {"queues": told["queues"][:1]})).splitlines()) == 2


def test_unknown_figures_are_left_empty() -> None:
    nothing = dict.fromkeys(("coverage", "width", "pastWidth", "bias", "error"))
    line = report_text(cast(Any, {"queues": [of_queue("research", **nothing)], "total": None})).splitlines()[1]
    assert line.split() == ["research", "10", "8", "1", "6", "1", "2"]
