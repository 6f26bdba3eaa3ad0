"""Why: retry and completion rules read only these four facts of an ended attempt, wherever it ran.

Source: FrameworkController's CompletionStatus (code, phrase, type, diagnostics, trigger).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ExitClass(StrEnum):
    """What an exit says about trying again."""

    SUCCEEDED = "succeeded"
    """The attempt did what it was for."""
    TRANSIENT = "transient"
    """A fault outside the job that is expected to pass."""
    CONFLICT = "conflict"
    """A transient fault caused by contention: trying again at once would meet it again."""
    PERMANENT = "permanent"
    """Trying again is expected to fail in the same way."""
    UNKNOWN = "unknown"
    """Nothing is known; the retry budget decides."""


class Trigger(msgspec.Struct, frozen=True):
    """The task whose end ended the whole attempt of its job, and why that counted."""

    message: str
    role: str = ""
    index: int = -1


class Completion(msgspec.Struct, frozen=True):
    """How an attempt (of a task or of a job) ended."""

    code: int
    """0 succeeded; positive: the program's own; negative: Corral's (OpenPAI's table)."""
    phrase: str
    exit_class: ExitClass
    diagnostics: str = ""
    trigger: Trigger | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the attempt did what it was for."""
        return self.exit_class is ExitClass.SUCCEEDED
