"""Limit a user's waiting and running tasks when jobs are submitted, scaled up or restarted.

The number is the sum of `jobs.tasks` of the user's live jobs. Control writes it with each change of a job. Scaling up
adds to it in the transaction that stores the intent, and control does not overwrite it until it has carried out that
intent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import Integer, bindparam, case, exists, func, select, update

from corral.kernel.errors import TooManyRequests
from corral.model.runs import RoleCount
from corral.model.store_writes import IntentKind, NewJob
from corral.store import tables

Read = Callable[..., Any]
"""A function that runs a statement: `Connection.execute` or `Transaction.read`."""


class _Roles(msgspec.Struct):
    """The part of a `JobRun` that is read here."""

    roles: dict[str, RoleCount] = {}


_jobs, _events, _runs = tables.jobs, tables.events, tables.job_runs
_ROLES: Final = msgspec.json.Decoder(_Roles)
_DATA: Final = msgspec.json.Decoder(dict[str, Any])
_OPEN: Final = select(func.coalesce(func.sum(_jobs.c.tasks), 0)).where(_jobs.c.user == bindparam("u"), _jobs.c.live)
_JOB: Final = (
    select(_jobs.c.user, _jobs.c.live, _jobs.c.tasks, _runs.c.run)
    .join(_runs, _runs.c.job == _jobs.c.id)
    .where(_jobs.c.id == bindparam("j"))
)
_TASKS: Final = select(_jobs.c.user, _jobs.c.live, _jobs.c.tasks).where(_jobs.c.id == bindparam("j"))
_CURSOR: Final = select(tables.leadership.c.cursor)
_SCALES: Final = (
    select(_events.c.data)
    .where(_events.c.job == bindparam("j"), _events.c.seq > bindparam("after"))
    .where(_events.c.intent, _events.c.kind == str(IntentKind.SCALE))
)
_RESTARTS: Final = (
    select(_events.c.job)
    .where(_events.c.intent, _events.c.seq > bindparam("after"))
    .where(_events.c.kind == str(IntentKind.RESTART))
)
_RESTARTING: Final = select(func.coalesce(func.sum(_jobs.c.tasks), 0)).where(
    _jobs.c.user == bindparam("u"), _jobs.c.live.is_(False), _jobs.c.id != bindparam("j"), _jobs.c.id.in_(_RESTARTS)
)
ADD: Final = update(_jobs).where(_jobs.c.id == bindparam("j")).values(tasks=_jobs.c.tasks + bindparam("more"))
"""Statement: add `more` to a job's task count."""
AS_CONTROL_SAYS: Final = case(
    (
        exists()
        .where(_events.c.job == bindparam("j"), _events.c.seq > bindparam("after"))
        .where(_events.c.intent, _events.c.kind == str(IntentKind.SCALE)),
        _jobs.c.tasks,
    ),
    else_=bindparam("tasks", type_=Integer),
)
"""The task count that control writes: unchanged while an intent to scale, with a seq after `after`, is pending."""


def open_tasks(read: Read, user: str) -> int:
    """Count the waiting and running tasks of a user's live jobs."""
    return int(read(_OPEN, {"u": user}).scalar_one())


def check_submitted(read: Read, new: list[NewJob], most: int) -> None:
    """Refuse new jobs, already inserted, when their user has more than `most` tasks with them.

    Raises TooManyRequests `too-many-tasks`.
    """
    asked = sum(job.summary.tasks.open for job in new)
    _check(new[0].user, open_tasks(read, new[0].user) - asked, asked, most)


def check_scaled(read: Read, job: str, sizes: Mapping[str, int], asked: Mapping[str, int], most: int) -> int:
    """The number of tasks that a job gains when its roles get these sizes; `asked` has its document's sizes.

    With `most`, raises TooManyRequests `too-many-tasks` when its user would have more tasks than that.
    """
    row = read(_JOB, {"j": job}).first()
    if row is None or not row.live:
        return 0
    roles = _ROLES.decode(row.run).roles
    largest = {role: roles[role].target if role in roles else asked.get(role, 0) for role in sizes}
    for (text,) in read(_SCALES, {"j": job, "after": _cursor(read)}):
        data = _DATA.decode(text)
        if (role := str(data["role"])) in largest:  # it was counted when it was stored
            largest[role] = max(largest[role], int(data["replicas"]))
    more = sum(max(0, size - largest[role]) for role, size in sizes.items())
    if more and most:
        _check(row.user, open_tasks(read, row.user), more, most)
    return more


def check_restarted(read: Read, job: str, most: int) -> None:
    """Refuse to restart an ended job when its user would have more than `most` tasks with it.

    Raises TooManyRequests `too-many-tasks`.
    """
    row = read(_TASKS, {"j": job}).first()
    if row is None or row.live:
        return
    others = read(_RESTARTING, {"u": row.user, "j": job, "after": _cursor(read)}).scalar_one()
    _check(row.user, open_tasks(read, row.user) + int(others), int(row.tasks), most)


def _cursor(read: Read) -> int:
    """The seq of the last intent that control has carried out."""
    return int(read(_CURSOR).scalar_one())


def _check(user: str, having: int, asked: int, most: int) -> None:
    if having + asked > most:
        raise TooManyRequests(
            "too-many-tasks",
            f"{user} has {having:,} waiting and running tasks, and may have {most:,}; this asks for {asked:,} more. "
            "Wait until some have ended, or stop some.",
        )
