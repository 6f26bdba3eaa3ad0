"""What was freed goes back to the system: large blocks at once, the rest when a process has grown."""

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


def test_a_process_that_has_not_grown_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from corral.kernel import garbage

    trimmed: list[int] = []
    sizes = iter([100 << 20, 110 << 20, 117 << 20, 102 << 20, 118 << 20, 119 << 20, 103 << 20])
    monkeypatch.setattr(garbage, "_resident", lambda: next(sizes))
    monkeypatch.setattr(garbage, "_trim", lambda: trimmed.append(1))
    slack = garbage.Slack()
    for expected in (0, 1, 1, 2):
        slack.look()
        assert len(trimmed) == expected
