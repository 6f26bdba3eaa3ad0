"""How attempts end: the facts that retry and completion rules read, on every engine.

Source: FrameworkController's CompletionStatus (code, phrase, type, diagnostics, trigger).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ExitClass(StrEnum):
    """The retry class of an exit."""

    SUCCEEDED = "succeeded"
    """The attempt succeeded."""
    TRANSIENT = "transient"
    """A fault outside the job that is expected to pass."""
    CONFLICT = "conflict"
    """A transient fault caused by contention; an immediate retry would meet it again."""
    PERMANENT = "permanent"
    """A retry is expected to fail in the same way."""
    UNKNOWN = "unknown"
    """The cause is not known; the retry budget decides."""


class Trigger(msgspec.Struct, frozen=True, gc=False):
    """The task whose end completed the whole job attempt, and the policy that applied."""

    message: str
    role: str = ""
    index: int = -1


class Completion(msgspec.Struct, frozen=True, gc=False):
    """How an attempt (of a task or of a job) ended."""

    code: int
    """0: success; positive: the program's exit code; negative: Corral's."""
    phrase: str
    exit_class: ExitClass
    diagnostics: str = ""
    trigger: Trigger | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the attempt succeeded."""
        return self.exit_class is ExitClass.SUCCEEDED
