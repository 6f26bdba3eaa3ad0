"""Freed memory returns to the system: large blocks at once, the rest once a process has grown."""

from __future__ import annotations

import subprocess
import sys

import pytest

LARGE = """
from corral.kernel.garbage import _resident, map_large_blocks
map_large_blocks()
largest = bytes([1]) * 4_000_000
del largest  # from now on, glibc would take from its heap what is smaller than this
many, kept = [], []
for number in range(60):
    many.append(bytes([number]) * 900_000)
    kept.append(bytearray(2000))  # in between, so that the heap could not shrink
grown = _resident()
del many
print(grown - _resident())
"""
SMALL = """
from corral.kernel.garbage import Slack, _resident
slack = Slack()
many = [bytearray(3000) for _ in range(20_000)]
last = bytearray(3000)
grown = _resident()
del many
slack.look()
print(grown - _resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's heap")
@pytest.mark.parametrize("script", [LARGE, SMALL], ids=["large blocks", "small ones"])
def test_at_least_most_of_it_is_given_back(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 40_000_000


def test_only_a_process_that_has_grown_is_trimmed_also_once_its_load_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    from corral.kernel import garbage

    trimmed: list[int] = []
    sizes = iter([100, 103, 120, 118, 109, 102, 104])  # start; small; under load, after it; the load is over, after it
    monkeypatch.setattr(garbage, "_resident", lambda: next(sizes) << 20)
    monkeypatch.setattr(garbage, "_trim", lambda: trimmed.append(1))
    slack = garbage.Slack()
    for expected in (0, 1, 2, 2):
        slack.look()
        assert len(trimmed) == expected


def test_a_process_that_needs_all_it_has_is_trimmed_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    from corral.kernel import garbage

    trimmed: list[int] = []
    size = [100]
    monkeypatch.setattr(garbage, "_resident", lambda: size[0] << 20)
    monkeypatch.setattr(garbage, "_trim", lambda: trimmed.append(1))
    slack = garbage.Slack()
    size[0] = 200
    for _ in range(200):
        slack.look()
    assert len(trimmed) <= 16
