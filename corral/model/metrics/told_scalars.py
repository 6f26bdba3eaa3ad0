"""Scalars of event files that a task tells the server, as front gives them to control."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.kernel.ids import AttemptId

MOST_TOLD: Final = 1000
"""Values of one report."""
LONGEST_TAG: Final = 100
"""Characters of the name of a curve."""
LONGEST_RUN: Final = 250
"""Characters of the folder of a file, with the name of the folder that the job names before it."""


class ToldScalar(msgspec.Struct, frozen=True, array_like=True):
    """A value of a curve, written `age` seconds before it was told."""

    run: str
    tag: str
    age: float
    value: float


class ToldScalars(msgspec.Struct, frozen=True):
    """What one attempt of a task told."""

    attempt: AttemptId
    scalars: list[ToldScalar]
