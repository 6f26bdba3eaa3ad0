"""A node that the ResourceManager does not list for a short while is kept, not ready."""

from __future__ import annotations

from typing import Any, cast

import pytest

from corral.engines.yarn import cluster_watch
from corral.engines.yarn.cluster_watch import ClusterWatch
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slots import SlotTable


class ListedNodes:
    """A ResourceManager that lists the nodes it is told to."""

    def __init__(self) -> None:
        self.states = {"nm1": "RUNNING", "nm2": "RUNNING"}

    async def ask(self, method: str, path: str, **query: object) -> Any:
        assert (method, path) == ("GET", "/ws/v1/cluster/nodes")
        return {"nodes": {"node": [_node(name, state) for name, state in self.states.items()]}}


def _node(name: str, state: str) -> dict[str, Any]:
    return {"id": f"{name}:45454", "nodeHostName": name, "state": state}


def watching(yarn: ListedNodes) -> ClusterWatch:
    """A watch of the cluster for a server without a job."""
    settings = YarnSettings("s", ("http://rm:8088",), ("http://nn:9870",), "corral", "http://corral:8000")
    nothing = cast(Any, None)
    return ClusterWatch(
        settings, cast(Any, yarn), nothing, SlotTable(), lambda: None, lambda key: None, lambda job: None
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time; what is appended is what comes next."""
    times = [1000.0]
    monkeypatch.setattr(cluster_watch, "_now", lambda: times[-1])
    return times


async def test_a_node_that_is_not_listed_is_kept_for_two_minutes_and_ready_when_it_is_back(clock: list[float]) -> None:
    yarn = ListedNodes()
    watch = watching(yarn)

    async def seen() -> dict[str, str]:
        await watch.look()
        assert watch.inventory is not None
        return {node.name: node.ready_reason for node in watch.inventory.nodes}

    why = "YARN counts the node as absent: the ResourceManager does not list it"
    assert await seen() == {"yarn/nm1": "", "yarn/nm2": ""}
    yarn.states = {"nm2": "RUNNING"}  # another ResourceManager took over, and one node has registered with it
    clock.append(1119.0)
    assert await seen() == {"yarn/nm1": why, "yarn/nm2": ""}
    assert set(watch.nodes) == {"nm1", "nm2"}
    yarn.states = {"nm1": "RUNNING", "nm2": "RUNNING"}
    assert await seen() == {"yarn/nm1": "", "yarn/nm2": ""}
    yarn.states = {}
    clock.append(1240.0)
    assert await seen() == {}


async def test_a_node_that_has_left_is_not_kept(clock: list[float]) -> None:
    yarn = ListedNodes()
    yarn.states = {"nm1": "DECOMMISSIONED", "nm2": "RUNNING"}
    watch = watching(yarn)
    await watch.look()
    yarn.states = {"nm2": "RUNNING"}
    await watch.look()
    assert watch.inventory is not None
    assert [node.name for node in watch.inventory.nodes] == ["yarn/nm2"]
