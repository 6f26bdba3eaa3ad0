"""What the ranks of a job did during their traces: time by kind, waits for data, top operators, imbalance.

The time of a rank is divided without counting any moment twice: computing first, then communication that no computing
hides (exposed), then copies, then waits for data, then idle. Without a device "computing" is the operators of threads;
those that enclose a collective may wait for it, and hide none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from corral.profiles.intervals import Interval, length, shares, union, without
from corral.profiles.trace_events import Event, refused
from corral.profiles.trace_windows import Window, windows_of

_DEVICE: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_OPERATOR: Final = "cpu_op"
_LOADER: Final = "enumerate(DataLoader)#"
_COLLECTIVES: Final = ("gloo:", "nccl:", "mpi:", "ucc:", "ncclDevKernel", "ncclKernel", "hcclKernel")
_WAITS: Final = ("c10d::", "_c10d_functional::", "c10d_functional::", "gloo:", "nccl:", "mpi:", "record_param_comms")
_LAUNCHES: Final = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime"})
"""What a program asks of a device."""
_COPIES: Final = ("gpu_memcpy", "gpu_memset")
_TOP: Final = 20
_STEP: Final = "Optimizer.step#"
_MOST_STEPS: Final = 10_001
COLUMNS: Final = 120
"""Equal spans into which a timeline divides a rank's trace."""
PARTS: Final = ("computing", "exposed_communication", "copies", "data_waits", "idle")
"""The parts into which a rank's time is divided."""


class Top(NamedTuple):
    """An operator, kernel or collective, with its whole time in seconds and its calls."""

    name: str
    seconds: float
    calls: int


class Timeline(NamedTuple):
    """What a rank did over time: for each span of its trace the share of each part. No moment counts twice."""

    computing: tuple[float, ...] = ()
    exposed_communication: tuple[float, ...] = ()
    copies: tuple[float, ...] = ()
    data_waits: tuple[float, ...] = ()


class RankReport(NamedTuple):
    """What one rank did in the seconds of its trace; the parts from `computing` to `idle` add up to `seconds`."""

    rank: str
    seconds: float
    computing: float
    exposed_communication: float
    copies: float
    data_waits: float
    idle: float
    communication: float
    """All communication, hidden or not."""
    device: bool
    """Whether the trace has a device's work; else computing is that of the processors."""
    steps: int
    operators: tuple[Top, ...]
    kernels: tuple[Top, ...]
    collectives: tuple[Top, ...]
    timeline: Timeline = Timeline()
    step_seconds: tuple[float, ...] = ()
    """From the end of each optimizer's step to that of the next; of the first 10,000."""
    windows: tuple[Window, ...] = ()
    """What it did between its collectives."""

    def share(self, part: str) -> float:
        """A part of its time, named by its field, as a share of all of it."""
        return float(getattr(self, part)) / self.seconds if self.seconds > 0 else 0.0

    @property
    def own(self) -> float:
        """The share of the time in which it does not wait for other ranks; idle counts, as a slow program looks idle."""
        return 1.0 - self.share("exposed_communication")


def report(rank: str, events: Iterable[Event], *, cut: bool = False) -> RankReport:
    """Read the spans of one rank; of a trace that was `cut`, those up to where it has the device's work.

    Raises InvalidInput `bad-trace` if they have no span of work.
    """
    found = _Sorted()
    for event in _before_cut(events) if cut else events:
        found.add(event)
    if not found.whole:
        raise refused("it has no span of an operator, a kernel or an annotation")
    begin, end = min(each[0] for each in found.whole), max(each[1] for each in found.whole)
    communication, copies, loading = union(found.communication), union(found.copies), union(found.loading)
    computing = union(found.kernels) if found.device else without(union(found.operators), loading)
    exposed = without(communication, computing if found.device else union(found.without_waits()))
    computing = computing if found.device else without(computing, exposed)
    busy = union([*computing, *exposed])
    copying = without(copies, busy)
    busy = union([*busy, *copying])
    waiting = without(loading, busy)
    parts = (computing, exposed, copying, waiting)
    seconds = (end - begin) / 1e6
    computed, talked, copied, waited = (length(each) / 1e6 for each in (computing, exposed, copying, waiting))
    return RankReport(
        rank=rank,
        seconds=seconds,
        computing=computed,
        exposed_communication=talked,
        copies=copied,
        data_waits=waited,
        idle=max(0.0, seconds - computed - talked - copied - waited),
        communication=length(communication) / 1e6,
        device=found.device,
        steps=len(found.step_ends),
        operators=_top(found.by_operator),
        kernels=_top(found.by_kernel),
        collectives=_top(found.by_collective),
        step_seconds=tuple((after - before) / 1e6 for before, after in pairwise(sorted(found.step_ends)[:_MOST_STEPS])),
        timeline=Timeline(*(shares(part, begin, end, COLUMNS) for part in parts)),
        windows=windows_of(parts, found.collectives(), found.named(), begin, end),
    )


def _before_cut(events: Iterable[Event]) -> list[Event]:
    """The spans up to the last one of a device; all of a trace without a device.

    PyTorch writes what processors did first. So a trace that is cut lacks the end of the device's work alone, and the
    device would look idle there. Raises InvalidInput `bad-trace` when all of that work is missing.
    """
    found = list(events)
    end = max((each.end for each in found if each.kind in _DEVICE), default=None)
    if end is None:
        if any(each.kind in _LAUNCHES for each in found):
            raise refused("it was cut before the work of the device; take a shorter one")
        return found
    return [each._replace(length=min(each.length, end - each.begin)) for each in found if each.begin < end]


class _Sorted:
    """The spans of a rank by what they mean."""

    def __init__(self) -> None:
        self.whole: list[Interval] = []
        self.operators: list[Interval] = []
        self.kernels: list[Interval] = []
        self.communication: list[Interval] = []
        self.copies: list[Interval] = []
        self.loading: list[Interval] = []
        self._host_collectives: list[Event] = []
        self._device_collectives: list[Event] = []
        self._work: list[Event] = []
        self._waits: list[Event] = []
        self._kernels: list[Event] = []
        self.device = False
        self.step_ends: list[float] = []
        self.by_operator: dict[str, list[float]] = {}
        self.by_kernel: dict[str, list[float]] = {}
        self.by_collective: dict[str, list[float]] = {}

    def add(self, event: Event) -> None:
        """Take one span."""
        span = (event.begin, event.end)
        collective = event.name.startswith(_COLLECTIVES)
        if event.kind in _DEVICE:
            self.device = True
            self.whole.append(span)
            kind = self.copies if event.kind in _COPIES else self.communication if collective else self.kernels
            kind.append(span)
            if event.kind not in _COPIES:
                (self._device_collectives if collective else self._kernels).append(event)
            _count(self.by_collective if collective else self.by_kernel, event)
        elif event.kind in ("user_annotation", _OPERATOR):
            self.whole.append(span)
            self._add_of_thread(event, span, collective=collective)

    def collectives(self) -> list[Event]:
        """The collectives, those of the device where it has some."""
        return self._device_collectives or self._host_collectives

    def named(self) -> list[Event]:
        """What computing is made of: kernels where there is a device, else operators."""
        return self._kernels if self.device else self._work

    def without_waits(self) -> list[Interval]:
        """The operators that enclose no collective."""
        waiting: set[int] = set()
        waits = {id(each) for each in self._waits}
        stacks: dict[tuple[str, str], list[Event]] = {}
        for event in sorted([*self._work, *self._waits], key=lambda each: (each.begin, -each.length)):
            stack = stacks.setdefault((event.process, event.thread), [])
            while stack and stack[-1].end <= event.begin:
                stack.pop()
            if id(event) in waits:
                waiting.update(map(id, stack))
            stack.append(event)
        return [(each.begin, each.end) for each in self._work if id(each) not in waiting]

    def _add_of_thread(self, event: Event, span: Interval, *, collective: bool) -> None:
        if event.name.startswith(_LOADER):
            self.loading.append(span)
        elif collective:
            self.communication.append(span)
            self._host_collectives.append(event)
            _count(self.by_collective, event)
        elif event.kind == _OPERATOR:
            if event.name.startswith(_WAITS):
                self._waits.append(event)
            else:
                self.operators.append(span)
                self._work.append(event)
            _count(self.by_operator, event)
        elif event.name.startswith(_STEP):
            self.step_ends.append(event.end)


def _count(into: dict[str, list[float]], event: Event) -> None:
    known = into.setdefault(event.name, [0.0, 0])
    known[0] += event.length / 1e6
    known[1] += 1


def _top(counted: Mapping[str, Sequence[float]]) -> tuple[Top, ...]:
    made = sorted((Top(name, seconds, int(calls)) for name, (seconds, calls) in counted.items()), key=_longest)
    return tuple(made[:_TOP])


def _longest(top: Top) -> tuple[float, str]:
    return (-top.seconds, top.name)


def imbalance(ranks: Sequence[RankReport]) -> float:
    """By how much the busiest rank is above the mean in its own time, as a share of the busiest; 0 for one rank."""
    own = [each.own for each in ranks]
    busiest = max(own, default=0.0)
    return (busiest - sum(own) / len(own)) / busiest if busiest > 0 else 0.0
