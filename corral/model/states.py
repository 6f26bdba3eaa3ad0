"""The states of jobs and tasks, each with its invariant and its exits; a test compares them with the launcher's tables.

Source: FrameworkController's state machine. An attempt is one run of a job or of a task. A task attempt has at most one
*instance*: the process, pod or container that the engine runs. *Pending* means decided and stored, *requested* means
sent to the engine, and the other states are observed: a request never counts as its effect. A task that a scale-down
named leaves the machine from ATTEMPT_COMPLETED or COMPLETED: it is removed.
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job, derived from its current attempt and the tasks of that attempt."""

    CREATION_PENDING = "creation-pending"
    """Nothing was requested: the job is held (`hold` says why), no task has a placement or an instance.

    -> CREATION_REQUESTED | ATTEMPT_COMPLETED
    """
    CREATION_REQUESTED = "creation-requested"
    """The gang waits in the scheduler's queue; no task holds a placement.

    -> PREPARING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    PREPARING = "preparing"
    """At least one task was placed and its start requested; no task of this attempt was seen running.

    -> CREATION_REQUESTED | RUNNING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    RUNNING = "running"
    """A task of this attempt was seen running, and no completion policy is met yet.

    -> DELETION_PENDING | ATTEMPT_COMPLETED
    """
    DELETION_PENDING = "deletion-pending"
    """The attempt's completion is stored and never changes; each remaining instance has a stored stop.

    -> DELETING | ATTEMPT_COMPLETED
    """
    DELETING = "deleting"
    """At least one instance has ended, and at least one is not known to have ended.

    -> ATTEMPT_COMPLETED
    """
    ATTEMPT_COMPLETED = "attempt-completed"
    """All tasks are completed and hold nothing; the next attempt begins at `wake_at`.

    -> CREATION_PENDING | COMPLETED
    """
    COMPLETED = "completed"
    """All tasks are completed, `completion` is final, and only a restart leaves this state.

    -> CREATION_PENDING
    """


class TaskState(StrEnum):
    """The state of a task in the current job attempt, derived from its current attempt's instance."""

    CREATION_PENDING = "creation-pending"
    """The task has no instance and no placement, and is not in the scheduler's queue (not yet, or no longer).

    -> CREATION_REQUESTED | PREPARING | ATTEMPT_COMPLETED
    """
    CREATION_REQUESTED = "creation-requested"
    """The task is in the scheduler's queue; no instance, no placement.

    -> CREATION_PENDING | PREPARING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    PREPARING = "preparing"
    """The task is placed and its start is stored; an instance may exist, but none was seen.

    -> CREATION_REQUESTED | RUNNING | DELETION_PENDING | ATTEMPT_COMPLETED
    """
    RUNNING = "running"
    """The instance was seen running; its end was not seen.

    -> DELETION_PENDING | ATTEMPT_COMPLETED
    """
    DELETION_PENDING = "deletion-pending"
    """The task is to end: `completion` and the stop are stored; an instance may exist.

    -> ATTEMPT_COMPLETED
    """
    ATTEMPT_COMPLETED = "attempt-completed"
    """No instance of this attempt exists, `completion` says how it ended; the next attempt begins at `wake_at`.

    A placement that it has not released is kept for the next attempt.

    -> CREATION_PENDING | COMPLETED
    """
    COMPLETED = "completed"
    """No instance exists, `completion` is final, nothing is held.

    -> (end)
    """
