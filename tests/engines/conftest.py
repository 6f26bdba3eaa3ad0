"""Fixtures of the engine tests, which open and close each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engines.local_harness import Harness


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Harness]:
    """An open local engine with one node."""
    async with Harness(tmp_path) as harness:
        yield harness
