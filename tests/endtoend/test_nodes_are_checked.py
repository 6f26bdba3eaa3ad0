"""A check script fails on a real server: the node is closed, validated, and returned; administrators step in."""

from __future__ import annotations

import asyncio
import getpass
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from corral.cli.deploy_validation import Validation, require_engine
from corral.kernel.errors import Conflict
from tests.endtoend.platform import Platform, on_devices

pytestmark = pytest.mark.timeout(600)

NODE: Final = "local/node2"
_PATIENCE: Final = 300.0


class Checked(Platform):
    """A server with one check script, whose problem the test makes."""

    def __init__(self, folder: Path) -> None:
        checks = folder / "checks"
        checks.mkdir(mode=0o755)
        self.broken = folder / "broken"
        script = checks / "fan.sh"
        script.write_text(
            f'#!/bin/sh\nif [ "$CORRAL_NODE" = {NODE} ] && [ -e {self.broken} ]; then echo "fan 3 stands"; exit 1; fi\n'
        )
        script.chmod(0o755)
        env = {"HEALTH_CHECKS": str(checks), "HEALTH_CHECK_SECONDS": "1", "HEALTH_CORDON_SCORE": "4"}
        super().__init__(folder, env={f"CORRAL_{name}": value for name, value in env.items()})

    def health(self, node: str = NODE) -> dict[str, Any]:
        """What is known of a node; nothing is that it is healthy."""
        found = json.loads(self.corral("nodes", "--health", "-o", "json"))
        return next((each for each in found if each["node"] == node), {"state": "healthy", "score": 0.0})

    def moves(self, node: str = NODE) -> list[str]:
        """The states that a node moved to, oldest first."""
        entries = json.loads(self.corral("nodes", "health", node, "-o", "json"))
        return [each["after"] for each in reversed(entries) if each["what"] == "moved"]

    def until_moved(self, *states: str, node: str = NODE) -> None:
        """Wait until a node has moved through exactly these states."""
        end = time.monotonic() + _PATIENCE
        while self.moves(node) != list(states):
            assert time.monotonic() < end, self.corral("nodes", "health", node)
            self.client.node(node)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    made = Checked(tmp_path_factory.mktemp("server"))
    made.up()
    yield made
    made.down()


def test_a_failed_check_closes_the_node_and_its_validation_returns_it(server: Checked) -> None:
    server.broken.touch()
    end = time.monotonic() + _PATIENCE
    while server.health()["state"] == "healthy":
        assert time.monotonic() < end
    server.broken.unlink()
    server.until_moved("cordoned", "validating", "healthy")
    history = server.corral("nodes", "health", NODE)
    assert "check fan.sh: fan 3 stands" in history and "succeeded" in history
    (job,) = [each for each in server.client.jobs()["items"] if each["name"].startswith("validate-node2-")]
    assert job["state"] == "succeeded" and job["user"] == getpass.getuser()
    assert "CORRAL-VALIDATION" in server.corral("logs", job["id"])
    assert server.client.node(NODE)["cordon"] is None
    whole = server.submit(on_devices("whole", 4, replicas=4))
    server.until(whole, lambda found: found["state"] == "running")
    server.clear()


def test_an_administrator_repairs_and_returns_a_node(server: Checked) -> None:
    node = "local/node3"
    server.corral("nodes", "repairing", node, "--why", "new fan")
    assert server.health(node)["state"] == "repairing" and server.health(node)["why"] == "new fan"
    refused = server.refused("nodes", "repairing", node)
    assert "local/node3 is repairing; from there it can become validating or healthy." in refused
    assert "There is no node local/none" in server.refused("nodes", "healthy", "local/none", code=3)
    server.corral("nodes", "validate", node)
    server.until_moved("repairing", "validating", "healthy", node=node)
    assert "node3" in server.corral("nodes", node)
    assert json.loads(server.corral("nodes", node, "-o", "json"))["name"] == node


def test_a_node_that_was_added_is_validated_before_it_is_offered(server: Checked) -> None:
    assert asyncio.run(Validation(server.client, engine="local").of("node4")) is None
    assert server.moves("local/node4") == ["validating", "healthy"]
    with pytest.raises(Conflict, match="no engine kubernetes"):
        require_engine(server.client)
