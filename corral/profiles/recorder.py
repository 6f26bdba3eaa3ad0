"""The last collective of a rank, read from the JSON of PyTorch's flight recorder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.profiles.stacks import printable

_MOST_ENTRIES: Final = 20_000
_MOST_NUMBER: Final = 2**53
"""No larger number is stored: readers of JSON may take it for a fraction."""


class Recorded(NamedTuple):
    """One collective that a rank began."""

    name: str
    number: int
    """Its number in its group, from 1."""
    group: str
    done: bool


def last_recorded(text: str) -> Recorded | None:
    """The last collective in a dump of the flight recorder; None if it has none.

    Raises InvalidInput `bad-recorder` for what is no such dump.
    """
    try:
        entries = json.loads(text)["entries"][-_MOST_ENTRIES:]
        last = max(entries, key=lambda each: int(each["record_id"]), default=None)
        return None if last is None else _recorded(last)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise InvalidInput("bad-recorder", "The flight recorder's dump is not a list of collectives.") from None


def _recorded(entry: Mapping[str, Any]) -> Recorded:
    group = entry["process_group"]
    number = int(entry["p2p_seq_id"] if entry.get("is_p2p") else entry["collective_seq_id"])
    if number >= _MOST_NUMBER:
        raise ValueError(number)
    return Recorded(
        printable(str(entry["profiling_name"]).rpartition(":")[2]),
        max(0, number),
        printable(str(group[0] if isinstance(group, list) and group else group)),
        entry.get("state") == "completed" or bool(entry.get("retired")),
    )
