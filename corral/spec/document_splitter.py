"""Split a file of several documents into jobs, configuration and objects of other programs.

People keep a Framework beside the Service that names it and the PriorityClass that it uses. Corral's own documents are
read at their lines of the whole file. All others are named in the answer and left to `kubectl apply`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Any, Final, NamedTuple

import yaml

from corral.spec.dialects.registry import dialects
from corral.spec.errors import Problem, SpecError, shorten
from corral.spec.hived.configuration import is_hived
from corral.spec.job import API_VERSION, KIND
from corral.spec.yaml_source import Source, parse_sources

_SEVERAL: Final = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_GROUP: Final = f"{API_VERSION.partition('/')[0]}/"
_MOST_NAMED: Final = 10
"""Maximum documents named in one message."""


class Sort(StrEnum):
    """What a document is for: a job, configuration of the cluster, or another program."""

    JOB = "job"
    CONFIGURATION = "configuration"
    OTHER = "other"


class Part(NamedTuple):
    """One document of a file."""

    sort: Sort
    name: str
    line: int
    begin: int
    """The number of lines of the file before it."""
    body: str

    @property
    def text(self) -> str:
        """The document alone, padded with empty lines so that its line numbers are those of the whole file."""
        return "\n" * self.begin + self.body

    def __str__(self) -> str:
        return f"{self.name} (line {self.line})"


def parts_of(text: str | bytes, filename: str, text_under: frozenset[str] = frozenset()) -> list[Part]:
    """The documents of a text that has several; [] for a text with one document.

    Raises SpecError when one is not well formed.
    """
    told = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).removeprefix("\ufeff")
    if not _SEVERAL.search(told):
        return []
    sources = parse_sources(text, filename, text_under)
    if len(sources) < 2:
        return []
    starts = _starts(told)
    ends = [*(begin for begin, _ in starts[1:]), len(told)]
    found = []
    for source, (begin, line), end in zip(sources, starts, ends, strict=True):
        if source.data is not None:
            mark = source.values.get((), (line + 1, 1))
            found.append(Part(sort_of(source.data), _name(source), mark[0], line, told[begin:end]))
    return found


def joined(parts: Sequence[Part]) -> str:
    """These documents alone, padded so that their line numbers are those of the whole file."""
    text, lines = "", 0
    for part in parts:
        text += "\n" * (part.begin - lines) + part.body
        lines = part.begin + part.body.count("\n")
    return text


def sort_of(data: Any) -> Sort:
    """The sort of a document; one without a kind is a job.

    A wrong kind of Corral's API group counts as configuration, whose reader reports it.
    """
    if not isinstance(data, dict):
        return Sort.JOB
    if is_hived(data):
        return Sort.CONFIGURATION
    kind, version = data.get("kind"), data.get("apiVersion")
    kinds, groups = _job_kinds()
    if not isinstance(kind, str) or kind in kinds:
        return Sort.JOB
    if not isinstance(version, str) or version.startswith(_GROUP):
        return Sort.CONFIGURATION
    return Sort.JOB if version.startswith(groups) else Sort.OTHER


@cache
def _job_kinds() -> tuple[frozenset[str], tuple[str, ...]]:
    """The kinds of job documents, and the API groups of those of dialects."""
    foreign = [kind for each in dialects() for kind in each.kinds]
    groups = tuple(f"{each.api_version.partition('/')[0]}/" for each in foreign)
    return frozenset({KIND, *(each.kind for each in foreign)}), groups


def the_job(text: str | bytes, filename: str, text_under: frozenset[str]) -> tuple[str | bytes, tuple[str, ...]]:
    """The one job of a text, and the documents of other programs beside it, by name and line.

    Raises SpecError for a text of several documents with no job, several jobs, or configuration beside the job.
    """
    parts = parts_of(text, filename, text_under)
    if not parts:
        return text, ()
    jobs = [part for part in parts if part.sort is Sort.JOB]
    others = tuple(str(part) for part in parts if part.sort is Sort.OTHER)
    configuration = [part for part in parts if part.sort is Sort.CONFIGURATION]
    if len(jobs) == 1 and not configuration:
        return jobs[0].text, others
    if not jobs:
        why = f"{_count(parts)}, and none is a job: {listed(parts)}"
        at = parts[0]
    elif len(jobs) > 1:
        why = f"{_count(parts)}, {len(jobs)} of them jobs ({listed(jobs)}), and one request takes one job, so nothing was "
        why += "taken; `corral submit FILE` submits each, or send them one by one"
        at = jobs[1]
    else:
        why = (
            f"configuration stands beside the job ({listed(configuration)}), so nothing was taken; `corral apply FILE` "
        )
        why += "takes both, or send the job alone"
        at = configuration[0]
    raise SpecError([Problem(why, (), at.line, 1, filename)])


def listed(parts: Sequence[object]) -> str:
    """The documents by name and line; at most the first 10."""
    left = len(parts) - _MOST_NAMED
    return ", ".join(map(str, parts[:_MOST_NAMED])) + (f" and {left} more" if left > 0 else "")


def left_out(others: Sequence[object]) -> str:
    """The message about documents of other programs that were left out."""
    what, takes = ("is no document", "it") if len(others) == 1 else ("are no documents", "them")
    return f"{listed(others)} {what} of Corral's and left out; kubectl apply takes {takes}."


def _count(parts: Sequence[Part]) -> str:
    return f"the file holds {len(parts)} document{'' if len(parts) == 1 else 's'}"


def _starts(text: str) -> list[tuple[int, int]]:
    """Offset and line of each document's start, counted from 0; the first includes the text before it."""
    events = yaml.parse(text, Loader=yaml.CSafeLoader)
    marks: list[Any] = [event.start_mark for event in events if isinstance(event, yaml.DocumentStartEvent)]
    return [(0, 0), *((mark.index, mark.line) for mark in marks[1:])]


def _name(source: Source) -> str:
    """KIND/NAME, as far as the document gives them."""
    data = source.data
    if not isinstance(data, dict):
        return "a document"
    metadata = data.get("metadata")
    name = data.get("name") or data.get("jobName") or (metadata.get("name") if isinstance(metadata, dict) else None)
    kind = data.get("kind", "HiveD's configuration" if is_hived(data) else "job")
    return shorten(f"{kind}/{name}" if isinstance(name, str) else str(kind))
