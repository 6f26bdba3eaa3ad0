"""Clusters that others share show their queues and other applications, through control; one in trouble says why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from corral.cli.cluster_use import show_cluster_use
from corral.control.control_api import ControlApi
from corral.kernel.errors import Unavailable
from corral.model.cluster_use import ClusterUse, OtherApplication, SharedQueue
from corral.model.views import Amounts
from corral.service.context import Context
from corral.service.service import Service
from tests.control.harness import House, PaperEngine
from tests.control.test_what_control_shows import Asked
from tests.service.conftest import ANN

APP = OtherApplication("application_1", "word count", "bob", "root.default", "MAPREDUCE", "running")
USE = ClusterUse(
    "local",
    (SharedQueue("root.default", "running", 50.0, 12.5, Amounts(1000, 2**30, 2), corral=True),),
    (APP,),
    3,
    Amounts(1000, 2**30, 2),
)


class SharedPaper(PaperEngine):
    """An engine whose cluster others share."""

    trouble = ""

    async def cluster_use(self) -> ClusterUse:
        if self.trouble:
            raise Unavailable("hadoop-unreachable", self.trouble)
        return USE


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, SharedPaper())
    await made.open()
    yield made
    await made.close()


async def test_front_shows_what_the_engine_of_a_shared_cluster_says(house: House, tmp_path: Path) -> None:
    await house.begin()
    control = Asked(ControlApi(house.control, tmp_path / "unused.sock"))
    service = Service(Context(house.store, key=b"k" * 32, clock=house.clock, control=control))
    assert (await service.nodes.use(ANN)).items == [USE]
    SharedPaper.trouble = "The ResourceManager does not answer."
    try:
        assert (await service.nodes.use(ANN)).items == [ClusterUse("local", trouble=SharedPaper.trouble)]
    finally:
        SharedPaper.trouble = ""


def test_the_command_prints_queues_and_applications(capsys: pytest.CaptureFixture[str]) -> None:
    import msgspec

    show_cluster_use(msgspec.to_builtins([USE]), "")
    printed = capsys.readouterr()
    assert "local: Corral uses 0 devices, 0 processors, 0; others use 2 devices, 1 processors, 1Gi" in printed.out
    assert "root.default *" in printed.out
    assert "word count" in printed.out
    assert "3 more applications are not listed." in printed.err
