"""Read the attempts of one task for its log: which exist, and whether one has ended."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Connection, func, select

from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.attempts import AttemptChain, AttemptNumber, AttemptStep
from corral.model.runs import JobRun, TaskRun
from corral.model.states import JobState, TaskState
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.paging import after

CHAIN_MOST: Final = 1000
"""Attempts that a chain holds at most, the newest ones."""
_CHAIN_STEP: Final = 500
"""Attempts by which the start of a longer chain moves forward at once."""
_RUN: Final = msgspec.json.Decoder(JobRun)
_TASK: Final = msgspec.json.Decoder(TaskRun)
_ACTIVE: Final = frozenset({JobState.PREPARING, JobState.RUNNING})
_ENDED: Final = frozenset({TaskState.ATTEMPT_COMPLETED, TaskState.COMPLETED})
_attempts = tables.attempts


class AttemptViews(Database):
    """Read the attempts of one task."""

    async def attempt_chain(self, job: str, role: str, index: int, since: AttemptNumber) -> AttemptChain:
        """The attempts of a task from `since` on (included), and whether another one can follow.

        The task's current attempt is included as soon as it exists, also while it waits.
        """
        ours = (_attempts.c.job == job, _attempts.c.role == role, _attempts.c.index == index)
        columns: list[tuple[Any, bool]] = [(_attempts.c.job_attempt, False), (_attempts.c.task_attempt, False)]
        later = after(columns, (since.job_attempt, since.task_attempt - 1))
        query = (
            select(_attempts.c.id, *(column for column, _ in columns), _attempts.c.code, _attempts.c.phrase)
            .where(*ours, later)
            .order_by(*(column for column, _ in columns))
        )
        count = select(func.count()).select_from(_attempts).where(*ours, later)

        def run(connection: Connection) -> AttemptChain:
            many: int = connection.execute(count).scalar_one()
            skipped = ((many - 1) // _CHAIN_STEP - 1) * _CHAIN_STEP if many > CHAIN_MOST else 0
            steps = [
                AttemptStep(AttemptId(row.id), AttemptNumber(row.job_attempt, row.task_attempt), row.code, row.phrase)
                for row in rows(connection, query.offset(skipped).limit(CHAIN_MOST))
            ]
            standing = _standing(connection, job, role, index)
            current = standing.current
            if current is not None and current >= since and (not steps or current > steps[-1].number):
                known = AttemptId(f"{job}.{current.job_attempt}.{role}.{index}.{current.task_attempt}")
                steps.append(AttemptStep(known, current))
            return AttemptChain(tuple(steps), standing.over)

        return await self.read(run)

    async def attempt_over(self, attempt: AttemptId) -> bool:
        """Whether an attempt has ended, also one that was given up before it began."""
        key = parse_attempt_id(attempt)
        query = select(_attempts.c.ended_at).where(_attempts.c.id == attempt)

        def run(connection: Connection) -> bool:
            row = connection.execute(query).first()
            if row is not None and row.ended_at is not None:
                return True
            standing = _standing(connection, key.job, key.role, key.index)
            if not standing.live or standing.removed:
                return True
            number = AttemptNumber(key.job_attempt, key.task_attempt)
            current = standing.current
            if current is None or number.job_attempt < standing.job_attempt:
                return number.job_attempt < standing.job_attempt
            return number < current or (number == current and standing.ended)

        return await self.read(run)


class _Standing(msgspec.Struct, frozen=True):
    """The state of a task and of its job."""

    live: bool
    job_attempt: int = 0
    current: AttemptNumber | None = None
    removed: bool = False
    """The job no longer has this task."""
    ended: bool = False
    """The current attempt has ended."""
    over: bool = True
    """No other attempt will follow."""


def _standing(connection: Connection, job: str, role: str, index: int) -> _Standing:
    runs, jobs, tasks = tables.job_runs, tables.jobs, tables.tasks
    found = connection.execute(
        select(jobs.c.live, runs.c.run).join(runs, runs.c.job == jobs.c.id).where(jobs.c.id == job)
    ).first()
    if found is None:
        return _Standing(live=False)
    run = _RUN.decode(found.run)
    text = connection.execute(
        select(tasks.c.run).where(tasks.c.job == job, tasks.c.role == role, tasks.c.index == index)
    ).scalar()
    if text is None:
        removed = bool(run.roles)
        return _Standing(found.live, run.attempt, removed=removed, over=removed or not found.live)
    task = _TASK.decode(text)
    completed = task.state is TaskState.COMPLETED and run.state in _ACTIVE
    current = AttemptNumber(run.attempt, task.attempt)
    over = completed or not found.live
    return _Standing(found.live, run.attempt, current, ended=task.state in _ENDED, over=over)
