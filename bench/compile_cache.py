"""The first step of a job whose code was compiled by a job before it, beside the first step of that job.

PyTorch's `torch.compile` and JAX on the processor, three servers with an empty cache each. The Pythons that have them are
named by $CORRAL_BENCH_PYTHON and $CORRAL_BENCH_JAX_PYTHON.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

from bench.harness import Server, running_server
from bench.stats import median

_ROUNDS: Final = 3
_TORCH: Final = """\
import time, torch
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
model = torch.compile(torch.nn.TransformerEncoder(layer, 4))
begun = time.perf_counter()
model(torch.ones(2, 16, 64)).sum().backward()
print("first step", time.perf_counter() - begun)
"""
_JAX: Final = """\
import time, jax, jax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
@jax.jit
def step(weights, values):
    def loss(weights):
        here = values
        for weight in weights:
            here = jnp.tanh(here @ weight) + jnp.sort(here, axis=-1)
        return (here ** 2).mean()
    return jax.grad(loss)(weights)
weights = [jnp.ones((64, 64)) * (0.01 + number / 1000) for number in range(24)]
begun = time.perf_counter()
jax.block_until_ready(step(weights, jnp.ones((8, 64))))
print("first step", time.perf_counter() - begun)
"""
_TOLD: Final = re.compile(r"first step ([\d.]+)")


def measure() -> dict[str, float]:
    """Return, for each framework, the seconds of both first steps and the second's part of the first in percent."""
    torch, jax = os.environ.get("CORRAL_BENCH_PYTHON"), os.environ.get("CORRAL_BENCH_JAX_PYTHON")
    if not torch or not jax:
        raise RuntimeError("name the Pythons with PyTorch and JAX: CORRAL_BENCH_PYTHON, CORRAL_BENCH_JAX_PYTHON")
    figures: dict[str, float] = {}
    for name, python, program in (("torch", torch, _TORCH), ("jax", jax, _JAX)):
        rounds = [_round(name, python, program) for _ in range(_ROUNDS)]
        cold, warm = (median([each[at] for each in rounds]) for at in (0, 1))
        parts = median([100 * second / first for first, second in rounds])
        figures |= {f"{name} cold": cold, f"{name} warm": warm, f"{name} part": parts}
    return figures


def _round(name: str, python: str, program: str) -> tuple[float, float]:
    with running_server() as server:
        return first_step(server, f"{name}-cold", python, program), first_step(server, f"{name}-warm", python, program)


def first_step(server: Server, name: str, python: str, program: str, *, devices: int = 0) -> float:
    """Run the program as a job; the seconds that it printed. Raises RuntimeError when it fails."""
    role = {
        "command": [python, "-c", program],
        "resources": {"devices": devices},
        "env": {"PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"},
    }
    file = server.data.parent / f"{name}.json"
    file.write_text(json.dumps({"name": name, "compileCache": "user", "roles": {"worker": role}}))
    done = server.corral("submit", "-f", str(file))
    told = _TOLD.search(done.stdout)
    if done.returncode or told is None:
        raise RuntimeError(f"the job {name} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return float(told[1])
