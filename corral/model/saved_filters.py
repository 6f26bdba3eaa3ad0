"""Filters of the list of jobs that a person saved under a name, in the list's own words."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from corral.model.records import ENDED_PHASES, JOB_ORDERS, LIVE_PHASES, Phase, Record, one_of

MOST_FILTERS: Final = 50
"""Filters of one person at most."""
LONGEST_NAME: Final = 60
GROUPS: Final = ("user", "sweep")
PRIORITIES: Final = ("crit", "prod", "test", "oppo")
_Word = Annotated[str, msgspec.Meta(max_length=200)]


class SavedFilter(Record, frozen=True):
    """A filter of the list of jobs; a field that is empty filters nothing."""

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    state: Annotated[tuple[Phase, ...], msgspec.Meta(max_length=len(LIVE_PHASES) + len(ENDED_PHASES))] = ()
    user: _Word = ""
    queue: _Word = ""
    q: _Word = ""
    """A part of the name, or the beginning of the id."""
    tag: _Word = ""
    order: Annotated[str, one_of("", *JOB_ORDERS)] = ""
    group: Annotated[str, one_of("", *GROUPS)] = ""
    """What the portal's list gathers jobs by."""
    priority: Annotated[str, one_of("", *PRIORITIES)] = ""
    """A priority class, with those above it; `oppo` is what is below 0."""
