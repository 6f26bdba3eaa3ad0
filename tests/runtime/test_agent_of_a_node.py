"""A container of YARN's runs the agent of its node with that node's token, and tells how it ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from corral.runtime import node_agent
from corral.runtime.slot_calls import SlotCalls


class Calls(SlotCalls):
    """Keeps what the server is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def agent_told(self, report: dict[str, Any]) -> None:
        self.told.append(report)


def test_an_agent_has_the_token_and_the_name_of_its_own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    calls = Calls()
    given = {
        "command": ["sh", "-c", 'echo "$(cat "$4") of $6 at $2" >&2; exit 7', "agent"],
        "port": 9102,
        "nodes": {"agent-n0": "nm1", "agent-n1": "nm2"},
        "tokens": {"agent-n0": "first", "agent-n1": "second"},
    }
    assert node_agent.run(calls, given, "agent-n1-0", "host2") == 7
    ended = {"state": "ended", "code": 7, "said": "second of nm2 at host2:9102"}
    assert calls.told == [{"state": "begun"}, ended]
    assert (tmp_path / node_agent.TOKEN).stat().st_mode & 0o777 == 0o600
