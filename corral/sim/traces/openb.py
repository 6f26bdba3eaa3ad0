"""The pods of openb, Alibaba's trace of shared GPUs (Weng et al., USENIX ATC 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from corral.sim.trace import TraceJob
from corral.sim.traces.rows import Columns, Row, read_rows
from corral.spec.priority import PRIORITY_CLASSES

MILLI: Final = 1000
"""Thousandths of one GPU."""
MOST_GPUS: Final = 8
"""GPUs of the largest node."""
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


def read_openb(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read pods (CSV). One runs from its scheduling to its deletion, and a part of a GPU counts as a whole one.

    A best-effort pod (`qos` BE) is opportunistic. The models that a pod accepts (`gpu_spec`) are not looked at.
    """

    def convert(line: int, row: Row) -> TraceJob | str:
        asked = whole_numbers(row, {"num_gpu": MOST_GPUS, "gpu_milli": MILLI})
        if isinstance(asked, str):
            return asked
        if problem := problem_of_request(*asked):
            return problem
        if not asked[0]:
            return "the pod held no GPU"
        if not row["scheduled_time"]:
            return "the pod never started"
        if not row["deletion_time"]:
            return "the pod has not ended"
        submitted, started, ended = (float(row[f"{name}_time"]) for name in ("creation", "scheduled", "deletion"))
        priority = PRIORITY_CLASSES["oppo"] if row.get("qos") == "BE" else 0
        return TraceJob(row.get("name") or f"pod-{line - 1}", submitted, ended - started, asked[0], priority=priority)

    return read_rows(lines, COLUMNS, convert)
