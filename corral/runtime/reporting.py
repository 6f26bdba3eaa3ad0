"""Tell Corral from inside a program how far its work is: `corral.report(step=10, loss=0.3)`.

One file of the standard library that knows nothing of Corral's other code. A task that asks for it (`report: true`)
imports it as the package `corral`, whatever its image has. Elsewhere a call does nothing, so a program runs unchanged
without Corral. docs/reference/report.md has the contract.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import pkgutil
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

if __name__ == "corral":  # the parts of an installed Corral can be imported too
    globals()["__path__"] = pkgutil.extend_path(globals()["__path__"], __name__)

VARIABLE = "CORRAL_REPORT_FILE"
"""The environment variable with the path of the file that the values are written to."""
APART_SECONDS = 1.0
"""The least seconds between two writes; values said meanwhile are written with the next one, or at the end."""

_lock = threading.Lock()
_said: dict[str, float] = {}
_written_at = -math.inf
_pending = False


def report(
    step: float | None = None,
    *,
    steps: float | None = None,
    progress: float | None = None,
    throughput: float | None = None,
    loss: float | None = None,
    gradient_noise: float | None = None,
    batch_size: float | None = None,
    active: float | None = None,
    waited: float | None = None,
) -> bool:
    """Report values of the job's work; what is left out keeps its last value. Return whether anybody reads them.

    `step` of `steps` are done, or the fraction `progress` of all work. `throughput` is work per second of the whole
    job, `batch_size` the examples of one step of the whole job, `gradient_noise` the gradient noise scale in examples.
    `active` is 1 while somebody works in it, such as in the kernels of a notebook, and 0 while nobody does: a job that
    reports 1 is not idle, whatever its devices do. `waited` are the seconds that this task has waited for the job's other
    tasks so far, which `waiting` counts by itself.
    Anything that `float` takes is a number, such as a tensor of one element. Infinite values and NaN are left out. Cheap
    enough to be called in every step: it writes a small file at most once a second.

    Raises TypeError or ValueError for a value that is no number.
    """
    given = {
        "step": step, "steps": steps, "progress": progress, "throughput": throughput, "loss": loss,
        "gradient_noise": gradient_noise, "batch_size": batch_size, "active": active,
        "waited": waited,
    }  # fmt: skip
    path = os.environ.get(VARIABLE, "")
    if not path:
        return False
    numbers = {name: float(value) for name, value in given.items() if value is not None}
    with _lock:
        for name, value in numbers.items():
            _said.pop(name, None)
            if math.isfinite(value):
                _said[name] = value
        return _write(path, time.monotonic())


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Count the time of the block as waits for the job's other tasks; the next report tells it.

    Corral then knows which of the tasks that meet in every step the others wait for. Put it around what each task calls,
    such as an all-reduce, and not within itself.
    """
    begun = time.monotonic()
    try:
        yield
    finally:
        with _lock:
            _said["waited"] = _said.get("waited", 0.0) + time.monotonic() - begun


def _write(path: str, now: float) -> bool:
    global _pending, _written_at
    if now < _written_at + APART_SECONDS:
        _pending = True
        return True
    _written_at, _pending = now, False
    own = f"{path}.{os.getpid()}"
    try:
        with open(own, "w", encoding="utf-8") as file:
            json.dump(_said, file)
        os.replace(own, path)
    except OSError:  # a full disk must not end the training
        return False
    return True


def _flush() -> None:
    path = os.environ.get(VARIABLE, "")
    with _lock:
        if _pending and path:
            _write(path, math.inf)


atexit.register(_flush)
