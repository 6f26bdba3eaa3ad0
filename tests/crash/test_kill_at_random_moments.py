"""Whoever is killed and whenever: no job, exit code or log line is lost, and nothing runs twice at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import crash


@pytest.mark.timeout(600)
def test_fifty_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    tally = crash.run(tmp_path, kills=50, seed=1)

    assert tally.kills == 50
    assert tally.jobs >= 20
    assert tally.lost == []
    assert tally.wrong_code == []
    assert tally.wrong_log == []
    assert tally.doubled == []
