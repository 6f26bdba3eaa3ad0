"""Front asks control which ports of tasks are on this machine's loopback; only ports that running tasks were given are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from corral.control.control_api import ControlApi
from corral.kernel.errors import CorralError, NotFound
from corral.kernel.ids import AttemptId
from tests.control.asked import Asked
from tests.control.harness import House, PaperEngine, short


class LoopbackEngine(PaperEngine):
    """An engine on this machine whose tasks were all given port 8080."""

    def check_port(self, attempt: AttemptId, port: int) -> None:
        """Refuse other ports, and attempts that do not run."""
        if attempt not in self.running or port != 8080:
            raise NotFound("no-such-port", f"{attempt} was not given port {port}.")


@pytest_asyncio.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    made = House(tmp_path, request.param())
    await made.open()
    await made.begin()
    yield made
    await made.close()


async def asked(house: House, folder: Path, attempt: str, port: int) -> Any:
    """Control's answer."""
    control = Asked(ControlApi(house.control, folder / "unused.sock"))
    return await control.request(f"/here/{quote(attempt, safe='.')}?port={port}")


@pytest.mark.parametrize(("house", "here"), [(LoopbackEngine, True), (PaperEngine, False)], indirect=["house"])
async def test_the_engine_says_whether_its_tasks_listen_here(house: House, tmp_path: Path, here: bool) -> None:
    job = await house.submit(short("serves"))
    await house.until(job, "running")
    (attempt,) = house.engine.running
    assert await asked(house, tmp_path, attempt, 8080) is here


@pytest.mark.parametrize("house", [LoopbackEngine], indirect=True)
async def test_other_ports_and_attempts_that_do_not_run_are_refused(house: House, tmp_path: Path) -> None:
    job = await house.submit(short("serves"))
    await house.until(job, "running")
    (attempt,) = house.engine.running
    for name, port in ((attempt, 22), (f"{job}.0.worker.7.0", 8080), ("nonsense", 8080)):
        with pytest.raises(CorralError):
            await asked(house, tmp_path, name, port)
