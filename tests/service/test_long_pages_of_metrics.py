"""A long page of metrics is written by a worker, and by a thread while the workers have too much to do."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from starlette.responses import StreamingResponse

from corral.api.application import metrics_answer
from corral.kernel.errors import Unavailable
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.service.context import Context
from corral.service.metrics import metrics as pages
from corral.service.metrics.metrics import Metrics
from corral.service.service import Service
from corral.workers import shared_file
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
    text = text_of(await Metrics(asked).page(None))
    assert f"{Metric.LEASE_EPOCH} 1.0" in text and f"{Metric.SCHEDULER_UP} 1.0" in text
    assert bool(asked.workers._free) == (longest == 0), "a worker that answered is kept"


async def test_a_page_is_written_while_the_workers_are_busy(asked: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> None:
        raise Unavailable("busy", "The workers are busy.")

    monkeypatch.setattr(pages, "_LONG", 0)
    monkeypatch.setattr(asked.workers, "check_room", busy)
    assert f"{Metric.LEASE_EPOCH} 1.0" in text_of(await Metrics(asked).page(None))


async def test_a_long_page_is_sent_in_pieces_of_a_stated_length_and_whole(
    asked: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_LONG", 0)
    monkeypatch.setattr(shared_file, "PIECE", 1000)
    page = await Metrics(asked).page(None)
    answer = metrics_answer(page)
    assert isinstance(answer, StreamingResponse)
    pieces = [piece async for piece in answer.body_iterator]
    assert len(pieces) > 1 and max(map(len, pieces)) <= 1000
    text = b"".join(pieces)
    assert answer.headers["content-length"] == str(len(text)) and text.decode() == text_of(page)


async def test_a_worker_that_cannot_open_the_answer_is_done_without(
    asked: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(shared_file.SharedFile):
        def __init__(self) -> None:
            super().__init__()
            self.path = "/nowhere/file"

    monkeypatch.setattr(pages, "_LONG", 0)
    monkeypatch.setattr(pages, "SharedFile", Closed)
    assert f"{Metric.LEASE_EPOCH} 1.0" in text_of(await Metrics(asked).page(None))


def text_of(page: pages.Page) -> str:
    return (page if isinstance(page, bytes) else page.read()).decode()
