"""Measure training steps, and tell their figures."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence

from corral.benchmarks.programs.given import Given


def measured_steps(name: str, given: Given, step: Callable[[], float]) -> list[float]:
    """Return the seconds of each step after the warm-up; `step` returns the loss once the device is done.

    Raises ArithmeticError when the loss is no number, or does not fall.
    """
    seconds, losses = [], []
    for at in range(given.parameters["warmup"] + given.parameters["steps"]):
        begun = time.perf_counter()
        losses.append(step())
        if at >= given.parameters["warmup"]:
            seconds.append(time.perf_counter() - begun)
    if not math.isfinite(losses[-1]) or (len(losses) > 1 and losses[-1] >= losses[0]):
        raise ArithmeticError(f"the loss of {name} does not fall")
    return seconds


def figures_of(name: str, seconds: Sequence[float], samples: float) -> dict[str, float]:
    """Return milliseconds of a model's median step, and samples in a second where each step takes so many."""
    median = sorted(seconds)[len(seconds) // 2]
    return {f"{name}_step_time": 1000 * median, f"{name}_samples_throughput": samples / median}


def figures_of_models(
    library: str, given: Given, steps_of: Callable[[str, Given], Sequence[float]]
) -> dict[str, float]:
    """Return the figures of each model, whose steps `steps_of` measures in a library; nothing where it is not installed."""
    if importlib.util.find_spec(library) is None:
        return {}
    figures: dict[str, float] = {}
    for name in given.models:
        figures |= figures_of(name, steps_of(name, given), given.parameters["batch_size"])
    return figures
