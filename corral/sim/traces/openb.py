"""The pods of openb, Alibaba's trace of shared GPUs (Weng et al., USENIX ATC 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.sim.trace import WHOLE, TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows
from corral.spec.priority import PRIORITY_CLASSES

MILLI: Final = 1000
"""Thousandths of one GPU."""
MOST_GPUS: Final = 8
"""GPUs of the largest node."""
_ROOM: Final = {"cpu_milli": 10**9, "memory_mib": 10**9}
"""Other resources of a pod, with the most that is read."""
COLUMNS: Final = Columns(
    "openb", frozenset({"num_gpu", "gpu_milli", "creation_time", "scheduled_time", "deletion_time"})
)


def whole_numbers(row: Mapping[str, str], most: Mapping[str, int]) -> list[int] | str:
    """Return the numbers of some columns, each from 0 to its bound, or what is wrong with the first that is none."""
    values = []
    for column, bound in most.items():
        if column not in row:
            return f"the column {column} is missing"
        try:
            value = int(row[column])
        except (TypeError, ValueError):
            return f"{column} is missing or no whole number"
        if not 0 <= value <= bound:
            return f"{column} is {value}, not within 0 to {bound}"
        values.append(value)
    return values


def problem_of_request(gpus: int, milli: int) -> str:
    """Return why a pod cannot ask for so many thousandths of so many GPUs; "" if it can."""
    if gpus > 1 and milli != MILLI:
        return "a pod of several GPUs must ask for whole ones"
    return "a pod with a GPU asks for nothing of it" if gpus and not milli else ""


def needed(line: int, row: Row) -> TraceJob | str:
    """Return a pod as a job that takes no time, or what is wrong with it."""
    said = {name: most for name, most in _ROOM.items() if row.get(name)}
    numbers = whole_numbers(row, {"num_gpu": MOST_GPUS, "gpu_milli": MILLI, **said})
    if isinstance(numbers, str):
        return numbers
    room = dict(zip(said, numbers[2:], strict=True))
    gpus, milli = numbers[:2]
    if problem := problem_of_request(gpus, milli):
        return problem
    if not gpus and not room.get("cpu_milli"):
        return "the pod held no GPU"
    return TraceJob(
        row.get("name") or f"pod-{line - 1}",
        0.0,
        0.0,
        gpus,
        part=milli if gpus else WHOLE,
        cpu_millis=room.get("cpu_milli", 0),
        memory_bytes=room.get("memory_mib", 0) << 20,
    )


def read_openb(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read pods (CSV). One runs from its scheduling to its deletion.

    Processors and memory count where there are the columns `cpu_milli` and `memory_mib`. A best-effort pod (`qos` BE) is
    opportunistic. The models that a pod accepts (`gpu_spec`) are not looked at.
    """

    def convert(line: int, row: Row) -> TraceJob | str:
        job = needed(line, row)
        if isinstance(job, str):
            return job
        if not row["scheduled_time"]:
            return "the pod never started"
        if not row["deletion_time"]:
            return "the pod has not ended"
        submitted, started, ended = (float(row[f"{name}_time"]) for name in ("creation", "scheduled", "deletion"))
        priority = PRIORITY_CLASSES["oppo"] if row.get("qos") == "BE" else 0
        return job._replace(submitted=submitted, seconds=ended - started, priority=priority)

    return read_rows(lines, COLUMNS, convert)
