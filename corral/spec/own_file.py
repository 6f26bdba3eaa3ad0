"""The text of a job file as its author wrote it, with placeholders for its secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from corral.spec.errors import SpecError

MASK: Final = "******"
"""Text that replaces a secret."""
NO_SECRET: Final = (
    f"{MASK} stands for a secret that is not known here; write the secret itself, or name your own job that the file came "
    "from (`corral submit FILE --from JOB`)"
)
"""Message for a placeholder whose secret is unknown."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """The text of a job file as written, with placeholders for its secrets."""

    text: str
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The secret of each placeholder, keyed as its dialect names the place."""


def no_secret_because(error: SpecError, why: str) -> SpecError:
    """The error with the reason why the named job has no secret for its placeholders."""
    told = NO_SECRET.replace(" here;", f" here: {why};")
    return SpecError([replace(each, message=told) if each.message == NO_SECRET else each for each in error.problems])
