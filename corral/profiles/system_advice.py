"""Advice from what tasks did with their machines: each with the figure that led to it and the gain that it may bring.

The bounds of device use and memory are the usual ones: below 85 % and below 80 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from corral.kernel.units import counted
from corral.profiles.advice import LEAST_DEVICE_USE, LEAST_MEMORY_USE, Advice, Given, memory_slack
from corral.profiles.system import SystemReport

_LEAST_BUSY: Final = 0.70
"""A thread that wants a processor for less of the time is not what the task waits for."""
_MOST_BESIDE: Final = 0.30
"""Processors that the other threads want at most while one does the work."""
MOST_DISK_WAITS: Final = 0.10
_LEAST_MISSES: Final = 0.20
MOST_THROTTLED: Final = 0.05
MOST_QUEUED: Final = 0.20
_MIB: Final = 2**20


def advise_system(ranks: Sequence[SystemReport], given: Mapping[str, Given]) -> list[Advice]:
    """Return all advice: what saves time before what saves memory, the greatest gain first."""
    kinds = (_throttled, _one_thread, _disk, _queued, _device_use, _device_memory)
    found = [each for rank in ranks for kind in kinds for each in kind(rank, given.get(rank.rank, Given()))]
    peaks = Counter({each.rank: int(each.resident) for each in ranks})
    return sorted([*found, *memory_slack(peaks, given)], key=lambda each: (each.of != "time", -each.gain, each.subject))


def _given(rank: SystemReport, given: Given) -> float:
    """Processors that the task has: what it asked for, as far as its machine has them."""
    return min(rank.processors, given.cpu_millis / 1000) if given.cpu_millis else rank.processors


def _throttled(rank: SystemReport, given: Given) -> Iterator[Advice]:
    """The time in which a control group is throttled counts for each processor that it wants."""
    share = min(1.0, rank.throttled_seconds / max(1.0, rank.wanted))
    if rank.throttled > MOST_THROTTLED and share > MOST_THROTTLED:
        text = (
            f"{rank.rank} is held back in {rank.throttled:.0%} of the periods, as it wants more than its "
            f"{_given(rank, given):g} processors: ask for more, or start fewer threads."
        )
        yield Advice("throttling", rank.throttled, share, rank.rank, text)


def _one_thread(rank: SystemReport, given: Given) -> Iterator[Advice]:
    """One thread works and the others rest. Its work is taken to divide well, so the gain is the most that there is."""
    processors = int(_given(rank, given))
    if processors >= 2 and rank.busiest >= _LEAST_BUSY and rank.wanted - rank.busiest <= _MOST_BESIDE:
        text = (
            f"One thread of {rank.rank} does the work ({rank.busiest:.0%} of the time), and the task has "
            f"{counted(processors, 'processor')}: set OMP_NUM_THREADS or torch.set_num_threads, or start more workers."
        )
        gain = rank.busiest * (1 - 1 / processors)
        yield Advice("one-thread", rank.wanted / processors, gain, rank.rank, text)


def _disk(rank: SystemReport, given: Given) -> Iterator[Advice]:
    """Waits for the disk: of what is read, if the page cache lacks much of it, else of what is written."""
    if rank.disk <= MOST_DISK_WAITS:
        return
    misses = min(1.0, rank.read / max(rank.asked, rank.read)) if rank.read > 0 else 0.0
    waits = f"{rank.rank} waits {rank.disk:.0%} of its time for the disk: "
    if rank.read >= rank.written and (misses >= _LEAST_MISSES or rank.major > 0):
        text = (
            f"{waits}{misses:.0%} of what it read ({rank.read / _MIB:,.0f} MiB) was not in the page cache. Give it memory "
            "for its files, read each of them once, read ahead in other threads, or copy them to the node."
        )
        yield Advice("page-cache", misses, _of_misses(rank, misses), rank.rank, text)
    else:
        text = (
            f"{waits}it wrote {rank.written / _MIB:,.0f} MiB. Write less often, in another thread, or to memory first."
        )
        yield Advice("disk", rank.disk, rank.disk, rank.rank, text)


def _of_misses(rank: SystemReport, misses: float) -> float:
    """The gain if nothing that is read were missed: the waits, and what the kernel does to fetch it.

    Of the time that the reading thread is within the kernel, copies of what was asked for would stay. The rest is counted
    as far as reads missed.
    """
    if rank.hit <= 0:
        return rank.disk
    copies = rank.hit * rank.asked / rank.seconds
    return min(1.0, rank.disk + misses * max(0.0, rank.kernel - copies))


def _queued(rank: SystemReport, given: Given) -> Iterator[Advice]:
    """Threads that wait for a processor although the control group is not held back."""
    if rank.queued > MOST_QUEUED and rank.busiest >= _LEAST_BUSY and rank.throttled <= MOST_THROTTLED:
        text = (
            f"The threads of {rank.rank} wait {rank.queued:.0%} of the time that they want a processor: more threads than "
            "processors, or other programs on its node. Start fewer, or let nothing run beside it."
        )
        yield Advice("run-queue", rank.queued, rank.queued * rank.busiest, rank.rank, text)


def _device_use(rank: SystemReport, given: Given) -> Iterator[Advice]:
    known = [each for each in rank.devices if each.use >= 0]
    least = min(known, key=lambda each: each.use, default=None)
    if least is not None and least.use < LEAST_DEVICE_USE:
        text = (
            f"Device {least.number} of {rank.rank} is in use {least.use:.0%} of the time: "
            "`corral profile --what torch` tells what it waits for."
        )
        yield Advice("device-use", least.use, 1 - least.use, rank.rank, text)


def _device_memory(rank: SystemReport, given: Given) -> Iterator[Advice]:
    """Memory of a device that is never used cannot be given back, but larger batches use it."""
    known = [each for each in rank.devices if each.memory >= 0]
    most = max(known, key=lambda each: each.memory, default=None)
    if most is not None and most.memory < LEAST_MEMORY_USE:
        text = (
            f"The devices of {rank.rank} have {most.memory:.0%} of their memory in use at most: larger batches use it, or "
            "devices with less memory, or a share of one, would do."
        )
        yield Advice("memory-slack", most.memory, 1 - most.memory / LEAST_MEMORY_USE, rank.rank, text, "memory")
