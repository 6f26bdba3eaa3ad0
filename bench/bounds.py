"""Read the figures, bounds and reasons of all benchmarks from `bounds.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

BOUNDS_FILE = Path(__file__).with_name("bounds.toml")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a benchmark reports, its unit and its bounds."""

    name: str
    unit: str
    better: Literal["less", "more"]
    reason: str
    must: float | None = None
    aim: float | None = None

    def reaches(self, value: float, bound: float | None) -> bool:
        """Whether `value` is within `bound`; true when the bound is None."""
        if bound is None:
            return True
        return value <= bound if self.better == "less" else value >= bound

    def verdict(self, value: float) -> str:
        """`missed` (the must), `met`, or `aim` (the aim was reached too); empty without a bound."""
        if self.must is None and self.aim is None:
            return ""
        if not self.reaches(value, self.must):
            return "missed"
        return "aim" if self.aim is not None and self.reaches(value, self.aim) else "met"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: its name, the subject that it measures, and the figures that it must report."""

    name: str
    what: str
    figures: tuple[Figure, ...]

    @property
    def module(self) -> str:
        """The module whose `measure()` does the work."""
        return "bench." + self.name.replace("-", "_")


def load_bounds(path: Path = BOUNDS_FILE) -> dict[str, Benchmark]:
    """Load every benchmark by name, in the file's order.

    Raises TypeError when a figure has an unknown key or lacks one.
    """
    document = tomllib.loads(path.read_text())
    return {
        name: Benchmark(name, entry["what"], tuple(Figure(**figure) for figure in entry["figure"]))
        for name, entry in document.items()
    }
