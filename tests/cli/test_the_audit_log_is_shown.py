"""`corral audit --details` shows what was changed."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from corral.cli.audit import audit_command

LINES: list[dict[str, Any]] = [
    {"action": "job.edit", "detail": {"priority": {"from": 10, "to": 100}, "queue": None}},
    {"action": "user.create", "detail": {"role": "user", "groups": ["vision", "speech"]}},
    {"action": "user.change", "detail": {"disabled": True}},
    {"action": "job.stop", "detail": {}},
]
FRAME = {"seq": 1, "at": "2026-11-29T10:00:00Z", "actor": "root", "resource": "x", "rule": "admin", "allowed": True}


class Client:
    """The part of a client that has the audit log."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def audit(self, **_: Any) -> dict[str, Any]:
        return {"items": [{**FRAME, **line} for line in LINES], "next": None}


@pytest.mark.parametrize("options", [[], ["--details"]])
def test_details_are_shown_where_they_are_asked_for(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.cli.audit.connect", Client)
    done = CliRunner().invoke(audit_command, options, standalone_mode=False)
    assert done.exception is None, done.exception
    head, *lines = done.stdout.splitlines()
    at = head.index("DETAILS") if options else None
    assert head.endswith("DETAILS") is bool(options)
    if options:
        assert [line[at:] for line in lines] == [
            "priority: 10 to 100", "role: user, groups: vision speech", "disabled: true", ""
        ]  # fmt: skip
