"""Advice from the reports of a job's ranks: each with the figure that led to it and the gain that it may bring, best first.

The thresholds of device use, memory and imbalance are the usual ones: below 85 %, below 80 %, above 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from corral.kernel.units import format_memory
from corral.profiles.critical_path import PathPart
from corral.profiles.stalls import periodic_stalls
from corral.profiles.trace_report import RankReport, imbalance

LEAST_DEVICE_USE: Final = 0.85
MOST_IMBALANCE: Final = 0.15
MOST_DATA_WAITS: Final = 0.10
MOST_EXPOSED: Final = 0.20
MOST_COPIES: Final = 0.10
MOST_STALLED: Final = 0.05
LEAST_MEMORY_USE: Final = 0.80


class Advice(NamedTuple):
    """One piece of advice."""

    subject: str
    """`data-loading`, `imbalance`, `communication`, `copies`, `device-use`, `stalls` or `memory-slack`."""
    figure: float
    """The share of the time, or the imbalance, that led to it."""
    gain: float
    """The share of a step's time that may be saved at most."""
    rank: str
    """The rank that it is about; "" for all."""
    text: str
    of: str = "time"
    """What the gain is a share of: `time`, or the `memory` that the task asked for."""


class Given(NamedTuple):
    """What a task asked for; 0 is no limit."""

    cpu_millis: int = 0
    memory_bytes: int = 0


def advise(ranks: Sequence[RankReport], path: Sequence[PathPart] = ()) -> list[Advice]:
    """Return all advice, the greatest gain first. `path` is the critical path of these ranks, if they have one."""
    if not ranks:
        return []
    kinds = (_data_loading, _imbalance, _copies, _device_use, _stalls)
    found = [each for kind in kinds for each in kind(ranks)]
    found += _communication(ranks, path)
    return sorted(found, key=lambda each: (-each.gain, each.subject))


def _most(ranks: Sequence[RankReport], part: str) -> tuple[float, RankReport]:
    rank = max(ranks, key=lambda each: each.share(part))
    return rank.share(part), rank


def _data_loading(ranks: Sequence[RankReport]) -> Iterator[Advice]:
    share, rank = _most(ranks, "data_waits")
    if share > MOST_DATA_WAITS:
        text = (
            f"{rank.rank} waits {share:.0%} of its time for data: give the DataLoader more workers (num_workers), or "
        )
        yield Advice("data-loading", share, share, rank.rank, f"{text}have each item take less time.")


def _imbalance(ranks: Sequence[RankReport]) -> Iterator[Advice]:
    figure = imbalance(ranks)
    if figure > MOST_IMBALANCE:
        slow = max(ranks, key=lambda each: each.own)
        others = sum(each.own for each in ranks if each is not slow) / (len(ranks) - 1)
        text = (
            f"The others wait for {slow.rank}: it is busy {slow.own:.0%} of the time, and they {others:.0%} "
            f"(imbalance {figure:.2f}). Look at its node and its share of the data."
        )
        yield Advice("imbalance", figure, slow.own - others, slow.rank, text)


def _communication(ranks: Sequence[RankReport], path: Sequence[PathPart]) -> Iterator[Advice]:
    """What even the rank that waits least spends in communication, its waits for others in turns among it.

    Quick communication saves what the critical path has of it: from the time on when the last rank has come. Ranks that
    also wait for each other less often save up to the whole share. The gain is the mean of these bounds.
    """
    share = min(each.share("exposed_communication") for each in ranks)
    if share > MOST_EXPOSED:
        least = min(share, sum(each.share for each in path if each.part == "exposed_communication")) if path else share
        waits = f" ({least:.0%} after the last one has come)" if path else ""
        text = (
            f"Every rank spends {share:.0%} or more of its time in communication that no computing hides{waits}: overlap "
            "it, communicate less often, or place the ranks closer together."
        )
        yield Advice("communication", share, (least + share) / 2, "", text)


def _copies(ranks: Sequence[RankReport]) -> Iterator[Advice]:
    share, rank = _most(ranks, "copies")
    if share > MOST_COPIES:
        text = f"{rank.rank} spends {share:.0%} of its time in copies between host and device alone: pin the memory "
        yield Advice("copies", share, share, rank.rank, f"{text}(pin_memory) and copy with non_blocking=True.")


def _device_use(ranks: Sequence[RankReport]) -> Iterator[Advice]:
    """Idle devices, beyond what the waits for data explain."""
    with_device = [each for each in ranks if each.device]
    if not with_device:
        return
    idle, rank = _most(with_device, "idle")
    use = 1.0 - idle - rank.share("data_waits")
    if use < LEAST_DEVICE_USE and idle > 1.0 - LEAST_DEVICE_USE:
        text = (
            f"The device of {rank.rank} is in use {use:.0%} of the time, and idle {idle:.0%} without a wait for data: "
            "larger batches, torch.compile or CUDA graphs keep it busy."
        )
        yield Advice("device-use", use, idle, rank.rank, text)


def _stalls(ranks: Sequence[RankReport]) -> Iterator[Advice]:
    """Steps that take longer at a regular pace, of the rank that loses most by them."""
    known = [(found, each) for each in ranks if (found := periodic_stalls(each.step_seconds)) is not None]
    if not known:
        return
    stalls, rank = max(known, key=lambda each: each[0].lost)
    share = min(1.0, stalls.lost / rank.seconds) if rank.seconds > 0 else 0.0
    if share > MOST_STALLED:
        text = (
            f"One of {stalls.every:.0f} steps of {rank.rank} takes {stalls.times:.1f} times as long as the others: look at "
            "what happens then, such as a checkpoint, an evaluation or a log, and do it less often or beside the training."
        )
        yield Advice("stalls", share, share, rank.rank, text)


def memory_slack(peaks: Mapping[str, int], given: Mapping[str, Given]) -> list[Advice]:
    """Advice for the tasks that used less than 80 % of their memory at most; one for tasks that asked alike.

    `peaks` has the most that each task used in bytes. The gain is what it needs not ask for if it keeps a fifth free.
    """
    most: dict[int, tuple[int, str]] = {}
    for task, peak in peaks.items():
        asked = given.get(task, Given()).memory_bytes
        if asked > 0:
            most[asked] = max(most.get(asked, (0, "")), (peak, task))
    return [
        _slack(task, peak, asked) for asked, (peak, task) in sorted(most.items()) if peak < LEAST_MEMORY_USE * asked
    ]


def _slack(task: str, peak: int, asked: int) -> Advice:
    enough = _mebibytes(int(peak / LEAST_MEMORY_USE))
    text = (
        f"{task} used {format_memory(_mebibytes(peak))} at most of the {format_memory(asked)} that it asked for "
        f"({peak / asked:.0%}): {format_memory(enough)} would do, or larger batches or more data in memory would use it."
    )
    return Advice("memory-slack", peak / asked, max(0.0, 1 - enough / asked), task, text, "memory")


def _mebibytes(size: int) -> int:
    """Bytes rounded up to whole mebibytes."""
    return -(-size // 2**20) * 2**20
