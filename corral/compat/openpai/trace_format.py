"""Jobs of OpenPAI, as its REST API lists them: the answer of `GET /api/v2/jobs` (rest-server, 1.0 and later)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from corral.sim.trace import TraceJob, TraceProblem
from corral.sim.traces.formats import Format
from corral.spec.priority import PRIORITY_CLASSES, priority_number

MOST_CHARACTERS: Final = 256 << 20
"""The most characters of a file, which is often one line: some 400,000 jobs."""
_OPEN: Final = re.compile(r'\s*(?:\{\s*(?:"totalCount"\s*:\s*[0-9]{1,18}\s*,\s*)?"data"\s*:\s*)?\[\s*')
"""The begin of an answer: a list, or with `withTotalCount=true` an object that has the list as `data`."""
_NEXT: Final = re.compile(r"\s*,\s*")
_CLOSE: Final = re.compile(r'\s*\](?:\s*(?:,\s*"totalCount"\s*:\s*[0-9]{1,18}\s*)?\})?\s*')
_DECODER: Final = json.JSONDecoder()


def fits(first: str) -> bool:
    """Return whether the first line of a trace begins an answer."""
    return first.lstrip()[:1] in ("[", "{")


def read_openpai(lines: Iterable[str]) -> Iterator[tuple[int, TraceJob | str]]:
    """Read one answer, or several one after another: pages of a list.

    A job runs from its first launch to its end, retries included. Its virtual cluster is its queue. Its priority class is
    the number that Corral gives the class, and a job without a class has that of `test`. Raises TraceProblem where the text
    is no JSON or no list of jobs.
    """
    text, line, seen = _joined(lines), 1, 0
    for number, (at, value) in enumerate(_listed(text), 1):
        line, seen = line + text.count("\n", seen, at), at
        found = _job(value) if isinstance(value, dict) else "it is no object"
        yield line, f"job {number} of the list: {found}" if isinstance(found, str) else found


def _joined(lines: Iterable[str]) -> str:
    parts, size = [], 0
    for line, part in enumerate(lines, 1):
        size += len(part)
        if size > MOST_CHARACTERS:
            raise TraceProblem(line, f"an export of more than {MOST_CHARACTERS >> 20} MiB is not read; split it")
        parts.append(part)
    return "".join(parts)


def _listed(text: str) -> Iterator[tuple[int, Any]]:
    """Yield each element of the lists of a text, with the place where it begins."""
    at = 0
    while at < len(text):
        if (opened := _OPEN.match(text, at)) is None:
            raise _broken(text, at, "here no list of jobs begins")
        at = opened.end()
        closed = _CLOSE.match(text, at)
        while closed is None:
            try:
                value, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                raise _broken(text, at, "here begins no JSON value that can be read") from None
            yield at, value
            if (closed := _CLOSE.match(text, end)) is None:
                if (comma := _NEXT.match(text, end)) is None:
                    raise _broken(text, end, "a comma or the end of the list is missing")
                at = comma.end()
        at = closed.end()


def _broken(text: str, at: int, problem: str) -> TraceProblem:
    column = at - text.rfind("\n", 0, at)
    return TraceProblem(text.count("\n", 0, at) + 1, f"character {column}: {problem}")


def _job(listed: dict[str, Any]) -> TraceJob | str:
    times = [_milliseconds(listed, name) for name in ("submissionTime", "launchedTime", "completedTime")]
    submitted, launched, completed = (0.0 if isinstance(each, str) else each for each in times)
    if problem := next((each for each in times if isinstance(each, str)), ""):
        return problem
    if not launched:
        return "it never started"
    if not completed:
        return "it has not ended"
    gpus = _whole(listed.get("totalGpuNumber"))
    if gpus is None:
        return "totalGpuNumber is missing or no whole number"
    if not gpus:
        return "it held no GPU"
    words = {name: listed.get(name) or instead for name, instead in _TEXTS.items()}
    if strange := next((name for name, each in words.items() if not isinstance(each, str)), ""):
        return f"{strange} is no text"
    if words["jobPriority"] not in PRIORITY_CLASSES:
        return f"jobPriority is none of {', '.join(PRIORITY_CLASSES)}"
    return TraceJob(
        f"{words['username']}~{words['name']}",
        submitted / 1000,
        (completed - launched) / 1000,
        gpus,
        words["username"],
        words["virtualCluster"],
        priority_number(words["jobPriority"]),
    )


_TEXTS: Final = {"name": "job", "username": "trace", "virtualCluster": "default", "jobPriority": "test"}
"""Fields that are texts, and what counts where one is missing or null."""


def _whole(value: Any) -> int | None:
    """Return a number of GPUs; early servers answer it as text."""
    try:
        return int(value) if isinstance(value, (int, str)) else None
    except ValueError:
        return None


def _milliseconds(listed: dict[str, Any], name: str) -> float | str:
    """Return a time since 1970; 0 where it is null, and a text where it is missing or no number."""
    value = listed.get(name, "")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{name} is missing or no number"
    try:
        return float(value)
    except OverflowError:
        return f"{name} is out of range"


FORMAT: Final = Format(read_openpai, fits, most_characters=MOST_CHARACTERS)
"""The format as the simulator finds it."""
