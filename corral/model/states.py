"""Why: each state says its invariant and its exits; the launcher's tables are compared with these words by a test.

Source: FrameworkController's state machine. An attempt is one try of a job or of a task. A task attempt has at most one
*instance*: the process, pod or container that the engine runs. *Pending* is what is decided and stored, *requested* is
what the engine was told, the others are what was seen: a call is never taken for its effect.
A task that a scale-down named leaves the machine from ATTEMPT_COMPLETED or COMPLETED: it is removed.
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. The ground truth of a job is its current attempt and the tasks of it."""

    CREATION_PENDING = "creation-pending"
    """Nothing was asked for: the job is held (`hold` says by what), no task has a placement or an instance.

    -> CREATION_REQUESTED | ATTEMPT_COMPLETED
    """
    CREATION_REQUESTED = "creation-requested"
    """The gang waits in the scheduler's queue; no task holds a placement.

    -> PREPARING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    PREPARING = "preparing"
    """At least one task was placed and its start requested; none of this attempt was seen running.

    -> CREATION_REQUESTED | RUNNING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    RUNNING = "running"
    """A task of this attempt was seen running, and no completion policy was met yet.

    -> DELETION_PENDING | ATTEMPT_COMPLETED
    """
    DELETION_PENDING = "deletion-pending"
    """How the attempt ends is stored and never changes; every instance left has a stored stop.

    -> DELETING | ATTEMPT_COMPLETED
    """
    DELETING = "deleting"
    """An instance has ended; at least one is not known to have.

    -> ATTEMPT_COMPLETED
    """
    ATTEMPT_COMPLETED = "attempt-completed"
    """All tasks are completed and hold nothing; the attempt is to be tried again at `wake_at`.

    -> CREATION_PENDING | COMPLETED
    """
    COMPLETED = "completed"
    """All tasks are completed, `completion` is final, and only a restart leads on.

    -> CREATION_PENDING
    """


class TaskState(StrEnum):
    """Where a task of the current job attempt stands. The ground truth of a task is its current attempt's instance."""

    CREATION_PENDING = "creation-pending"
    """The task exists on paper: no instance, no placement, not in the scheduler's queue (yet, or not any more).

    -> CREATION_REQUESTED | PREPARING | ATTEMPT_COMPLETED
    """
    CREATION_REQUESTED = "creation-requested"
    """In the scheduler's queue; no instance, no placement.

    -> CREATION_PENDING | PREPARING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    PREPARING = "preparing"
    """Placed, the start is stored; an instance may or may not exist, none was seen.

    -> CREATION_REQUESTED | RUNNING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    RUNNING = "running"
    """The instance was seen running; its end was not.

    -> DELETION_PENDING | ATTEMPT_COMPLETED
    """
    DELETION_PENDING = "deletion-pending"
    """The end is wanted: `completion` and the stop are stored; an instance may exist.

    -> ATTEMPT_COMPLETED
    """
    ATTEMPT_COMPLETED = "attempt-completed"
    """No instance of this attempt exists, `completion` says how it ended; it is tried again at `wake_at`.

    A place that it has not given back is kept for the next attempt.

    -> CREATION_PENDING | COMPLETED
    """
    COMPLETED = "completed"
    """No instance exists, `completion` is final, nothing is held.

    -> (end)
    """
