"""The local engine does what every engine must."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from corral.model.launch import TaskLaunch
from tests.engines.conformance.suite import EngineConformance, Opened
from tests.engines.local_harness import Harness, end_everything, launch

_COUNT = itertools.count(1000)


class LocalPlace:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> AbstractAsyncContextManager[Opened]:
        """Open an engine over the folder; leaving it ends no task."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> Any:
        harness = Harness(self.folder)
        await harness.__aenter__()
        try:
            yield harness
        finally:
            await harness.abandon()

    def launch(self, *command: str, **fields: Any) -> TaskLaunch:
        """The launch of a new attempt."""
        return launch(*command, task=next(_COUNT), **fields)


class TestTheLocalEngine(EngineConformance):
    """Processes of this machine."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[LocalPlace]:
        yield LocalPlace(tmp_path)
        end_everything(tmp_path)
