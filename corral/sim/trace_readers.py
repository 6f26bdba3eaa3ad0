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
    columns = {name.strip() for name in header.split(",")}
    return next((name for name, wanted in _COLUMNS.items() if wanted <= columns), None)


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows with their line numbers; raises InvalidInput if a column is missing."""
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
    lines: Iterable[str], name: str, convert: Callable[[int, Row], TraceJob]
) -> Iterator[tuple[int, TraceJob | str]]:
    for line, row in _rows(lines, name):
        try:
            yield line, convert(line, row)
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


READERS: Final[dict[str, Reader]] = {"plain": read_plain, "muri": read_muri, "philly": read_philly}
"""The built-in readers by name."""
_COLUMNS: Final[dict[str, frozenset[str]]] = {
    "plain": frozenset({"submitted", "seconds", "devices"}),
    "muri": frozenset({"job_id", "num_gpu", "submit_time", "iterations", "iteration_time"}),
    "philly": frozenset({"timestamp", "duration", "num_gpus"}),
}
"""The columns that a format needs."""
