"""The readers of published traces, by name; an installed package adds one by the group `corral.trace_readers`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import load, plug_ins
from corral.sim.trace import Reader, TraceJob

GROUP: Final = "corral.trace_readers"
"""The entry-point group of readers."""
Row = Mapping[str, str]


def find_reader(name: str) -> Reader:
    """Return the reader of this name, built in or installed.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in READERS:
        return READERS[name]
    points = plug_ins(GROUP)
    if name not in points:
        known = ", ".join(sorted({*READERS, *points}))
        raise InvalidInput("unknown-trace-format", f'There is no trace format "{name}"; choose one of {known}.')
    reader: Reader = load(points[name], "trace format", lambda found: found)
    return reader


def format_of(header: str) -> str | None:
    """Return the format whose columns a header line has; None if none fits."""
    for name, wanted in _COLUMNS.items():
        if wanted <= {column.strip() for column in header.split(_SEPARATORS.get(name, ","))}:
            return name
    return None


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows with their line numbers; raises InvalidInput if a column is missing."""
    if separator := _SEPARATORS.get(name):
        rows = csv.DictReader(lines, restval="", delimiter=separator, quoting=csv.QUOTE_NONE)
    else:
        rows = csv.DictReader(lines, restval="")
    try:
        columns = set(rows.fieldnames or ())
        if missing := sorted(_COLUMNS[name] - columns):
            said = f"the column {missing[0]} is missing"
            raise InvalidInput("broken-trace", f"Line 1 of the trace: {said} (format {name}).")
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise InvalidInput("broken-trace", f"Line {rows.line_num} of the trace: {error}.") from error


def _read(
    lines: Iterable[str], name: str, convert: Callable[[int, Row], TraceJob | str | None]
) -> Iterator[tuple[int, TraceJob | str]]:
    """Yield what `convert` makes of each row; None leaves out a row that describes no job of its own."""
    for line, row in _rows(lines, name):
        try:
            if (found := convert(line, row)) is not None:
                yield line, found
        except (ValueError, OverflowError) as error:
            yield line, f"a value cannot be read: {error}"


def read_plain(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read Corral's own CSV: `submitted,seconds,devices`, and optionally `name,user,queue,priority`."""

    def convert(line: int, row: Row) -> TraceJob:
        return TraceJob(
            row.get("name") or f"job-{line - 1}",
            float(row["submitted"]),
            float(row["seconds"]),
            int(row["devices"]),
            row.get("user") or "trace",
            row.get("queue") or "default",
            int(row.get("priority") or 0),
        )

    return _read(lines, "plain", convert)


def read_muri(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read a trace of Muri's artifact (Zhao et al., SIGCOMM 2022); its times are in milliseconds."""

    def convert(line: int, row: Row) -> TraceJob:
        seconds = int(row["iterations"]) * float(row["iteration_time"]) / 1000
        return TraceJob(f"job-{row['job_id']}", float(row["submit_time"]) / 1000, seconds, int(row["num_gpu"]))

    return _read(lines, "muri", convert)


def read_philly(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read the Philly trace as adaptdl's artifact has it (Jeon et al., USENIX ATC 2019); a virtual cluster is a user."""

    def convert(line: int, row: Row) -> TraceJob:
        at = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp()
        return TraceJob(
            f"job-{line - 1}", at, float(row["duration"]), int(row["num_gpus"]), row.get("cluster") or "trace"
        )

    return _read(lines, "philly", convert)


def read_slurm(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read what Slurm's accounting prints: `sacct --parsable2 -o JobID,User,Submit,ElapsedRaw,AllocTRES`.

    Steps of jobs are left out. Times of submission have no zone and are taken as UTC, so they are right but for a change
    to or from summer time.
    """

    def convert(line: int, row: Row) -> TraceJob | str | None:
        if "." in row["JobID"]:
            return None
        if not row["AllocTRES"]:
            return "the job never started"
        devices = _gpus(row["AllocTRES"])
        if not devices:
            return "the job held no GPU"
        at = datetime.fromisoformat(row["Submit"]).replace(tzinfo=UTC).timestamp()
        return TraceJob(f"job-{row['JobID']}", at, float(row["ElapsedRaw"]), devices, row.get("User") or "trace")

    return _read(lines, "slurm", convert)


def _gpus(resources: str) -> int:
    """Return the GPUs of a list such as `cpu=8,gres/gpu=2,gres/gpu:a100=2`: the total, else the sum over models."""
    named = [each.partition("=") for each in resources.split(",")]
    counts = {name: count for name, _, count in named if name.startswith("gres/gpu")}
    if "gres/gpu" in counts:
        return int(counts["gres/gpu"])
    return sum(int(count) for name, count in counts.items() if name.startswith("gres/gpu:"))


READERS: Final[dict[str, Reader]] = {
    "plain": read_plain,
    "muri": read_muri,
    "philly": read_philly,
    "slurm": read_slurm,
}
"""The built-in readers by name."""
_COLUMNS: Final[dict[str, frozenset[str]]] = {
    "plain": frozenset({"submitted", "seconds", "devices"}),
    "muri": frozenset({"job_id", "num_gpu", "submit_time", "iterations", "iteration_time"}),
    "philly": frozenset({"timestamp", "duration", "num_gpus"}),
    "slurm": frozenset({"JobID", "Submit", "ElapsedRaw", "AllocTRES"}),
}
"""The columns that a format needs."""
_SEPARATORS: Final[dict[str, str]] = {"slurm": "|"}
"""What separates the columns of a format that has no commas; it knows no quotes either."""
