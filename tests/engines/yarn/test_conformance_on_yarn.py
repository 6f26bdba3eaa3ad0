"""The YARN engine does what every engine must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.conformance.suite import EngineConformance
from tests.engines.yarn.harness import YarnPlace
from tests.testbeds.hadoop.yarn import Yarn


@pytest.fixture(scope="module")
def shared(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnPlace]:
    """A place whose job lives through all cases: YARN takes ten seconds to start a job's service."""
    made = YarnPlace(yarn, tmp_path_factory.mktemp("place"))
    yield made
    made.clear()


class TestTheYarnEngine(EngineConformance):
    """Containers of two NodeManagers."""

    @pytest.fixture
    def place(
        self, request: pytest.FixtureRequest, shared: YarnPlace, yarn: Yarn, tmp_path: Path
    ) -> Iterator[YarnPlace]:
        if "hints_about_jobs" not in request.node.name:
            yield shared
            return
        made = YarnPlace(yarn, tmp_path)  # the case ends its job
        yield made
        made.clear()
