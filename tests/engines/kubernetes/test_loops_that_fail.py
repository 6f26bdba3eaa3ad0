"""An engine whose watch or loop fails by a bug reports it to control, which restarts and finds everything again."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, cast

import pytest

from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.devices.claim_reconciler import Tending
from corral.engines.kubernetes.engine import KubernetesEngine
from corral.engines.kubernetes.pods.termination import Endings
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.cluster_state import ClusterView
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.kernel.errors import CorralError
from corral.model.launch import EngineEvent
from corral.storage.log_files import LogStore
from tests.engines.kubernetes.empty_cluster import EmptyCluster
from tests.engines.kubernetes.virtual_time import virtually


async def _next(engine: KubernetesEngine) -> EngineEvent:
    async for event in engine.watch():
        return event
    raise AssertionError("it ended")


def _engine(folder: Path) -> KubernetesEngine:
    settings = KubernetesSettings(server="me", namespace="x")
    return KubernetesEngine(cast(Transport, EmptyCluster()), settings, logs=LogStore(folder))


@pytest.mark.parametrize(
    ("owner", "loop"),
    [(ClusterView, "_follow_nodes"), (Reflector, "_watch"), (Tending, "run"), (Endings, "_miss")],
)
def test_a_loop_that_fails_ends_the_watch(
    owner: type, loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> None:
        await asyncio.sleep(3.0)
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(owner, loop, fail)

    async def work() -> None:
        engine = _engine(tmp_path)
        await engine.open()
        with pytest.raises(CorralError, match=r"The engine kubernetes cannot go on: .* failed with ") as caught:
            await asyncio.wait_for(_next(engine), 600)
        assert caught.value.code == "engine-failed"
        await engine.close()

    with caplog.at_level(logging.ERROR):
        virtually(work())
    assert any(record.exc_info and "ZeroDivisionError" in caplog.text for record in caplog.records)


def test_an_engine_that_is_closed_has_not_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        engine = _engine(tmp_path)
        await engine.open()
        await asyncio.sleep(100.0)
        await engine.close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_next(engine), 600)

    with caplog.at_level(logging.ERROR):
        virtually(work())
    assert not caplog.records
