"""The goal of a what-if question: what is varied, how it is measured on courses, and how its outcome is said."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any, Final

from msgspec import structs

from corral.kernel.errors import InvalidInput
from corral.kernel.units import counted
from corral.model.what_if import MOST_NODES, AddedNodes, Course, GoalOutcome, GoalTry, QueueCourse, WhatIfRequest
from corral.service.what_if.goal_search import Least
from corral.spec.assertions.evaluation import Measure, Outcome, check_known, evaluate, shown, statistic_of
from corral.spec.assertions.parser import parse_assertion
from corral.spec.assertions.syntax import Assertion, Metric, Unit
from corral.spec.errors import shorten

METRICS: Final = ("wait", "utilisation", "preemptions")
"""What courses tell."""
_FORM: Final = "vary is nodes-like=NODE or queue=NAME:FIELD, such as queue=research:deserved.devices"
_FROM_ZERO: Final = ("deserved", "guaranteed")
"""Fields whose absence means 0; the others do not limit then, so that nothing can be raised."""
_NOTHING: Final = QueueCourse()


@dataclass(frozen=True)
class Vary:
    """What a search raises: nodes that are added, or an amount of devices of a queue."""

    text: str
    node: str = ""
    queue: str = ""
    field: str = ""
    """Such as `deserved`."""

    def first(self, queues: Mapping[str, Any]) -> int:
        """The least value: no more nodes, or what the queue's document says. `queues` are its documents' texts by name.

        Raises InvalidInput if the queue has no such limit.
        """
        if self.node:
            return 0
        amounts = queues[self.queue].get(self.field, {})
        now = amounts.get("devices") if isinstance(amounts, dict) else None
        if now is None and self.field not in _FROM_ZERO:
            raise InvalidInput("no-limit", f"Queue {self.queue} has no {self.field}.devices that could be raised.")
        return int(now or 0)

    def most(self, first: int, devices: int) -> int:
        """The most that is tried: the most nodes of a question, or all devices of the cluster."""
        return MOST_NODES if self.node else max(first, devices)

    def applied(self, asked: WhatIfRequest, value: int) -> WhatIfRequest:
        """The request with this value."""
        if self.node:
            added = (AddedNodes(value, self.node),) if value else ()
            return structs.replace(asked, add_nodes=(*asked.add_nodes, *added))
        fields = asked.queues.get(self.queue, {})
        inner = fields.get(self.field, {})
        amounts = {**(inner if isinstance(inner, dict) else {}), "devices": value}
        return structs.replace(asked, queues={**asked.queues, self.queue: {**fields, self.field: amounts}})

    def said(self, value: int) -> str:
        """A value in words."""
        if self.node:
            return f"{counted(value, 'node')} like {self.node} added" if value else "no node added"
        return f"{self.field}.devices {value} in queue {self.queue}"


def parse_vary(text: str) -> Vary:
    """Read `nodes-like=NODE` or `queue=NAME:FIELD.devices`; raises InvalidInput."""
    kind, _, rest = text.partition("=")
    if kind == "nodes-like" and rest and len(rest) <= 300:
        return Vary(text, node=rest)
    queue, _, path = rest.partition(":")
    field, _, amount = path.partition(".")
    if kind != "queue" or not queue or not field or len(text) > 300:
        raise InvalidInput("bad-vary", f"{_FORM}, not {shorten(text)}.")
    if amount != "devices":
        raise InvalidInput("bad-vary", f"A goal varies an amount of devices, such as {field}.devices.")
    return Vary(text, queue=queue, field=field)


def parse_goal(text: str, queues: Collection[str], *, all_queues: bool) -> Assertion:
    """Read a goal about these queues; without `all_queues` each metric has to name one. Raises InvalidInput."""
    goal = parse_assertion(text)
    check_known(goal, queues=queues, metrics=METRICS, filters=("queue",), where="a what-if question")
    for metric in goal.metrics:
        if metric.name == "preemptions" and metric.statistic != "sum":
            raise InvalidInput(
                "bad-goal", "A what-if question counts preemptions by queue alone; write preemptions.sum."
            )
    if not all_queues and not all(metric.queue for metric in goal.metrics):
        raise InvalidInput(
            "goal-without-queue", "Name a queue that you may use in each metric, as wait.p95(queue=NAME)."
        )
    return goal


def outcome_of(goal: Assertion, before: Sequence[Course], after: Sequence[Course]) -> Outcome:
    """Whether the goal holds in the changed courses of all seeds; `base` is the courses without changes.

    Raises InvalidInput if nobody waits, so that there is nothing to reach.
    """
    outcome = evaluate(goal, _measure(after), _measure(before))
    if isnan(outcome.left) or isnan(outcome.right):
        raise InvalidInput(
            "goal-undefined", f"No job starts or waits until the horizon, of which {goal} could be told."
        )
    return outcome


def tried(value: int, outcome: Outcome) -> GoalTry:
    """A try as the answer shows it."""
    left, right = (each if isfinite(each) else None for each in (outcome.left, outcome.right))
    return GoalTry(value, outcome.held, left, right)


def goal_outcome(goal: Assertion, vary: Vary, found: Least, tries: Sequence[GoalTry]) -> GoalOutcome:
    """The outcome of a search."""
    return GoalOutcome(
        goal=goal.text,
        vary=vary.text,
        reached=found.value is not None,
        least=found.value,
        complete=found.complete,
        unit="seconds" if goal.unit is Unit.DURATION else "number",
        says=_says(goal, vary, found, tries),
        tries=tuple(tries),
    )


def _says(goal: Assertion, vary: Vary, found: Least, tries: Sequence[GoalTry]) -> str:
    count = counted(len(tries), "attempt")
    if found.value is not None:
        held = next(each for each in tries if each.value == found.value)
        measured = shown(inf if held.measured is None else held.measured, goal.unit)
        least = "The least that reaches it" if found.complete else f"After {count}, the least that was seen to reach it"
        return f"{least}: {vary.said(found.value)} ({measured})."
    missed = [each for each in tries if not each.refused]
    most = max(missed, key=lambda each: each.value) if missed else None
    parts = ["It cannot be reached" if found.complete else f"It was not reached in {count}"]
    if most is not None:
        measured = shown(inf if most.measured is None else most.measured, goal.unit)
        parts.append(f"{vary.said(most.value)} gives {measured}")
    refused = min((each for each in tries if each.refused), key=lambda each: each.value, default=None)
    if refused is not None:
        parts.append(f"{refused.value} is refused: {refused.refused.rstrip('.')}")
    return "; ".join(parts) + "."


def _measure(courses: Sequence[Course]) -> Measure:
    def measure(metric: Metric) -> float:
        queues = [queue for course in courses for queue in _queues(course, metric.queue)]
        if metric.name == "wait":
            return statistic_of(metric.statistic, sorted(wait for queue in queues for wait in _waits(queue)))
        if metric.name == "preemptions":
            return sum(queue.preempted for queue in queues) / len(courses)
        devices = sum(course.devices for course in courses)
        return sum(queue.used for queue in queues) / devices if devices else inf

    return measure


def _queues(course: Course, name: str) -> Sequence[QueueCourse]:
    return [course.queues.get(name, _NOTHING)] if name else list(course.queues.values())


def _waits(queue: QueueCourse) -> list[float]:
    """The waits of a queue; a job that waits at the horizon may wait for ever."""
    started = len(queue.waits) - queue.waiting
    return [*queue.waits[:started], *[inf] * queue.waiting]
