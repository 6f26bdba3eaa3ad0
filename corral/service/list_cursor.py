"""Cursors of lists that are built anew for each page: positions in lists, names in folders."""

from __future__ import annotations

import base64

from corral.model.page_bounds import unknown_cursor


def page_start(after: str, length: int) -> int:
    """The position at which a page begins.

    Raises InvalidInput `bad-cursor` for a cursor that no list returned.
    """
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise unknown_cursor()
    return min(int(after or 0), length)


def name_cursor(name: str) -> str:
    """A cursor for the place after a file's name, which may have any characters, and bytes that are not UTF-8."""
    return base64.urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def name_at(cursor: str) -> str:
    """The name in a cursor of `name_cursor`.

    Raises InvalidInput `bad-cursor` for a cursor that no list returned.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return data.decode("utf-8", "surrogatepass")
    except ValueError:
        raise unknown_cursor() from None
