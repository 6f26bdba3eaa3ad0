"""The fields of a job that OpenPAI's lists show, and how they are stored with it."""

from __future__ import annotations

import msgspec

from corral.compat.openpai.tables.schema import submitted_jobs
from corral.model.store_writes import SubmittedAs


class Listing(msgspec.Struct, frozen=True):
    """Fields of a job as it was submitted, for lists and look-ups that would otherwise parse its document."""

    name: str
    """The name as submitted; it may have capitals and be longer than a DNS label."""
    job_priority: str | None = None
    """The name of its priority, if it has one."""
    roles: int = 1

    def stored(self) -> SubmittedAs:
        """The row of OpenPAI's table."""
        columns = {"job_priority": self.job_priority, "roles": self.roles}
        return SubmittedAs(submitted_jobs.name, self.name, columns)
