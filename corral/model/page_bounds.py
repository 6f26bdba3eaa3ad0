"""The bounds of a page of a list and of its cursor, for the routes, the service and the store alike."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import InvalidInput

MAX_PAGE: Final = 1000
"""The most items of one page."""
MAX_CURSOR: Final = 1000
"""The most characters of a cursor. One that holds the longest name of a document has about 350."""


def unknown_cursor() -> InvalidInput:
    """The refusal of a cursor that no list returned."""
    return InvalidInput("bad-cursor", "The value of `after` was not given by this list; begin without it.")
