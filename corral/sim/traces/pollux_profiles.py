"""Measured profiles of the six applications of Pollux (Qiao et al., OSDI 2021), for table D
and for the durations of traces.

They give the true speed of a job on a placement, its statistical efficiency by batch size, and how many steps an epoch
takes. Placements that were not measured are interpolated linearly between nodes, replicas and local batch size, for which
scipy is needed (the extra `sim`).
"""

from __future__ import annotations

import csv
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corral.kernel.errors import InvalidInput
from corral.sim.trace import TraceProblem

Floats = NDArray[np.float64]
Placement = tuple[int, ...]
"""Replicas on each node of a job, in the order of its allocation."""

MOST_NODES: Final = 16


@dataclass(frozen=True)
class Kind:
    """An application: the smallest and largest batch size profiled (each twice the one before), epochs, local limit."""

    smallest: int
    largest: int
    epochs: int
    most_local: int | None = None

    def sizes(self) -> list[int]:
        """Return the batch sizes that were profiled, in ascending order."""
        found = [self.smallest]
        while found[-1] < self.largest:
            found.append(2 * found[-1])
        return found


KINDS: Final[dict[str, Kind]] = {
    "bert": Kind(12, 384, 2),
    "cifar10": Kind(128, 4096, 100),
    "ncf": Kind(256, 32768, 10),
    "imagenet": Kind(200, 12800, 90),
    "deepspeech2": Kind(20, 640, 80),
    "yolov3": Kind(8, 512, 50, most_local=8),
}


@dataclass(frozen=True)
class Epochs:
    """One batch size, a number an epoch: progress and iterations are cumulative."""

    progress: list[float]
    iteration: list[float]
    sqr: list[float]
    var: list[float]


class Application:
    """The profile of one application."""

    def __init__(
        self,
        kind: Kind,
        epochs: Mapping[int, Epochs],
        placements: Sequence[Sequence[float]],
        more: Sequence[Sequence[float]],
    ) -> None:
        self.kind = kind
        self.epochs = epochs
        self.sizes = sorted(epochs)
        self.least_local = int(min(row[1] for row in placements))
        self.most_local = kind.most_local or int(max(row[1] for row in placements))
        self.measured: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
        for row in placements:
            self.measured[int(row[0])].append((row[1], row[2], row[3]))
        for rows in self.measured.values():
            rows.sort()
        self.points = [*_means(placements), *more]
        self.known: dict[tuple[Placement, int], tuple[float, float]] = {}
        self.interpolate: Callable[[Sequence[float]], Any] | None = None

    def step_times(self, placement: Placement, local: int) -> tuple[float, float]:
        """Return the seconds of a step and of its synchronisation, for a local batch size."""
        nodes = tuple(count for count in placement if count)
        key = (min(nodes[at:] + nodes[:at] for at in range(len(nodes))), local)
        if key not in self.known:
            self.known[key] = self._step_times(*key)
        return self.known[key]

    def _step_times(self, placement: Placement, local: int) -> tuple[float, float]:
        rows = self.measured.get(int("".join(map(str, placement))))
        if rows:
            sizes = [row[0] for row in rows]
            if not sizes[0] <= local <= sizes[-1]:
                raise InvalidInput("pollux-profile", f"Local batch size {local} was not profiled on {placement}.")
            step, sync = (float(np.interp(local, sizes, [row[at] for row in rows])) for at in (1, 2))
            return step, sync
        if self.interpolate is None:
            self.interpolate = _interpolator(self.points)
        found = self.interpolate([min(len(placement), MOST_NODES), sum(placement), local])[0]
        if not np.isfinite(found).all():
            raise InvalidInput(
                "pollux-profile", f"Local batch size {local} on {placement} lies outside of the profile."
            )
        return float(found[0]), float(found[1])

    def gradient(self, size: int, epoch: int) -> tuple[float, float]:
        """Return the squared norm and the variance of the gradient, linear between profiled batch sizes."""
        return self._between(size, lambda row: row.sqr[epoch]), self._between(size, lambda row: row.var[epoch])

    def iterations(self, size: int, epoch: int) -> float:
        """Return the steps at the end of epoch number `epoch`, linear between profiled batch sizes."""
        return self._between(size, lambda row: row.iteration[epoch])

    def progress(self, epoch: int) -> float:
        """Return the progress at which `epoch` epochs are done: the least of all batch sizes."""
        return 0.0 if epoch == 0 else min(row.progress[epoch - 1] for row in self.epochs.values())

    def _between(self, size: int, value: Callable[[Epochs], float]) -> float:
        low = self.sizes[max(bisect_right(self.sizes, size) - 1, 0)]
        high = self.sizes[min(bisect_left(self.sizes, size), len(self.sizes) - 1)]
        if low >= high:
            return value(self.epochs[low])
        return ((size - low) * value(self.epochs[high]) + (high - size) * value(self.epochs[low])) / (high - low)


def _means(placements: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    """Return the means by (nodes, replicas, local batch size), in ascending order."""
    groups: dict[tuple[int, int, float], list[Sequence[float]]] = defaultdict(list)
    for row in placements:
        digits = [int(digit) for digit in str(int(row[0]))]
        groups[len(digits), sum(digits), row[1]].append(row)
    return [
        (*key, float(np.mean([row[2] for row in groups[key]])), float(np.mean([row[3] for row in groups[key]])))
        for key in sorted(groups)
    ]


def _interpolator(points: Sequence[Sequence[float]]) -> Callable[[Sequence[float]], Any]:
    try:
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError
    except ImportError:
        raise InvalidInput("no-scipy", "Profiles of Pollux need scipy: pip install 'corral[sim]'.") from None
    table = np.array(points)
    try:
        found: Callable[[Sequence[float]], Any] = LinearNDInterpolator(table[:, :3], table[:, 3:])
    except QhullError:
        raise InvalidInput("pollux-profile", "The profile has too few placements to tell the time of others.") from None
    return found


def read_application(name: str, lines: Callable[[str], Iterable[str]]) -> Application:
    """Read the profile of an application from its folder `name`. Raises TraceProblem, which names the line."""
    kind = KINDS[name]
    epochs = {}
    for size in kind.sizes():
        columns = ("progress", "iteration", "grad_sqr", "grad_var")
        table = list(zip(*read_numbers(lines(f"{name}/validation-{size}.csv"), columns), strict=True))
        if not table or len(table[0]) < kind.epochs:
            raise TraceProblem(1, f"the profile of {name} at batch size {size} has fewer than {kind.epochs} epochs")
        epochs[size] = Epochs(*(list(column) for column in table))
    times = ("local_bsz", "step_time", "sync_time")
    placements = read_numbers(lines(f"{name}/placements.csv"), ("placement", *times))
    more = read_numbers(lines(f"{name}/scalability.csv"), ("num_nodes", "num_replicas", *times))
    return Application(kind, epochs, placements, more)


def read_numbers(lines: Iterable[str], columns: Sequence[str]) -> list[tuple[float, ...]]:
    """Read columns of numbers from CSV with a header. Raises TraceProblem, which names the line."""
    found = []
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            found.append(tuple(float(row[column]) for column in columns))
        except (KeyError, TypeError, ValueError):
            raise TraceProblem(number, f"one of {', '.join(columns)} is missing or no number") from None
    return found
