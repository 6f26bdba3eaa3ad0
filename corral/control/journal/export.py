"""Copy a part of a journal to one file from which it can be replayed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import BinaryIO

from corral.control.journal.blocks import BlockWriter
from corral.control.journal.records import beginning_at, time_of


@dataclass
class Exported:
    """What was copied; times are in seconds since 1970."""

    steps: int = 0
    first_at: float = 0.0
    last_at: float = 0.0


def export(records: Iterable[bytes], target: BinaryIO, *, since: float = -inf, until: float = inf) -> Exported:
    """Copy what happened from `since` to `until`, from the last beginning or checkpoint before that on.

    If all beginnings are later, it is copied from the first one on; without one nothing is copied.
    """
    found: Exported | None = None
    writer = BlockWriter(target)
    for record in records:
        begun = beginning_at(record)
        if begun is not None and (found is None or begun <= since):
            found, writer = Exported(), _anew(target)
        if found is None:
            continue
        at = time_of(record)
        if at > until:
            break
        writer.add(record)
        if begun is None:
            found.first_at = found.first_at if found.steps else at
            found.last_at, found.steps = at, found.steps + 1
    writer.close()
    return found or Exported()


def _anew(target: BinaryIO) -> BlockWriter:
    target.seek(0)
    target.truncate()
    return BlockWriter(target)
