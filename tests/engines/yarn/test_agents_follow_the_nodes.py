"""Which services of agents YARN is asked for as nodes come and go, services end, and settings change; without a cluster."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from corral.engines.yarn import node_agents
from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.node_agents import NodeAgents
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slot_messages import AgentReport
from corral.engines.yarn.slot_tokens import SlotTokens
from corral.engines.yarn.slots import Service
from corral.kernel.errors import NotFound, Unavailable

SETTINGS = YarnSettings(
    "s1", ("http://rm:8088",), ("http://nn:9870",), "corral", "", agent_command=("/opt/corral/bin/corral", "node-agent")
)


class Yarn:
    """What YARN was asked for, by service; it is away while `away`."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.given: dict[str, Any] = {}
        self.prolonged: list[str] = []
        self.files: set[str] = set()
        """The services that have files in HDFS."""
        self.away = False
        self.refuses = False
        """Whether a new service is refused, as where the queue is stopped."""
        self.silent: set[str] = set()
        """The services whose masters do not answer."""

    async def of_agents(self) -> dict[str, Service | None]:
        self._check()
        return {name: None if name in self.silent else as_told(each) for name, each in self.services.items()}

    async def make(self, service: Service, *, agent: Any) -> None:
        self._check()
        self.files.add(service.name)
        if self.refuses:
            raise Unavailable("hadoop-refused", "The queue is stopped.")
        self.services[service.name] = as_told(service)
        self.given[service.name] = agent

    async def set_count(self, service: Service, component: str, count: int) -> None:
        self._check(service.name)
        self.services[service.name].wanted[component] = service.wanted[component] = count

    async def prolong(self, service: Service) -> None:
        self._check(service.name)
        self.prolonged.append(service.name)

    async def delete(self, service: Service) -> None:
        self._check(service.name)
        self.services.pop(service.name, None)
        self.files.discard(service.name)

    def programs(self) -> dict[str, str]:
        return {"runtime.pyz": "/apps/corral/s1/abc-runtime.pyz"}

    def agents(self) -> dict[str, list[str]]:
        """By service, the nodes that have an agent by it."""
        return {
            name: [shape.node for component, shape in each.components.items() if each.wanted[component]]
            for name, each in self.services.items()
        }

    def _check(self, name: str = "") -> None:
        if name in self.silent:
            raise Unavailable("hadoop-unreachable", f"The master of {name} does not answer.")
        if self.away:
            raise Unavailable("hadoop-unreachable", "The ResourceManager does not answer.")


def as_told(service: Service) -> Service:
    """A service as YARN tells it: of a job that it does not know more of."""
    return Service(
        service.name, service.job, service.user, service.queue, dict(service.components), dict(service.wanted)
    )


class Site:
    """Nodes, and the agents of one server after another."""

    def __init__(self, *names: str) -> None:
        self.yarn = Yarn()
        self.nodes = {name: NodeFacts(name, True, "", 0) for name in names}
        self.now = 1000.0

    def server(self, settings: Any = SETTINGS) -> NodeAgents:
        def hosts() -> dict[str, NodeFacts]:
            return {f"{name}.example": facts for name, facts in self.nodes.items()}

        self.now += 1
        services: Any = self.yarn
        return NodeAgents(settings, services, SlotTokens(b"k" * 32), lambda: self.nodes, hosts, lambda: self.now)


async def look(agents: NodeAgents, times: int = 2) -> None:
    """Nodes that are seen twice get an agent."""
    for _ in range(times):
        await agents._look()


async def test_nodes_that_come_together_have_one_service_and_later_ones_another() -> None:
    site = Site("nm1", "nm2")
    agents = site.server()
    await agents.open()
    await look(agents, 1)
    assert site.yarn.services == {}, "others may come with them"
    await look(agents, 1)
    ((first, nodes),) = site.yarn.agents().items()
    assert nodes == ["nm1", "nm2"] and first.startswith("corral-s1-agents-")
    given = site.yarn.given[first]
    assert list(given["nodes"].values()) == ["nm1", "nm2"] and len(set(given["tokens"].values())) == 2
    assert [given["tokens"][component] for component in given["nodes"]] == [
        agents.token_of("nm1"),
        agents.token_of("nm2"),
    ]
    site.nodes["nm3"] = NodeFacts("nm3", True, "gold", 8)
    site.nodes["host4"] = NodeFacts("host4", False, "", 0)  # without the attribute nothing can be pinned to it
    site.now += 1
    await look(agents, 3)
    assert sorted(site.yarn.agents().values()) == [["nm1", "nm2"], ["nm3"]]
    found = {(each.node, each.host, each.port) for each in agents.addresses()}
    assert found == {(name, f"{name}.example", 9102) for name in ("nm1", "nm2", "nm3")}


async def test_a_node_that_is_gone_has_none_until_it_is_back_and_an_empty_service_ends() -> None:
    site = Site("nm1", "nm2")
    agents = site.server()
    await look(agents)
    gone = site.nodes.pop("nm2")
    await look(agents)
    assert list(site.yarn.agents().values()) == [["nm1"]]
    site.nodes["nm2"] = gone
    await look(agents)
    assert list(site.yarn.agents().values()) == [["nm1", "nm2"]], "its component is asked for again"
    site.nodes.clear()
    await look(agents)
    assert site.yarn.services == {} and agents.addresses() == ()


async def test_a_node_with_another_label_gets_its_agent_by_that_label() -> None:
    site = Site("nm1")
    agents = site.server()
    await look(agents)
    site.nodes["nm1"] = NodeFacts("nm1", True, "gold", 0)
    site.now += 1
    await look(agents, 3)
    ((_, service),) = site.yarn.services.items()
    assert [shape.partition for shape in service.components.values()] == ["gold"]


async def test_the_next_server_takes_them_over_and_other_settings_replace_or_end_them() -> None:
    site = Site("nm1")
    await look(site.server())
    (name,) = site.yarn.services
    again = site.server()
    await again.open()
    await look(again)
    assert list(site.yarn.services) == [name] and site.yarn.prolonged == [name]
    assert [each.node for each in again.addresses()] == ["nm1"]
    other = site.server(msgspec.structs.replace(SETTINGS, agent_port=9200))
    await other.open()
    assert site.yarn.services == {}
    await look(other)
    ((renamed, nodes),) = site.yarn.agents().items()
    assert nodes == ["nm1"] and renamed != name and other.addresses()[0].port == 9200
    none = site.server(msgspec.structs.replace(SETTINGS, agent_command=()))
    await none.open()
    await none.run()
    assert site.yarn.services == {} and not none.wanted
    in_other = site.server(msgspec.structs.replace(SETTINGS, queue="monitors"))
    await look(site.server())
    await in_other.open()
    assert site.yarn.services == {}, "an agent in another queue is another one"


async def test_a_yarn_that_is_away_keeps_no_server_from_opening_and_is_asked_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_agents, "_LOOK_SECONDS", 0.0)
    site = Site("nm1")
    await look(site.server())
    site.yarn.away = True
    none = site.server(msgspec.structs.replace(SETTINGS, agent_command=()))
    await none.open()
    running = asyncio.create_task(none.run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert site.yarn.services and not running.done()
    site.yarn.away = False
    async with asyncio.timeout(60):
        await running
    assert site.yarn.services == {} and caplog.text.count("The ResourceManager does not answer.") == 1


async def test_a_service_whose_master_is_silent_keeps_no_other_from_being_tended() -> None:
    site = Site("nm1")
    first = site.server()
    await look(first)
    (one,) = site.yarn.services
    site.nodes["nm2"] = NodeFacts("nm2", True, "", 0)
    site.now += 1
    await look(first)
    assert len(site.yarn.services) == 2
    site.yarn.silent.add(one)
    del site.nodes["nm1"], site.nodes["nm2"]
    await first._look()
    assert list(site.yarn.services) == [one], "the other one has ended, as its node is gone"
    site.nodes["nm1"] = NodeFacts("nm1", True, "", 0)
    second = site.server()
    await second.open()
    await look(second, 3)
    assert list(site.yarn.services) == [one] and second.addresses() == (), "its node may have an agent"
    site.yarn.silent.clear()
    await look(second)
    assert list(site.yarn.services) == [one] and [each.node for each in second.addresses()] == ["nm1"]


async def test_a_service_that_yarn_refuses_leaves_no_files_and_is_asked_for_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site("nm1")
    site.yarn.refuses = True
    agents, tries = site.server(), list[int]()
    for _ in range(4):
        site.now += 2
        await agents._try(agents._look)
        tries.append(len(site.yarn.files))
    assert tries == [0, 0, 0, 0] and agents._told == "", "it waits"
    monkeypatch.setattr(node_agents, "_REFUSED_SECONDS", 0.0)
    agents._make_at = 0.0
    site.yarn.refuses = False
    await look(agents)
    assert list(site.yarn.agents().values()) == [["nm1"]] and site.yarn.files == set(site.yarn.services)


async def test_a_service_that_has_ended_is_made_again_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_agents, "_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(node_agents, "_MAKING_SECONDS", -1.0)
    site = Site("nm1")
    agents = site.server()
    await look(agents)
    (first,) = site.yarn.services
    site.yarn.services.clear()
    site.now += 1
    await look(agents, 3)
    assert list(site.yarn.agents().values()) == [["nm1"]] and first not in site.yarn.services
    assert f"the service {first} of agents has ended in YARN; another one is made" in caplog.text


async def test_while_yarn_is_away_that_is_said_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_agents, "_LOOK_SECONDS", 0.0)
    site = Site("nm1")
    site.yarn.away = True
    agents = site.server()
    running = asyncio.create_task(agents.run())
    async with asyncio.timeout(60):
        while "agents cannot be run on nodes: The ResourceManager does not answer." not in caplog.text:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        site.yarn.away = False
        while not site.yarn.services:
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert caplog.text.count("agents cannot be run on nodes") == 1


async def test_what_an_agent_tells_is_said_of_its_node_and_a_stranger_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    site = Site("nm1")
    agents = site.server()
    await look(agents)
    (name,) = site.yarn.services
    agents.take(name, "agent-n0-0", AgentReport("begun"))
    agents.take(name, "agent-n0-1", AgentReport("ended", 2, "no\x1b[31m GPU"))
    assert "the agent of nm1 runs" in caplog.text and "the agent of nm1 has ended with 2: no[31m GPU" in caplog.text
    for _ in range(3):  # YARN starts it again and again
        agents.take(name, "agent-n0-0", AgentReport("begun"))
        agents.take(name, "agent-n0-0", AgentReport("ended", 2, "no\x1b[31m GPU"))
    assert (caplog.text.count("has ended with 2"), caplog.text.count("runs")) == (1, 2)
    agents.take(name, "agent-n0-0", AgentReport("ended", 3, "no\x1b[31m GPU"))
    assert "the agent of nm1 has ended with 3" in caplog.text
    for service, instance in ((name, "agent-n7-0"), ("corral-s1-agents-other", "agent-n0-0")):
        with pytest.raises(NotFound):
            agents.take(service, instance, AgentReport("begun"))
