"""A what-if question that is asked to be answered later: its progress, its state, and why it was refused."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from corral.model.records import Record, one_of
from corral.model.views import ProblemView
from corral.model.what_if import WhatIfAnswer

WAITING, PREPARING, READING, BEFORE, AFTER, COMPARING = (
    "waiting",
    "preparing",
    "reading",
    "before",
    "after",
    "comparing",
)
RUNNING, DONE, FAILED, CANCELLED = "running", "done", "failed", "cancelled"
_WORDS: Final = {
    WAITING: "waits for its turn",
    PREPARING: "prepares the changes",
    READING: "reads the journal",
    BEFORE: "plays things as they are",
    AFTER: "plays the changes",
    COMPARING: "compares the courses",
}


class WhatIfProgress(Record, frozen=True):
    """How far a question is."""

    fraction: float = 0.0
    """Of the courses that are played, from 0 to 1; with a goal, of the most attempts that its search may take."""
    stage: Annotated[str, one_of(WAITING, PREPARING, READING, BEFORE, AFTER, COMPARING)] = PREPARING
    course: int = 0
    """The number of the course that is played, from 1; 0 before the first one."""
    courses: int = 0
    """How many courses are played, each before and after the changes."""
    attempt: int = 0
    """The number of the value that the search for a goal tries, from 1; 0 without a goal."""
    most_attempts: int = 0
    trying: str = ""
    """The value that is tried, in words."""
    says: str = ""
    """All of it as a sentence."""


class WhatIfRefusal(Record, frozen=True):
    """Why a question has no answer: the error that it would have had at once."""

    status: int
    """The HTTP status of the error."""
    code: str
    message: str
    problems: tuple[ProblemView, ...] = ()
    """The problems of its documents."""


class WhatIfStatus(Record, frozen=True):
    """A question that is answered later."""

    id: str
    state: Annotated[str, one_of(RUNNING, DONE, FAILED, CANCELLED)]
    asked_at: str
    progress: WhatIfProgress = WhatIfProgress()
    answer: WhatIfAnswer | None = None
    """Once it is done; lists and events have none."""
    error: WhatIfRefusal | None = None
    """Once it has failed."""


class WhatIfQuestions(Record, frozen=True):
    """The caller's own questions that this server keeps, oldest first."""

    items: tuple[WhatIfStatus, ...] = ()


def in_words(progress: WhatIfProgress) -> WhatIfProgress:
    """The progress with its sentence."""
    stage = _WORDS[progress.stage]
    if progress.courses > 1 and progress.course:
        stage += f", course {progress.course} of {progress.courses}"
    if progress.attempt:
        of = f"attempt {progress.attempt} of at most {progress.most_attempts}"
        stage = f"tries {progress.trying} ({of}), {stage}"
    return msgspec.structs.replace(progress, says=f"{stage[0].upper()}{stage[1:]}.")
