"""Why: each state says its invariant and its exits; the launcher's tables are compared with these words by a test.

Source: FrameworkController's state machine (attempt instance = one try of a job or task).
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands."""

    CREATION_PENDING = "creation-pending"
    CREATION_REQUESTED = "creation-requested"
    PREPARING = "preparing"
    RUNNING = "running"
    DELETION_PENDING = "deletion-pending"
    DELETION_REQUESTED = "deletion-requested"
    DELETING = "deleting"
    ATTEMPT_COMPLETED = "attempt-completed"
    COMPLETED = "completed"


class TaskState(StrEnum):
    """Where a task of the current job attempt stands."""

    CREATION_PENDING = "creation-pending"
    CREATION_REQUESTED = "creation-requested"
    PREPARING = "preparing"
    RUNNING = "running"
    DELETION_PENDING = "deletion-pending"
    DELETION_REQUESTED = "deletion-requested"
    DELETING = "deleting"
    ATTEMPT_COMPLETED = "attempt-completed"
    COMPLETED = "completed"
