"""Ask what would become of the cluster with other nodes, quotas, jobs or rules; nothing is changed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.kernel.errors import Forbidden, InvalidInput, NotFound, Unavailable
from corral.kernel.units import counted, format_duration
from corral.model.configuration import IN_FORCE, Configuration, read_configuration
from corral.model.document_revisions import DocumentChange
from corral.model.what_if import (
    LAST_WEEK,
    LONGEST_HORIZON,
    MOST_FILES,
    MOST_JOBS,
    MOST_NAMED,
    MOST_NODES,
    MOST_SEEDS,
    AddedJobs,
    JobOutcome,
    NewWork,
    Question,
    Stay,
    WhatIfAnswer,
    WhatIfRequest,
)
from corral.model.what_if_progress import WhatIfProgress
from corral.service.access.priority_limit import check_priority
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.configuration.change import changes_in, consistent
from corral.service.context import Context
from corral.service.jobs.editing import JobEditor
from corral.service.jobs.feasibility import Feasibility
from corral.service.jobs.submission import Submission
from corral.service.what_if.comparison import compare
from corral.service.what_if.control_courses import ControlCourses, WatchedCourses
from corral.service.what_if.goals import parse_goal, parse_vary
from corral.service.what_if.one_each import OneEach
from corral.service.what_if.reaching import GoalSearch, Played
from corral.spec.errors import did_you_mean, shorten
from corral.spec.job import UnifiedJob
from corral.store.cluster_views import Admission

_LONGEST_CLAUSE: Final = 200
_HIDDEN: Final = "job"
"""The name under which ordinary users see other people's jobs."""


def _busy() -> Unavailable:
    message = "Your question before this one is still being answered; ask again when it is, or cancel it."
    return Unavailable("question-busy", message, retry_after=10)


class WhatIf:
    """Answers what-if questions."""

    action: Final = "cluster.ask"

    def __init__(
        self, context: Context, submission: Submission, feasibility: Feasibility, job_editor: JobEditor
    ) -> None:
        self._context = context
        self._store = context.store
        self._submission = submission
        self._feasibility = feasibility
        self._job_editor = job_editor
        self._places = OneEach(_busy)

    async def ask(self, actor: Actor, asked: WhatIfRequest) -> WhatIfAnswer:
        """What is to be expected as things are, and with the changes.

        Ordinary users may change the quotas of queues that they may submit to and stop or edit jobs that are theirs; of
        other queues they are told nothing, of other people's jobs the sizes.

        Raises InvalidInput, SpecError, NotFound, Forbidden, Conflict; Unavailable while control does not answer, or has
        too many questions.
        """
        await self.check(actor, asked)
        with self.place(actor):
            return await self.answered(actor, asked, ControlCourses(self._context))

    async def check(self, actor: Actor, asked: WhatIfRequest) -> None:
        """Check that the actor may ask, and the bounds of a question.

        Raises Forbidden, InvalidInput.
        """
        await self._context.check(actor, self.action, Resource("cluster"))
        _check_bounds(asked)

    def place(self, actor: Actor) -> contextlib.AbstractContextManager[None]:
        """Hold the one place of a user whose question is being answered.

        Raises Unavailable `question-busy` when it is taken.
        """
        return self._places.place(actor.user)

    async def answered_later(
        self, actor: Actor, asked: WhatIfRequest, told: Callable[[WhatIfProgress], None]
    ) -> WhatIfAnswer:  # fmt: skip
        """The answer to a question that was checked; `told` hears of its progress. Raises like `ask`."""
        return await self.answered(actor, asked, WatchedCourses(self._context, told))

    async def answered(self, actor: Actor, asked: WhatIfRequest, control: ControlCourses) -> WhatIfAnswer:
        """The answer to a question that was checked, whose courses `control` plays.

        Raises like `ask`.
        """
        admission = await self._store.admission()
        goal = None
        if asked.goal or asked.vary:
            search = await self._search(actor, asked, admission, control)
            (courses, said), goal = await search.run()
        else:
            courses, said = await self._courses(actor, asked, admission, control)
        control.comparing()
        mine = _own_queues(actor, admission)
        answer = compare(courses, horizon=asked.horizon_seconds, changes=said, shown=mine)
        answer = msgspec.structs.replace(answer, goal=goal)
        return answer if actor.is_admin else _without_names(answer, actor)

    async def _courses(
        self, actor: Actor, asked: WhatIfRequest, admission: Admission, control: ControlCourses
    ) -> Played:  # fmt: skip
        """Control's answer to a request, and the changes as clauses."""
        question, said = await self._question(actor, asked, admission)
        return await control.played(question), said

    async def _search(
        self, actor: Actor, asked: WhatIfRequest, admission: Admission, control: ControlCourses
    ) -> GoalSearch:  # fmt: skip
        """The search for the least that reaches the goal of a request."""
        if not (asked.goal and asked.vary):
            raise InvalidInput("goal-needs-vary", "A goal needs something to vary, and something to vary needs a goal.")
        documents = await self._store.all_documents()
        configured = await self._context.run_in_worker(False, read_configuration, documents.revisions)
        mine = _own_queues(actor, admission)
        vary = parse_vary(asked.vary)
        if vary.queue:
            _check_queue(actor, vary.queue, configured, mine)
        goal = parse_goal(asked.goal, [name for name in configured.queues if mine(name)], all_queues=actor.is_admin)
        first = vary.first({name: queue.to_document() for name, queue in configured.queues.items()})

        def ask(each: WhatIfRequest) -> Awaitable[Played]:
            return self._courses(actor, each, admission, control)

        return GoalSearch(goal, vary, first, asked, ask, trying=control.trying)

    async def _question(
        self, actor: Actor, asked: WhatIfRequest, admission: Admission
    ) -> tuple[Question, tuple[str, ...]]:
        """The question for control, and its changes as clauses."""
        documents, said = await self._documents(actor, asked, admission)
        said += [f"{counted(each.count, 'node')} like {each.like} added" for each in asked.add_nodes]
        said += [f"{name} removed" for name in asked.remove_nodes] + [f"{name} drained" for name in asked.drain]
        stop, priorities = [], {}
        for ref in asked.stop:
            record, _ = await self._context.job_for(actor, ref, "job.stop")
            stop.append(record.id)
            said.append(f"{record.name} stopped")
        for ref, priority in asked.priorities.items():
            edit = await self._job_editor.edit(actor, ref, priority=priority, dry_run=True)
            priorities[edit.id] = str(priority)
            said.append(f"{edit.name} with priority {priority}")
        submitted = [await self._new_work(actor, each, admission) for each in asked.submit]
        if (count := sum(each.work.times for each in submitted)) > MOST_JOBS:
            raise InvalidInput(
                "too-many-jobs", f"A question submits at most {MOST_JOBS} jobs, those of arrays counted, not {count}."
            )
        said += [f"{each.name} submitted {each.work.times} times" if each.work.times > 1 else f"{each.name} submitted"
                 for each in submitted]  # fmt: skip
        question = Question(
            horizon_seconds=asked.horizon_seconds,
            seeds=tuple(range(asked.seed, asked.seed + asked.seeds)),
            documents=documents,
            add_nodes=asked.add_nodes,
            drain=(*asked.drain, *asked.remove_nodes),
            submit=tuple(each.work for each in submitted),
            stop=tuple(stop),
            priorities=priorities,
            timeline=asked.timeline,
            arrivals=asked.arrivals,
        )
        return question, tuple(said)

    async def _new_work(self, actor: Actor, asked: AddedJobs, admission: Admission) -> _Submitted:
        found = await self._submission.validate(actor, asked.job)
        if found.document is None:
            problem = found.problems[0]
            raise InvalidInput(
                "invalid-job", f"The job file has a problem at {problem.path or 'its beginning'}: {problem.message}"
            )
        job = UnifiedJob.from_document(found.document)
        await self._feasibility.check_queue(actor, job, admission)
        check_priority(actor, job.priority, job.spec.queue, admission.most_priority)
        times = asked.times * (job.spec.array.size if job.is_array else 1)
        alone = job.model_copy(update={"spec": job.spec.model_copy(update={"depends_on": []})})
        return _Submitted(job.name, NewWork(alone.to_json(), actor.user, actor.groups, times))

    async def _documents(
        self, actor: Actor, asked: WhatIfRequest, admission: Admission
    ) -> tuple[tuple[dict[str, Any], ...] | None, list[str]]:
        """All documents of the changed configuration (None: it stays), and the changes as clauses."""
        if not (asked.documents or asked.queues or asked.policy):
            return None, []
        if asked.documents or asked.policy:
            await self._context.check(actor, "document.apply", Resource("document", "what-if"))
        now = await self._store.all_documents()
        changes: list[DocumentChange] = []
        said = []
        if asked.documents:
            given, _ = await self._context.run_in_worker(False, changes_in, asked.documents, "the documents")
            changes += given
            said += [f"{each.kind}/{each.name} applied" for each in given]
        configured = await self._context.run_in_worker(False, read_configuration, now.revisions)
        mine = _own_queues(actor, admission)
        for name, fields in asked.queues.items():
            _check_queue(actor, name, configured, mine)
            changes.append(_queue_change(configured, name, fields))
            said.append(f"{shorten(', '.join(_flat(fields)), _LONGEST_CLAUSE)} in queue {name}")
        if asked.policy:
            changes.append(_policy_change(configured, asked.policy))
            said.append(f"policy {asked.policy}")
        return await self._context.run_in_worker(False, consistent, now, changes), said


class _Submitted(msgspec.Struct, frozen=True):
    name: str
    work: NewWork


def _queue_change(configured: Configuration, name: str, fields: Mapping[str, Any]) -> DocumentChange:
    before: dict[str, Any] = configured.queues[name].to_document()
    ((change, *_), _) = changes_in(json.dumps(_merged(before, fields)), f"the queue {name[:100]}")
    if (change.kind, change.name) != ("Queue", name):
        raise InvalidInput("other-document", f"The fields of queue {name[:100]} change its name or kind.")
    return change


def _policy_change(configured: Configuration, preset: str) -> DocumentChange:
    before: dict[str, Any] = {"kind": "Policy", "name": IN_FORCE}
    if configured.policy is not None:
        before = configured.policy.to_document()
    ((change, *_), _) = changes_in(json.dumps(before | {"preset": preset}), f"the policy {preset[:100]}")
    return change


def _merged(before: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """`before` with these fields; objects in both are merged."""
    found = dict(before)
    for name, value in fields.items():
        there = found.get(name)
        found[name] = _merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return found


def _flat(fields: Mapping[str, Any], path: str = "") -> Iterable[str]:
    """The fields in words: `deserved.devices 16`."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name} {value if isinstance(value, str) else json.dumps(value)}"


def _check_queue(actor: Actor, name: str, configured: Configuration, mine: Callable[[str], bool]) -> None:
    """Raise NotFound for a queue that there is not, Forbidden for one that the actor may not use."""
    if name not in configured.queues:
        near = did_you_mean(name, configured.queues) or ";"
        hint = near if near.endswith("?") else f"{near.rstrip('.;')}; `corral queues` lists them."
        raise NotFound("queue-not-found", f"There is no queue {name[:100]}{hint}")
    if not actor.is_admin and not mine(name):
        raise Forbidden("not-allowed", f"You may ask about the queues that you may use; {name[:100]} is not one.")


def _own_queues(actor: Actor, admission: Admission) -> Callable[[str], bool]:
    def may(queue: str) -> bool:
        resource = Resource("queue", queue, queue=queue, restricted=queue in admission.granted)
        return actor.is_admin or decide(actor, "job.submit", resource).allowed or queue in actor.manages

    return may


def _without_names(answer: WhatIfAnswer, actor: Actor) -> WhatIfAnswer:
    """The answer without the names, users and ids of other people's jobs, but those of queues that the actor manages."""

    def is_hidden(user: str, queue: str) -> bool:
        return user != actor.user and queue not in actor.manages and "*" not in actor.manages

    ids = {
        job.id: f"{_HIDDEN}-{number}"
        for number, job in enumerate(answer.jobs, start=1)
        if is_hidden(job.user, job.queue)
    }

    def renamed(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(ids.get(name, name) for name in names)

    def shown(job: JobOutcome) -> JobOutcome:
        return msgspec.structs.replace(job, id=ids[job.id], name=_HIDDEN, user="") if job.id in ids else job

    def stay(each: Stay) -> Stay:
        if not is_hidden(each.user, each.queue):
            return each
        name = ids.setdefault(each.job, f"{_HIDDEN}-{len(answer.jobs) + len(ids) + 1}")
        return msgspec.structs.replace(each, job=name, name=_HIDDEN, user="")

    timeline = answer.timeline
    if timeline is not None:
        before, after = tuple(map(stay, timeline.before)), tuple(map(stay, timeline.after))
        timeline = msgspec.structs.replace(timeline, before=before, after=after)
    return msgspec.structs.replace(
        answer,
        jobs=tuple(map(shown, answer.jobs)),
        gains=renamed(answer.gains),
        losses=renamed(answer.losses),
        timeline=timeline,
    )


def _check_bounds(asked: WhatIfRequest) -> None:
    if not 60 <= asked.horizon_seconds <= LONGEST_HORIZON:
        shown = format_duration(round(LONGEST_HORIZON))
        raise InvalidInput("bad-horizon", f"The horizon is from 1 minute to {shown}.")
    if not 1 <= asked.seeds <= MOST_SEEDS or not 0 <= asked.seed < 2**31:
        raise InvalidInput("bad-seeds", f"A question draws 1 to {MOST_SEEDS} courses, from a seed of 0 or more.")
    if asked.arrivals not in ("", LAST_WEEK):
        raise InvalidInput("bad-arrivals", f"Arrivals are {LAST_WEEK}, or left out.")
    if sum(each.count for each in asked.add_nodes) > MOST_NODES or any(each.count < 1 for each in asked.add_nodes):
        raise InvalidInput("bad-node-count", f"A question adds 1 to {MOST_NODES} nodes.")
    if any(each.times < 1 for each in asked.submit) or sum(each.times for each in asked.submit) > MOST_JOBS:
        raise InvalidInput("bad-times", f"A question submits 1 to {MOST_JOBS} jobs.")
    if len(asked.submit) > MOST_FILES:
        raise InvalidInput("too-many-files", f"A question has at most {MOST_FILES} job files.")
    named = (asked.add_nodes, asked.remove_nodes, asked.drain, asked.stop, asked.queues, asked.priorities)
    if any(len(each) > MOST_NAMED for each in named):
        raise InvalidInput("too-many-changes", f"A question has at most {MOST_NAMED} changes of one kind.")
