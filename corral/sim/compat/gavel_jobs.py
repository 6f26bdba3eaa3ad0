"""Jobs of table C: Gavel's physical-cluster traces and its continuous arrivals (Narayanan et al., OSDI 2020)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Final

from corral.sim.compat.problems import TraceProblem, tabbed
from corral.sim.compat.rounds import RoundJob

TYPES: Final = ("v100", "p100", "k80")
"""Types of GPU in the order in which rounds fill them."""

Speeds = Mapping[tuple[str, int], tuple[float, ...]]
"""Steps a second on each of TYPES, by kind of job and GPUs."""

_ENTRY: Final = re.compile(r"\('(.+)', (\d+)\)")


def read_speeds(text: str) -> dict[tuple[str, int], tuple[float, ...]]:
    """Read a table of throughputs (JSON): those of jobs that have their GPUs alone. Raises ValueError if it is none."""
    found = {}
    try:
        table: Mapping[str, Mapping[str, Mapping[str, float]]] = json.loads(text)
        for name in table[TYPES[0]]:
            if match := _ENTRY.fullmatch(name):
                found[match[1], int(match[2])] = tuple(float(table[kind][name]["null"]) for kind in TYPES)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"the table of throughputs lacks {problem}.") from None
    return found


def read_trace(lines: Iterable[str], speeds: Speeds) -> list[RoundJob]:
    """Read a trace of ten tab-separated fields, in order of arrival. Raises TraceProblem, which names the line."""
    jobs = []
    for number, fields in tabbed(lines, 10):
        jobs.append(_job(number, number - 1, fields[0], (fields[6], fields[5], fields[9]), speeds))
    return sorted(jobs, key=lambda job: job.arrival)


def read_arrivals(lines: Iterable[str], speeds: Speeds) -> list[RoundJob]:
    """Read generated arrivals (CSV with a header). Raises TraceProblem, which names the line."""
    jobs = []
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            texts = (row["scale_factor"], row["total_steps"], row["arrival_s"])
            jobs.append(_job(number, int(row["job_id"]), row["job_type"], texts, speeds))
        except KeyError as missing:
            raise TraceProblem(number, f"the column {missing.args[0]} is missing") from None
    return jobs


def _job(line: int, number: int, kind: str, texts: Sequence[str], speeds: Speeds) -> RoundJob:
    try:
        gpus, total, arrival = int(texts[0]), float(texts[1]), float(texts[2])
    except (TypeError, ValueError):
        raise TraceProblem(line, "GPUs, steps or arrival is no number") from None
    if not (0 < total < float("inf") and arrival >= 0 and isfinite(arrival)):
        raise TraceProblem(line, "steps or arrival is out of range")
    speed = speeds.get((kind, gpus))
    if speed is None:
        raise TraceProblem(line, f"no throughput is known for {kind} on {gpus} GPUs")
    return RoundJob(number, arrival, gpus, int(total) if total.is_integer() else total, speed)
