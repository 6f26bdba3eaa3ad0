"""Paging by key instead of offset, so that a list that grows while it is read shows every item exactly once."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, or_

from corral.model.page_bounds import MAX_CURSOR, MAX_PAGE, unknown_cursor

Key = tuple[Any, ...]


def bounded(limit: int) -> int:
    """`limit`, at least 1 and at most `MAX_PAGE`."""
    return max(1, min(limit, MAX_PAGE))


def write_cursor(key: Key) -> str:
    """Encode a key as the cursor that continues after its item."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def read_cursor(text: str, kinds: tuple[type, ...]) -> Key | None:
    """Decode the key in a cursor; None for "".

    Raises InvalidInput when the text was not made by `write_cursor` for keys of these kinds.
    """
    if not text:
        return None
    try:
        if len(text) > MAX_CURSOR:
            raise ValueError
        key = msgspec.json.decode(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
        if not isinstance(key, list) or len(key) != len(kinds):
            raise ValueError
        return tuple(_of_kind(part, kind) for part, kind in zip(key, kinds, strict=True))
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise unknown_cursor() from None


def _of_kind(part: Any, kind: type[Any]) -> Any:
    if kind is float and type(part) is int:
        return float(part)
    if type(part) is not kind or (isinstance(part, int) and abs(part) > 2**62):
        raise ValueError
    return part


def after(columns: list[tuple[ColumnElement[Any], bool]], key: Key) -> ColumnElement[bool]:
    """The condition for rows after `key` in the order of `columns` (column, descending)."""
    clauses = []
    for position, (column, descending) in enumerate(columns):
        equal = [earlier == key[at] for at, (earlier, _) in enumerate(columns[:position])]
        clauses.append(and_(*equal, column < key[position] if descending else column > key[position]))
    return or_(*clauses)
