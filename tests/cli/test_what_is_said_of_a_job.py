"""What `corral get` and `corral ls` say of a job is true when they say it."""

from __future__ import annotations

from typing import Any

import click

from corral.cli.detail import detail_text

WAITS = {"code": "no-room", "message": "It needs 4 devices; 0 of 8 are free.", "ahead": 4, "possible": True}


def detail(**more: Any) -> Any:
    """A job as the API shows it."""
    tasks = {"total": 1, "waiting": 1, "running": 0, "succeeded": 0, "failed": 0}
    counted = {"minReplicas": 1, "maxReplicas": 1, "replicas": 1, "targetReplicas": {}}
    job = {
        "id": "0123456789abc",
        "name": "vb",
        "state": "waiting",
        "user": "ann",
        "queue": "vision",
        "priority": 10,
        "jobType": "shell",
        "tasks": tasks,
        "devices": 4,
        "createdAt": "2026-01-01T00:00:00Z",
        "startedAt": None,
        "endedAt": None,
        "attempt": 0,
        "retries": 0,
        "tags": [],
        "document": {"spec": {"replicaSpec": counted}},
        "waiting": WAITS,
        "exit": None,
    }
    return job | more


def test_how_many_were_ahead_when_the_reason_was_stored_is_not_told_as_if_it_were_so_now() -> None:
    reasons = {"binding": WAITS, "others": [], "ahead": 4, "possible": True}
    text = click.unstyle(detail_text(detail(reasons=reasons)))
    assert "It needs 4 devices; 0 of 8 are free." in text and "4 ahead" not in text
    assert "corral explain 0123456789abc" in text
