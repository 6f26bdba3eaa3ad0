"""The server's processes are killed while jobs run on YARN; `python -m bench yarn-crash` is the same with more of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import yarn_crash
from tests.testbeds.hadoop.yarn import Yarn

pytestmark = pytest.mark.timeout(900)
JOBS, KILLS = 4, 4


def test_nothing_is_lost_and_nothing_is_doubled(yarn: Yarn, tmp_path: Path) -> None:
    tally = yarn_crash.run(tmp_path, yarn, JOBS, KILLS, seed=16)
    assert tally.kept, tally
    assert tally.kills == KILLS
    assert tally.devices_taken == tally.jobs >= JOBS
