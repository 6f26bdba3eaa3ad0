"""Series of metrics, for those who may read the job or the queues that they are of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from corral.kernel.errors import InvalidInput
from corral.kernel.units import format_duration, parse_duration
from corral.model.metrics.families import Family
from corral.model.metrics.job_figures import JOB_LABELS, family_of
from corral.model.records import rfc3339
from corral.model.series import MOST_POINTS, SeriesAnswer, SeriesQuestion, SeriesView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.times import read_time

_USUAL: Final = 3600.0
"""Seconds that are looked back where nobody says how far."""
_USUAL_STEPS: Final = 300
"""The most steps of an answer where nobody says how long they are."""
_STEPS: Final = (15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400)
"""Usual lengths of steps in seconds."""
_FINE_SECONDS: Final = 24 * 3600
"""Seconds for which single values are kept; older ones have steps of 10 min."""
_COARSE: Final = 600
_LEAST: Final = 15
_MOST_FAMILIES: Final = 20
_OF_QUEUES: Final = frozenset({"queue", "resource", "phase", "reason", "rule", "result", "engine", "state", "of"})
"""Labels of families that everybody may read who may look at queues; those with others are for administrators."""


class SeriesReports:
    """The values of metrics over time."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def report(
        self,
        actor: Actor,
        families: Sequence[str],
        *,
        job: str = "",
        labels: Sequence[str] = (),
        begin: str = "",
        end: str = "",
        step: str = "",
    ) -> SeriesAnswer:
        """The series of a job, or of some families; `begin` and `end` are RFC 3339 times, `step` is a duration.

        Raises InvalidInput for a question without meaning, NotFound, Forbidden, Unavailable.
        """
        found = _known(families)
        of = ""
        if job:
            record, _ = await self._context.job_for(actor, job, "job.metrics")
            of = record.id
        elif not found:
            raise InvalidInput("no-family", "Name a job or a family of metrics, such as corral_jobs_waiting.")
        else:
            await self._check(actor, found)
        question = _question(self._context.clock.now(), begin, end, step)
        question = msgspec.structs.replace(
            question, families=tuple(each.name for each in found), job=of, labels=_labels(labels)
        )
        items, left_out = msgspec.convert(
            await self._context.control.request("/series", msgspec.to_builtins(question)), tuple[list[SeriesView], int]
        )
        first = question.begin // question.step * question.step
        last = first + question.steps * question.step
        return SeriesAnswer(rfc3339(first), rfc3339(last), question.step, tuple(items), left_out)

    async def _check(self, actor: Actor, families: Sequence[Family]) -> None:
        """Raise unless an actor may read these families of all queues and machines."""
        for family in families:
            if not set(JOB_LABELS).isdisjoint(family.labels):
                raise InvalidInput("no-job", f"{family.name} is a figure of jobs: name the job.")
            action = "queue.read" if _OF_QUEUES.issuperset(family.labels) else "cluster.inspect"
            await self._context.check(actor, action, Resource("queue" if action == "queue.read" else "cluster"))


def _known(names: Sequence[str]) -> list[Family]:
    if len(names) > _MOST_FAMILIES:
        raise InvalidInput("too-many-families", f"At most {_MOST_FAMILIES} families are read at once.")
    found = []
    for name in names:
        family = family_of(name)
        if family is None:
            raise InvalidInput(
                "no-such-family", f"There is no metric {name[:100]!r}; docs/reference/metrics.md lists them."
            )
        found.append(family._replace(name=name))
    return found


def _labels(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise InvalidInput(
                "no-label", f"A label is written as NAME=VALUE, such as queue=research, not {each[:50]!r}."
            )
        found[name] = value
    return found


def _question(now: float, begin: str, end: str, step: str) -> SeriesQuestion:
    """The times of a question, with a step that its bounds allow."""
    until = read_time("to", end) if end else now
    since = read_time("from", begin) if begin else max(0.0, until - _USUAL)
    if since >= until:
        raise InvalidInput("bad-period", f"The period from {rfc3339(since)} to {rfc3339(until)} has no length.")
    seconds = _step(step) if step else _usual_step(now - since, until - since)
    question = SeriesQuestion(since, math.ceil(until / seconds) * seconds, seconds)
    if question.steps > MOST_POINTS:
        raise InvalidInput(
            "too-many-steps", f"An answer has at most {MOST_POINTS} steps, and this one would have {question.steps}."
        )
    return question


def _step(text: str) -> int:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise InvalidInput("bad-step", f"The step {text[:50]!r} is not a duration: {error}.") from None
    if seconds % _LEAST or not seconds:
        raise InvalidInput("bad-step", f"A step is a multiple of 15 s, not {format_duration(seconds)}.")
    return seconds


def _usual_step(age: float, length: float) -> int:
    """Seconds; `age` is how long ago the question's time begins."""
    least = _LEAST if age <= _FINE_SECONDS else _COARSE
    days = math.ceil(length / _USUAL_STEPS / _STEPS[-1]) * _STEPS[-1]
    return next((each for each in _STEPS if each >= least and length / each <= _USUAL_STEPS), days)
