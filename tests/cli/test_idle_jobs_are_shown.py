"""What `corral idle` prints."""

from __future__ import annotations

import msgspec

from corral.cli.idle import idle_text
from corral.model.idle.records import IdleJob


def test_jobs_are_a_table_with_what_they_waste() -> None:
    job = IdleJob(
        "j1", "train", "ann", "lab", "warned", "2026-11-27T10:00:00Z", 2, 8, 7200.0, reason="late", dry_run=True,
        action="suspend", acts_at="2026-11-27T13:00:00Z",
    )  # fmt: skip
    lines = idle_text([msgspec.to_builtins(job)]).splitlines()
    assert lines[0].split() == ["JOB", "USER", "QUEUE", "STATE", "IDLE", "SINCE", "WASTED", "THEN", "REASON"]
    assert lines[1].split() == [
        "train", "ann", "lab", "warned", "(dry", "run)", "2", "of", "8", "2026-11-27T10:00:00Z", "2.0",
        "suspend", "at", "2026-11-27T13:00:00Z", "late"
    ]  # fmt: skip
