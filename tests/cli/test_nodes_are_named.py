"""A node is named with or without its engine, and what is wrong with a name is told before anything is changed."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from corral.cli.cluster import nodes_command
from corral.cli.node_names import node_named, nodes_named
from corral.cli.suspend_and_drain import cordon_command, drain_command, uncordon_command
from corral.kernel.errors import InvalidInput, NotFound

NODES = ("local/node1", "local/node2", "yarn/node2")


class Server:
    """The part of a client that these commands use; it remembers what it was told."""

    told: list[tuple[str, ...]]

    def __init__(self) -> None:
        Server.told = []

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def nodes(self, **_: Any) -> Any:
        return {"items": [{"name": name} for name in NODES], "next": None}

    def cordon(self, node: str, **_: Any) -> None:
        self.told.append(("cordon", node))

    def uncordon(self, node: str) -> None:
        self.told.append(("uncordon", node))

    def drain(self, node: str, **_: Any) -> None:
        self.told.append(("drain", node))

    def change_health(self, node: str, act: str, **_: Any) -> None:
        self.told.append((act, node))

    def node_history(self, node: str, **_: Any) -> Any:
        self.told.append(("health", node))
        return {"items": [], "next": None}


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("suspend_and_drain", "cluster", "node_health"):
        monkeypatch.setattr(f"corral.cli.{module}.connect", Server)


@pytest.mark.parametrize(
    ("word", "named"), [("node1", "local/node1"), ("yarn/node2", "yarn/node2"), ("local/node9", "local/node9")]
)
def test_a_name_without_its_engine_is_that_of_the_only_node(word: str, named: str) -> None:
    assert node_named(Server(), word) == named  # type: ignore[arg-type]


@pytest.mark.parametrize(("words", "lists"), [(("node1", "node1", "yarn/node2"), 1), (("yarn/node2", "local/x"), 0)])
def test_the_nodes_are_listed_once_for_all_names(
    words: tuple[str, ...], lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, asked = Server(), list[int]()
    listed = server.nodes
    monkeypatch.setattr(server, "nodes", lambda **page: asked.append(1) or listed(**page))
    assert len(nodes_named(server, words)) == len(words)  # type: ignore[arg-type]
    assert len(asked) == lists


@pytest.mark.parametrize(
    ("word", "error", "said"),
    [
        ("node3", NotFound, "There is no node node3; did you mean local/node1 or local/node2 or yarn/node2?"),
        ("nosuch", NotFound, "There is no node nosuch; `corral nodes` lists them."),
        ("node2", InvalidInput, "Several engines have a node node2; name one of them: local/node2, yarn/node2."),
    ],
)
def test_a_name_that_means_no_single_node_is_refused_with_what_there_is(word: str, error: Any, said: str) -> None:
    with pytest.raises(error) as refused:
        node_named(Server(), word)  # type: ignore[arg-type]
    assert refused.value.message.startswith(said)


@pytest.mark.parametrize("command", [cordon_command, uncordon_command, drain_command])
def test_commands_that_close_nodes_take_a_bare_name(command: click.Command) -> None:
    done = CliRunner().invoke(command, ["node1"], standalone_mode=False)
    assert done.exception is None and Server.told == [(command.name, "local/node1")]
    refused = CliRunner().invoke(command, ["node1", "node3"], standalone_mode=False)
    assert isinstance(refused.exception, NotFound) and not Server.told


@pytest.mark.parametrize("act", ["repairing", "validate", "healthy", "health"])
def test_commands_about_health_take_a_bare_name(act: str) -> None:
    done = CliRunner().invoke(nodes_command, [act, "node1"], standalone_mode=False)
    assert done.exception is None and Server.told == [(act, "local/node1")] and "local/node1" in done.stderr
