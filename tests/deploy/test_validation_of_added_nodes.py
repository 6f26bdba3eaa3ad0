"""`corral deploy add-node --validate`: what a server's answers mean for a node that has joined."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from corral.cli.deploy_validation import Validation, require_engine
from corral.deploy.checks.connection import Refusal
from corral.kernel.errors import Conflict, NotFound, Unavailable

NODE = "kubernetes/gpu3"


class Server:
    """Answers as a server does whose ledger has these states of the node one after the other, None being no entry."""

    def __init__(
        self, *states: tuple[str, str] | None, unknown_for: int = 0, refuses: str = "", silent_for: float = 0.0
    ) -> None:
        self._silent_for = silent_for
        self._states, self._unknown_for, self._refuses = list(states), unknown_for, refuses
        self.acts: list[tuple[str, str]] = []
        self.time = 0.0

    def server_parts(self) -> dict[str, Any]:
        return {"items": [{"kind": "engine", "name": "local"}, {"kind": "store", "name": "kubernetes"}]}

    def node(self, name: str) -> dict[str, Any]:
        if name == NODE:
            return {"name": NODE}
        raise NotFound("node-not-found", "There is no node.")

    def node_health(self) -> dict[str, Any]:
        if self.acts and self.time < self._silent_for:
            raise Unavailable("unreachable", "Nothing listens there.")
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        other = {"node": "kubernetes/gpu1", "state": "cordoned", "why": "its fans"}
        return {"items": [other, *([{"node": NODE, "state": state[0], "why": state[1]}] if state else [])]}

    def change_health(self, node: str, act: str, *, why: str = "") -> dict[str, Any]:
        self.acts.append((node, act))
        if len(self.acts) <= self._unknown_for:
            raise NotFound("node-not-found", "There is no node.")
        if self._refuses:
            raise Conflict("health-off", self._refuses)
        return {}

    async def pause(self, seconds: float) -> None:
        self.time += seconds

    def validated(self) -> Refusal | None:
        return asyncio.run(Validation(self, pause=self.pause, now=lambda: self.time).of("gpu3"))


RUNS = ("validating", "administrator")


def test_a_node_is_good_once_its_validation_has_succeeded() -> None:
    server = Server(None, RUNS, RUNS, ("healthy", "the job succeeded"))
    assert server.validated() is None
    assert server.acts == [(NODE, "validate")]
    assert Server(None, RUNS, None).validated() is None, "the ledger forgets healthy nodes"


def test_a_node_whose_validation_failed_is_not_offered_and_the_reason_is_told() -> None:
    refusal = Server(None, RUNS, ("cordoned", "a matrix was wrong")).validated()
    assert refusal is not None
    assert refusal.message == "it has joined and is not offered: it is cordoned: a matrix was wrong"
    assert f"corral nodes health {NODE}" in refusal.remedy


def test_a_validation_that_runs_already_is_waited_for() -> None:
    server = Server(RUNS, RUNS, ("healthy", ""))
    assert server.validated() is None and server.acts == []


def test_the_server_needs_a_moment_to_see_a_node_that_has_joined() -> None:
    server = Server(None, None, None, None, RUNS, None, unknown_for=3)
    assert server.validated() is None and len(server.acts) == 4
    refusal = Server(None, unknown_for=10_000).validated()
    assert refusal is not None and refusal.message.endswith("There is no node.")


def test_a_server_that_refuses_or_never_ends_keeps_the_node_closed() -> None:
    refusal = Server(None, refuses="No validation is set up.").validated()
    assert refusal is not None and refusal.message.endswith("is not offered: No validation is set up.")
    refusal = Server(None, RUNS).validated()
    assert refusal is not None and refusal.message.endswith("its validation does not end")


def test_a_server_that_starts_again_meanwhile_is_waited_for() -> None:
    server = Server(None, RUNS, ("healthy", ""), silent_for=800.0)
    assert server.validated() is None and server.time >= 800.0
    refusal = Server(None, RUNS, silent_for=5000.0).validated()
    assert refusal is not None and refusal.message.endswith("is not offered: Nothing listens there.")


def test_a_server_of_another_cluster_is_refused_before_anything_is_done() -> None:
    with pytest.raises(Conflict, match="no engine kubernetes"):
        require_engine(Server(None))
    validation = Validation(Server(None))
    with pytest.raises(Conflict, match="knows a node gpu3, and this cluster has none"):
        validation.require_new(["gpu2", "gpu3"])
    validation.require_new(["gpu2"])
