"""STREAM: four loops over arrays that no cache holds (McCalpin, 1995), by NumPy, or copies alone without it."""

from __future__ import annotations

from array import array
from typing import Any

from corral.benchmarks.programs.given import Given, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return the bandwidths in GB/s; NumPy's scale, add and triad count the bytes that STREAM counts."""
    size, repeat = given.parameters["size_mib"] * 2**20 // 8, given.parameters["repeat"]
    try:
        import numpy
    except ImportError:
        source = array("d", [1.0]) * size
        return {"copy_bw": 16 * size / best_seconds(lambda: source[:], repeat) / 1e9}
    return _loops(numpy, size, repeat)


def _loops(numpy: Any, size: int, repeat: int) -> dict[str, float]:
    a, b, c = numpy.full(size, 1.0), numpy.full(size, 2.0), numpy.zeros(size)

    def triad() -> None:
        numpy.multiply(c, 3.0, out=a)
        numpy.add(a, b, out=a)

    seconds = {
        "copy_bw": (16, best_seconds(lambda: numpy.copyto(c, a), repeat)),
        "scale_bw": (16, best_seconds(lambda: numpy.multiply(c, 3.0, out=b), repeat)),
        "add_bw": (24, best_seconds(lambda: numpy.add(a, b, out=c), repeat)),
        "triad_bw": (40, best_seconds(triad, repeat)),  # two passes: 16 bytes, and 24 in place
    }
    if not (numpy.all(a == a[0]) and numpy.all(b == b[0]) and numpy.all(c == c[0])):
        raise ArithmeticError("equal elements differ after the loops")
    return {name: count * size / took / 1e9 for name, (count, took) in seconds.items()}
