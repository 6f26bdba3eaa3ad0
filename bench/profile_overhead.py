"""Processor time of a PyTorch training step while traces are offered but not asked for, beside a job without them.

With the traces come the flight recorders, and the module by which PyTorch starts their server.

Ten alternated pairs of short trainings; the figure is the median of their differences. The Python with PyTorch is named by
$CORRAL_BENCH_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
import sys

from bench.stats import median
from corral.runtime.torch_daemon import armed

_PAIRS = 10
_TRAINING = """\
import os, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))
rule = torch.optim.SGD(model.parameters(), 0.001)
batch = torch.randn(64, 256)
def steps(number):
    for _ in range(number):
        rule.zero_grad(); model(batch).square().mean().backward(); rule.step()
steps(100)
begun = os.times()
steps(2500)
ended = os.times()
print((ended.user + ended.system - begun.user - begun.system) / 2500)
"""


def measure() -> dict[str, float]:
    """Return the overhead in percent, and a step's processor time without it in milliseconds."""
    plain, differences = [], []
    for number in range(_PAIRS):
        first = _seconds(offered=bool(number % 2))
        second = _seconds(offered=not number % 2)
        without, with_it = (second, first) if number % 2 else (first, second)
        plain.append(without)
        differences.append(100 * (with_it - without) / without)
    return {"overhead": median(differences), "step": 1000 * median(plain)}


def _seconds(*, offered: bool) -> float:
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if not offered:
        return _trained(plain)
    with armed(plain) as env:
        return _trained(env)


def _trained(env: dict[str, str]) -> float:
    python = os.environ.get("CORRAL_BENCH_PYTHON", sys.executable)
    words = [python, "-c", _TRAINING]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout.split()[-1])
