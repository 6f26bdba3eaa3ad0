"""Tell the core of another life what a journal says that a core was told from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from corral.control.core.driver import Driver
from corral.control.core.intents import IntentsRead
from corral.control.journal.recorded_runs import Told
from corral.control.journal.recorded_work import TOLD
from corral.kernel.ids import JobId
from corral.model.accounts import User
from corral.model.store_writes import LiveJob


class Retold:
    """The recorded requests, machines and cordons, as a driver gets them; documents are the caller's to translate.

    What tasks said is left out, as they run at other times: `PlayedJobs` has it.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._cursor = driver.core.intents.cursor
        self._known: set[JobId] = set()

    def tell(self, at: float, happening: Told) -> None:
        """Have it happen at a time, up to which the driver has come; requests that were told already are left out."""
        if isinstance(happening, IntentsRead):
            self.know(happening.jobs.values(), happening.groups)
            intents = [each for each in happening.intents if each.seq > self._cursor]
            self._cursor = max([self._cursor, *(each.seq for each in intents)])
            intents = [each for each in intents if each.kind not in TOLD]
            if not intents:
                return
            happening = self._driver.with_jobs(intents)
        self._driver.at(at, happening)

    def forget(self, jobs: Iterable[JobId]) -> None:
        """Drop jobs that are over; one that is named again is taken over anew."""
        jobs = set(jobs)
        self._known -= jobs
        self._driver.store.forget(jobs)

    def know(self, records: Iterable[LiveJob], groups: Mapping[str, tuple[str, ...]]) -> None:
        """Take over jobs that the driver's store does not have, and the groups of users."""
        for record in records:
            if record.id not in self._known:
                self._known.add(record.id)
                self._driver.store.hold(record)
        for name, of_user in groups.items():
            self._driver.store.users[name] = User(name, groups=of_user)
