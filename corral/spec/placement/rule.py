"""What each placement rule tells of itself: why a gang waits for it, and the weaker rules that may let the gang start.

The scheduler computes the figures and tries the weaker rules; the words are the rule's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

Ask = TypeVar("Ask")


class Unmet(NamedTuple):
    """A rule that no place meets: the code, the sentence and the figures of a reason."""

    code: str
    message: str
    counts: Mapping[str, int]


class Weaker(NamedTuple, Generic[Ask]):
    """A weaker form of a rule, as a change of one field of the document."""

    size: float
    """How much the change asks of the user; the smallest changes are proposed first."""
    field: str
    """Its path below the rule's own field in the document."""
    before: str | int
    after: str | int
    """What to write instead; "" leaves the field out."""
    condition: str
    """The end of the sentence that begins "It would start now"."""
    ask: Ask
    """The weaker request."""


Series = Iterator[Sequence[Weaker[Ask]]]
"""Series of weaker forms; each form of a series is weaker than the one before."""
