"""Add and remove tags of jobs, by which people find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.model.views import JobDetail
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.job_rule import JobRules, own_tag_said
from corral.service.jobs.jobs import Jobs

MOST_TAGS: Final = 100
"""Tags of a job, and of one change, at most: as many as a job file may have."""
LONGEST_TAG: Final = 100
_ARRAY: Final = "array:"
"""The prefix of the tag that joins the jobs of an array."""


class JobTags:
    """The tags of stored jobs. The job's document, whose tags the scheduler reads, stays as it was submitted."""

    def __init__(self, context: Context, jobs: Jobs, rules: JobRules) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._jobs = jobs
        self._rules = rules

    async def change(self, actor: Actor, ref: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> JobDetail:
        """Add and remove tags of a job, together; one that it has already, or has not, is left as it is.

        Raises InvalidInput `nothing-to-change`, `invalid-tag` or `own-tag`, Conflict `too-many-tags`.
        """
        record, decision = await self._context.job_for(actor, ref, "job.tag")
        if not add and not remove:
            raise InvalidInput("nothing-to-change", "Name at least one tag to add or to remove.")
        for tag in (*add, *remove):
            self._check(tag)
        if both := next((tag for tag in add if tag in remove), ""):
            raise InvalidInput("invalid-tag", f"The tag {both} cannot be added and removed at once.")
        line = self._context.line(
            actor, "job.tag", job_resource(record), decision, added=list(add), removed=list(remove)
        )
        await self._store.change_tags(
            JobId(record.id), add, remove, actor=actor.user, at=self._clock.now(), audit=line, most=MOST_TAGS
        )
        return await self._jobs.get(actor, record.id)

    def _check(self, tag: str) -> None:
        if not 0 < len(tag) <= LONGEST_TAG or tag != tag.strip() or not tag.isprintable():
            raise InvalidInput(
                "invalid-tag", f"A tag has 1 to {LONGEST_TAG} printable characters, and no space at its ends."
            )
        prefix = _ARRAY if tag.startswith(_ARRAY) else self._rules.own_tags(tag)
        if prefix:
            raise InvalidInput("own-tag", own_tag_said(prefix))
