"""A long page of metrics is written by a worker, and by a thread while the workers have too much to do."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from corral.kernel.errors import Unavailable
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.service.context import Context
from corral.service.metrics import metrics as pages
from corral.service.metrics.metrics import Metrics
from corral.service.service import Service
from tests.service.conftest import FakeControl


@pytest.fixture(autouse=True)
def calls_of_workers() -> None:
    """Processes make the calls of workers, as on a server."""


TOLD = msgspec.json.encode(Samples((Value(Metric.LEASE_EPOCH, (), 1.0),)))


class Telling(FakeControl):
    async def pull(self, path: str) -> tuple[Mapping[str, str], bytes]:
        return {}, TOLD


@pytest.fixture
def asked(service: Service, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr(service.context, "control", Telling())
    return service.context


@pytest.mark.parametrize("longest", [0, 1 << 20])
async def test_a_page_is_the_same_wherever_it_is_written(
    asked: Context, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_LONG", longest)
    text = (await Metrics(asked).page(None)).decode()
    assert f"{Metric.LEASE_EPOCH} 1.0" in text and f"{Metric.SCHEDULER_UP} 1.0" in text
    assert bool(asked.workers._free) == (longest == 0), "a worker that answered is kept"


async def test_a_page_is_written_while_the_workers_are_busy(asked: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> None:
        raise Unavailable("busy", "The workers are busy.")

    monkeypatch.setattr(pages, "_LONG", 0)
    monkeypatch.setattr(asked.workers, "check_room", busy)
    assert f"{Metric.LEASE_EPOCH} 1.0" in (await Metrics(asked).page(None)).decode()
