"""Control has the inputs of new jobs located beside its loop, places jobs on them, and waits for nobody for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from corral.control.input_locations import InputLocations, locate_inputs, on_nodes
from corral.control.loop import Control
from corral.kernel.errors import CorralError, Forbidden, Unavailable
from corral.kernel.ids import JobId
from corral.model.inventory import HOST_LABEL, Node
from tests.control.harness import House, PaperEngine, short

URI = "hdfs://nn:8020/data"


class Held(NamedTuple):
    """Bytes by sets of hosts."""

    total: int
    by_hosts: Mapping[frozenset[str], int]


class PaperPlaces:
    """Knows one URI, and says of it what the test says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.held = Held(10, {frozenset(("NODE1.example.org",)): 10})
        self.error: CorralError | None = None
        self.open = asyncio.Event()
        self.open.set()

    def knows(self, uri: str) -> bool:
        return uri.startswith(URI)

    async def where(self, uri: str, account: str) -> Held:
        self.asked.append((uri, account))
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return self.held

    async def close(self) -> None:
        pass


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=2))
    await made.open()
    yield made
    await made.close()


async def begun(house: House, places: PaperPlaces, seconds: float = 60.0) -> InputLocations:
    """Start a control that has inputs located."""
    made: list[InputLocations] = []

    def attach(control: Control) -> None:
        def nodes() -> list[Node]:
            return list(control.machines.nodes.values())

        made.append(InputLocations(places, seconds, control.clock, nodes, control.inputs_located))
        control.seek_inputs = made[0].seek

    await house.begin(attach)
    return made[0]


async def submitted(house: House, name: str, *uris: str) -> JobId:
    """A job with inputs."""
    inputs = [{"uri": uri, "path": f"given-{at}"} for at, uri in enumerate(uris)]
    return await house.submit(short(name, devices=1, inputs=inputs))


async def node_of(house: House, job: JobId) -> str:
    """The node on which a job starts."""
    record = await house.when(job, lambda record: bool(record.run.targets))
    return next(iter(record.run.targets))


async def test_a_job_starts_on_the_node_that_holds_its_inputs_and_says_so(house: House) -> None:
    places = PaperPlaces()
    await begun(house, places)
    near = await submitted(house, "near", URI, URI, "s3://x/y")
    assert await node_of(house, near) == "local/node1"
    assert places.asked == [(URI, "ada")]
    record = await house.store.find_job(near)
    assert record is not None and record.run.notes == ("10 of 10 bytes of its inputs are on its nodes",)


async def test_jobs_with_the_same_inputs_ask_once(house: House) -> None:
    places = PaperPlaces()
    jobs = [await submitted(house, f"of-an-array-{at}", URI) for at in range(3)]
    await begun(house, places)
    assert [await node_of(house, job) for job in jobs] == ["local/node1"] * 3
    assert places.asked == [(URI, "ada")]


async def test_a_job_waits_for_a_slow_answer_only_for_so_long(house: House) -> None:
    places = PaperPlaces()
    places.open.clear()
    locations = await begun(house, places, seconds=0.2)
    slow = await submitted(house, "slow", URI)
    assert await node_of(house, slow) == "local/node0"
    await locations.close()


async def test_after_a_failure_no_job_waits_but_a_refusal_is_the_jobs_own(house: House) -> None:
    places = PaperPlaces()
    await begun(house, places)
    places.error = Forbidden("hdfs-locations-refused", "Permission denied.")
    assert await node_of(house, await submitted(house, "refused", URI)) == "local/node0"
    places.error = Unavailable("hdfs-unreachable", "No NameNode answers.")
    assert await node_of(house, await submitted(house, "silent", URI)) == "local/node0"
    places.error = None
    assert await node_of(house, await submitted(house, "next", URI)) == "local/node0"
    assert len(places.asked) == 2, "nobody is asked for a while"


async def test_a_job_whose_uris_nobody_knows_does_not_wait(house: House) -> None:
    places = PaperPlaces()
    places.open.clear()
    await begun(house, places)
    job = await submitted(house, "elsewhere", "hdfs://other:8020/data", "webhdfs://other/data")
    assert await node_of(house, job) == "local/node0" and not places.asked


async def test_nothing_is_asked_where_no_name_node_is_set_or_it_is_switched_off(house: House) -> None:
    control = await house.begin()
    assert locate_inputs(control, [], "", 1.0) is None
    assert locate_inputs(control, [], "http://nn:9870", 0.0) is None
    made = locate_inputs(control, [], "http://nn:9870", 1.0)
    assert made is not None
    await made.close()


def test_hosts_become_the_nodes_that_are_on_them() -> None:
    nodes = [
        Node("yarn/nm1", labels={HOST_LABEL: "10.0.0.1"}),
        Node("yarn/nm2", labels={HOST_LABEL: "10.0.0.1"}),
        Node("kubernetes/a.example.org", labels={"kubernetes.io/hostname": "a"}),
        Node("local/b"),
        Node("other/b.example.net"),
    ]
    by_hosts = {
        frozenset(("10.0.0.1",)): 1,
        frozenset(("A.EXAMPLE.ORG.", "10.9.9.9")): 2,
        frozenset(("b.example.org", "b.example.net")): 4,
        frozenset(("unknown",)): 8,
        frozenset(("10.0.0.10",)): 16,
    }
    found = on_nodes([Held(40, by_hosts), Held(2, {frozenset(("10.0.0.1",)): 1})], nodes)
    assert (found.total, found.overlapping) == (42, False)
    assert dict(found.held) == {
        ("yarn/nm1", "yarn/nm2"): 2, ("kubernetes/a.example.org",): 2, ("local/b", "other/b.example.net"): 4,
    }  # fmt: skip
