"""A HiveD file given at every start replaces its former virtual clusters, unless jobs of one have not ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from corral.control.initial_configuration import seed
from corral.spec.configuration_file import load_whole_site
from tests.control.harness import House, PaperEngine, short
from tests.control.test_configuration import _apply
from tests.service.test_hived_replaces_virtual_clusters import HIVED, B


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await made.open()
    yield made
    await made.close()


async def _start(house: House, text: str) -> str:
    given = load_whole_site(text, filename="hived.yaml")
    replaces = given.replaces_virtual_clusters
    return await seed(house.store, given.documents, file="hived.yaml", clock=house.clock, replaces=replaces)


async def _queues(house: House) -> list[str]:
    return [queue.name for queue in await house.store.queues()]


async def test_a_virtual_cluster_that_the_file_has_no_more_goes_at_the_start(house: House) -> None:
    assert await _start(house, HIVED + B) == ""
    assert await _start(house, HIVED) == "Queue/b is not in hived.yaml any more: it is deleted."
    assert await _queues(house) == ["a", "default"]
    assert await _start(house, HIVED) == ""


async def test_one_that_has_jobs_stays_and_the_start_says_what_they_would_become(house: House) -> None:
    await _start(house, HIVED + B)
    await house.submit(short("there", queue="b"))
    said = await _start(house, HIVED)
    assert "stays while its jobs do; without it the virtual cluster b goes: 1 of its jobs waits until" in said
    assert await _queues(house) == ["a", "b", "default"]


async def test_one_that_somebody_applied_stays(house: House) -> None:
    await _start(house, HIVED)
    await _apply(house, "kind: Queue\nname: b\npinnedCells: [mine]\n")
    assert "stays: root made its revision 1" in await _start(house, HIVED)
    assert await _queues(house) == ["a", "b", "default"]
