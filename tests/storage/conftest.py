"""What is stored is checked by workers, as in a server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from corral.workers.pool import Workers


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    """Workers that end with the test."""
    made = Workers()
    yield made
    await made.close()
