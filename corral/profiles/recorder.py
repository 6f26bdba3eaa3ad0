"""The last collective of a rank, read from a dump of PyTorch's flight recorder: JSON, or NCCL's pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.profiles.plain_pickle import read_plain_pickle
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
    """The last collective in a dump in JSON; None if it has none.

    Raises InvalidInput `bad-recorder` for what is no such dump.
    """
    try:
        return _last(json.loads(text))
    except (ValueError, RecursionError):
        raise _refused() from None


def last_pickled(data: bytes) -> Recorded | None:
    """The last collective in a dump of NCCL's recorder, which is a pickle; nothing in it is called.

    Raises InvalidInput `bad-recorder` for what is no such dump.
    """
    try:
        return _last(read_plain_pickle(data))
    except ValueError:
        raise _refused() from None


def _last(dump: Any) -> Recorded | None:
    """Raises ValueError for what is no dump."""
    try:
        entries = dump["entries"][-_MOST_ENTRIES:]
        last = max(entries, key=lambda each: int(each["record_id"]), default=None)
        return None if last is None else _recorded(last)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError("no list of collectives") from error


def _refused() -> InvalidInput:
    return InvalidInput("bad-recorder", "The flight recorder's dump is not a list of collectives.")


def _recorded(entry: Mapping[str, Any]) -> Recorded:
    group = entry["process_group"]
    number = int(entry["p2p_seq_id"] if entry.get("is_p2p") else entry["collective_seq_id"])
    if number >= _MOST_NUMBER:
        raise ValueError(number)
    return Recorded(
        printable(_word(entry["profiling_name"]).rpartition(":")[2]),
        max(0, number),
        printable(_word(group[0] if isinstance(group, (list, tuple)) and group else group)),
        entry.get("state") == "completed" or entry.get("retired") is True,
    )


def _word(value: Any) -> str:
    """Raises TypeError for what is no string: the text of nested lists may be longer than all memory."""
    if not isinstance(value, str):
        raise TypeError(value.__class__)
    return value
