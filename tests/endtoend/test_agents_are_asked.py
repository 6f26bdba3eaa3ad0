"""A real server asks the agents of its settings, and says in one line what is wrong with one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.endtoend.platform import Platform
from tests.monitor.agent.test_the_agent_is_scraped import TOKEN, Agent
from tests.waiting import pause

SECONDS: Final = 120.0
"""Seconds after which a wait has failed."""
SILENT: Final = 'corral_agents{state="silent"} 1.0'


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, "--node", "elsewhere")
    yield made
    made.end()


@pytest.fixture
def server(tmp_path: Path, agent: Agent) -> Iterator[Platform]:
    env = {"CORRAL_AGENTS": agent.url, "CORRAL_AGENTS_TOKEN_FILE": str(tmp_path / "token")}
    (tmp_path / "site").mkdir()
    made = Platform(tmp_path / "site", env=env)
    made.up()
    yield made
    made.down()


def test_a_server_asks_its_agents_and_tells_which_ones_it_cannot_read(server: Platform) -> None:
    begun = time.monotonic()
    while SILENT not in httpx2.get(f"{server.url}/metrics").text and time.monotonic() < begun + SECONDS:
        time.sleep(pause(begun))
    assert SILENT in httpx2.get(f"{server.url}/metrics").text
    # It has answered to its token, and is refused only because it names a node that no engine has.
    log, reason = server.data / "logs/control.log", "It calls itself 'elsewhere'; no engine has a node of that name."
    while reason not in log.read_text() and time.monotonic() < begun + 2 * SECONDS:
        time.sleep(pause(begun))
    said = log.read_text()
    assert reason in said and TOKEN not in said
