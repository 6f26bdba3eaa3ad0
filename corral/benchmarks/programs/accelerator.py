"""PyTorch, where it finds the devices of a task."""

from __future__ import annotations

import importlib
import os
from typing import Any

from corral.benchmarks.programs.given import NotMeasurable


def torch_with_devices() -> Any:
    """Return PyTorch. Raises NotMeasurable in a task without devices, and RuntimeError where PyTorch finds none of them."""
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        given = [each for each in os.environ.get("CORRAL_DEVICES", "").split(",") if each]
        if given:
            raise RuntimeError(f"PyTorch finds no device here, and the task has {len(given)}")
        raise NotMeasurable("Devices are not measured: the task has none.")
    return torch
