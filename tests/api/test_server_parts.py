"""Administrators see the server's parts with state and version; a part that does not answer is told as away."""

from __future__ import annotations

from typing import Any

import pytest

import corral
from corral.client import Client
from corral.kernel.errors import Forbidden, Unavailable
from corral.service.control_client import NoControl
from tests.api.harness import Server


class Telling(NoControl):
    """A control that knows one engine that is away."""

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        assert path == "/parts"
        engine = {"kind": "engine", "name": "far", "state": "away", "reasons": ["It does not answer."]}
        return [{"kind": "scheduler", "name": "scheduler", "state": "ok", "version": "9.9"}, engine]


def parts(client: Client) -> dict[str, dict[str, Any]]:
    """The parts by kind."""
    return {str(each["kind"]): dict(each) for each in client.server_parts()["items"]}


def test_front_and_store_are_told_beside_what_control_sees(server: Server, root: Client) -> None:
    server.service.context.control = Telling()
    found = parts(root)
    assert list(found) == ["front", "store", "scheduler", "engine"]
    assert (found["front"]["state"], found["front"]["version"]) == ("ok", corral.__version__)
    assert found["store"]["name"] in ("SQLite", "PostgreSQL") and found["store"]["version"][0].isdigit()
    assert (found["scheduler"]["version"], found["engine"]["reasons"]) == ("9.9", ["It does not answer."])


def test_a_scheduler_and_a_store_that_do_not_answer_are_away(
    server: Server, root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.service.context.control = NoControl()

    async def down() -> str:
        raise Unavailable("database-away", "The database does not answer.")

    monkeypatch.setattr(server.service.context.store, "database_version", down)
    found = parts(root)
    assert found["scheduler"]["state"] == "away" and "does not answer" in found["scheduler"]["reasons"][0]
    assert (found["store"]["state"], found["store"]["reasons"]) == ("away", ["The database does not answer."])
    assert "engine" not in found


def test_others_are_refused(alice: Client) -> None:
    with pytest.raises(Forbidden, match="administrators-only"):
        alice.server_parts()
