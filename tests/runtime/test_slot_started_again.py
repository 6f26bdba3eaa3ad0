"""An agent that is started again in its container reports what the earlier one began as lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from corral.runtime.attempt_processes import MARKER
from corral.runtime.slot import Slot

BEGUN = "1m8dmrjgw9g0r.0.main.0.0"


class Server:
    """Answers calls with orders, in their order, and keeps the states that came."""

    def __init__(self, *orders: dict[str, Any]) -> None:
        self._orders = list(orders)
        self.states: list[Any] = []

    def sync(self, state: Any, wait: float) -> Any:
        self.states.append(state)
        return self._orders.pop(0)


def test_a_slot_needs_no_ctypes_which_some_pythons_lack() -> None:
    code = "import sys; sys.modules['_ctypes'] = None; import corral.runtime.slot; print('there', end='')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert found.stdout == "there", found.stderr


def test_an_attempt_of_an_earlier_agent_is_killed_and_reported_as_lost_and_never_begins_again(tmp_path: Path) -> None:
    (tmp_path / BEGUN / "work").mkdir(parents=True)
    left = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARKER: BEGUN})
    try:
        again = {"attempt": BEGUN, "command": ["true"], "env": {}}
        server = Server({"start": [again]}, {"forget": [BEGUN]}, {"release": True})
        Slot(server, str(tmp_path), [], []).follow()  # type: ignore[arg-type]
        assert left.wait(120) == -9
    finally:
        left.kill()
        left.wait()
    assert server.states == [{BEGUN: {"state": "lost"}}] * 2 + [{}]
    assert list(tmp_path.iterdir()) == []
