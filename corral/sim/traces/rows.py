"""Lines of traces that are tables: under a header that names the columns, or fields between tabs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from corral.sim.trace import TraceProblem

Row = Mapping[str, str]
Found = TypeVar("Found")


class Columns(NamedTuple):
    """The header of a format."""

    format: str
    needed: frozenset[str]
    separator: str = ","
    """Between two columns; a format with another separator than the comma knows no quotes either."""

    def fit(self, header: str) -> bool:
        """Return whether a header line has the columns that the format needs."""
        return self.needed <= {column.strip() for column in header.split(self.separator)}


def read_rows(
    lines: Iterable[str], columns: Columns, convert: Callable[[int, Row], Found | str | None]
) -> Iterator[tuple[int, Found | str]]:
    """Yield the line of each row with what `convert` makes of it: a text says what is wrong, None leaves the row out.

    A ValueError of `convert` is a value that cannot be read. Raises TraceProblem if a column is missing.
    """
    for line, row in _rows(lines, columns):
        try:
            if (found := convert(line, row)) is not None:
                yield line, found
        except (ValueError, OverflowError) as error:
            yield line, f"a value cannot be read: {error}"


def _rows(lines: Iterable[str], columns: Columns) -> Iterator[tuple[int, Row]]:
    if columns.separator == ",":
        rows = csv.DictReader(lines, restval="")
    else:
        rows = csv.DictReader(lines, restval="", delimiter=columns.separator, quoting=csv.QUOTE_NONE)
    try:
        if missing := sorted(columns.needed - set(rows.fieldnames or ())):
            raise TraceProblem(1, f"the column {missing[0]} is missing (format {columns.format})")
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise TraceProblem(rows.line_num, str(error)) from error


def split_tabs(lines: Iterable[str], count: int) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the number of each line, from 1, with its `count` fields between tabs, or with what is wrong with it."""
    for line, text in enumerate(lines, 1):
        fields = text.rstrip("\r\n").split("\t")
        yield line, fields if len(fields) == count else f"it has {len(fields)} fields instead of {count}"


def without_problems(found: Iterable[tuple[int, Found | str]]) -> Iterator[tuple[int, Found]]:
    """Yield what was found on each line. Raises TraceProblem for the first one that is broken."""
    for line, each in found:
        if isinstance(each, str):
            raise TraceProblem(line, each)
        yield line, each
