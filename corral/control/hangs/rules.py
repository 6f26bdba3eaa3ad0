"""The terms of the watch for each job, from its own file and the documents in force."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from corral.control.core.world import Job
from corral.kernel.ids import JobId
from corral.model.configuration import Configuration, rule_of
from corral.model.hangs.patience import HangAction, HangTerms
from corral.spec.hang_rule import HangRule

"""Queues above a queue that are looked through; documents cannot have a circle."""
_NEVER: Final = frozenset({"notebook"})
"""Types of jobs that wait for people."""
_UNASKED: Final = HangTerms()


class Terms:
    """The terms of jobs, each read once."""

    def __init__(self) -> None:
        self._configuration: Configuration | None = None
        self._rules: dict[str, HangTerms | None] = {}
        self._bounds: dict[JobId, float | None] = {}
        """By job its own bound, 0 without one; None: it is not watched."""

    def of(self, job: Job, configuration: Configuration) -> HangTerms | None:
        """The terms of a job; None if it is not watched."""
        if configuration is not self._configuration:
            self._configuration, self._rules = configuration, {}
        if job.id not in self._bounds:
            spec = job.document.spec
            never = spec.job_type in _NEVER or job.run.external
            self._bounds[job.id] = None if never else float(spec.hang_after_seconds)
        own = self._bounds[job.id]
        if own is None:
            return None
        queue = job.terms.queue
        if queue not in self._rules:
            self._rules[queue] = _terms(rule_of(configuration, queue, lambda each: each.hangs))
        terms = self._rules[queue] or _UNASKED
        return terms.within(own) if own else terms

    def forget(self, live: Container[JobId]) -> None:
        """Forget the jobs that are not among the live ones."""
        for gone in [job for job in self._bounds if job not in live]:
            del self._bounds[gone]


def _terms(rule: HangRule | None) -> HangTerms | None:
    if rule is None:
        return None
    return HangTerms(float(rule.at_least), float(rule.at_most), HangAction(rule.action), True)
