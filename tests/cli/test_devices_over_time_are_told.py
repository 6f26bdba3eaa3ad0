"""`corral nodes timeline` tells stays by node: what was and runs first, then what is expected."""

from __future__ import annotations

from typing import cast

from corral.cli.device_timeline import timeline_rows
from corral.client.schema import DeviceStay, DeviceTimeline


def stay(job: str, node: str, begin: str, end: str | None) -> DeviceStay:
    told = {"job": job, "name": job, "user": "ada", "queue": "default", "node": node, "devices": [0, 1]}
    return cast(DeviceStay, {**told, "begin": begin, "end": end})


def test_rows_are_by_node_and_time_and_say_what_still_runs() -> None:
    past = [
        stay("runs", "local/n2", "2026-11-28T11:00:00Z", None),
        stay("was", "local/n1", "2026-11-28T09:00:00Z", "2026-11-28T10:00:00Z"),
    ]
    expected = [
        stay("runs", "local/n2", "2026-11-28T11:59:58Z", "2026-11-28T14:00:00Z"),
        stay("comes", "local/n2", "2026-11-28T14:00:00Z", None),
    ]
    page = {"at": "2026-11-28T12:00:00Z", "past": past, "expected": expected}
    rows = timeline_rows(cast(DeviceTimeline, page))
    assert [row[:3] for row in rows] == [
        ("local/n1", "0,1", "was"),
        ("local/n2", "0,1", "runs"),
        ("local/n2", "0,1", "runs"),
        ("local/n2", "0,1", "comes"),
    ]
    ends = [row[5:] for row in rows]
    assert ends[1][1] == "now" and ends[2][0] == "now" and ends[3][1] == "later"
    assert ends[2][1] == ends[3][0], "one begins when the other ends"
