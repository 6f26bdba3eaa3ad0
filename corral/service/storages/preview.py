"""Previews of files: from a file's first bytes, its text or its table, both bounded. Pure functions without I/O."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from corral.model.outputs import FilePreview
from corral.service.storages.pictures import picture_type

READ: Final = 256 * 1024
"""Bytes of a file that a preview reads."""
MOST_ROWS: Final = 200
MOST_COLUMNS: Final = 40
LONGEST_CELL: Final = 200
"""Characters of one cell."""
MOST_LINES: Final = 2_000
LONGEST_LINE: Final = 2_000
"""Characters of one line of text."""
_SEPARATORS: Final = {".csv": ",", ".tsv": "\t"}
_JSON_LINES: Final = (".jsonl", ".ndjson")
_SAMPLE: Final = 4096


def preview_of(name: str, data: bytes, size: int) -> FilePreview:
    """The preview of a file by its name, its first bytes and its whole size."""
    if picture_type(data):
        return FilePreview("picture", size)
    if b"\0" in data or _is_binary(data):
        return FilePreview("other", size)
    cut = len(data) < size
    text = data.decode("utf-8-sig", "replace")
    lowered = name.lower()
    for ending, separator in _SEPARATORS.items():
        if lowered.endswith(ending) and (found := _table(text, separator, size, cut)):
            return found
    if lowered.endswith(_JSON_LINES) and (found := _json_lines(text, size, cut)):
        return found
    return _plain(text, size, cut)


def _is_binary(data: bytes) -> bool:
    """Whether the bytes are no text: more than a tenth of their beginning is not UTF-8."""
    sample = data[:_SAMPLE].decode("utf-8", "replace")
    return sample.count("\ufffd") * 10 > len(sample)


def _plain(text: str, size: int, cut: bool) -> FilePreview:
    lines = text.split("\n")
    shown = lines[:MOST_LINES]
    cut = cut or len(shown) < len(lines) or any(len(line) > LONGEST_LINE for line in shown)
    return FilePreview("text", size, text="\n".join(_clipped(line, LONGEST_LINE) for line in shown), cut=cut)


def _table(text: str, separator: str, size: int, cut: bool) -> FilePreview | None:
    """The rows of separated values; None where they are none, such as an endless line or a quote that never ends."""
    whole = text[: text.rfind("\n") + 1] if cut else text  # the last line is not whole
    if not whole:
        return None
    reader = csv.reader(io.StringIO(whole, newline=""), delimiter=separator, strict=True)
    try:
        rows = list(itertools.islice(reader, MOST_ROWS + 2))
    except csv.Error:
        return None
    if not rows:
        return None
    return _of_rows(rows[0], rows[1:], size, cut)


def _json_lines(text: str, size: int, cut: bool) -> FilePreview | None:
    """The objects of JSON lines as rows of their fields; None where a line is no JSON object."""
    whole = text[: text.rfind("\n") + 1] if cut else text
    lines = [line for line in itertools.islice(io.StringIO(whole), MOST_ROWS + 2) if line.strip()]
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        found.append(value)
    if not found:
        return None
    columns = list(dict.fromkeys(itertools.chain.from_iterable(found)))
    return _of_rows(columns, [[_cell(each.get(name)) for name in columns[:MOST_COLUMNS]] for each in found], size, cut)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _of_rows(head: list[str], rows: list[list[str]], size: int, cut: bool) -> FilePreview:
    shown = rows[:MOST_ROWS]
    widest = max(len(each) for each in (head, *shown))
    cells = itertools.chain(head[:MOST_COLUMNS], *(row[:MOST_COLUMNS] for row in shown))
    cut = cut or len(shown) < len(rows) or widest > MOST_COLUMNS or any(len(cell) > LONGEST_CELL for cell in cells)
    return FilePreview("table", size, columns=_row(head), rows=tuple(_row(each) for each in shown), cut=cut)


def _row(cells: Iterable[str]) -> tuple[str, ...]:
    return tuple(_clipped(cell, LONGEST_CELL) for cell in itertools.islice(cells, MOST_COLUMNS))


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
