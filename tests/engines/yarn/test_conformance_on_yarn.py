"""The YARN engine does what every engine must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conformance.suite import EngineConformance
from tests.engines.yarn.harness import YarnPlace
from tests.testbeds.hadoop.yarn import Yarn


class TestTheYarnEngine(EngineConformance):
    """Containers of two NodeManagers."""

    @pytest.fixture
    def place(self, yarn: Yarn, tmp_path: Path) -> Iterator[YarnPlace]:
        made = YarnPlace(yarn, tmp_path)
        yield made
        made.clear()
