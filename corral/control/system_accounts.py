"""Assign system uids to users, and open the secrets of jobs.

On a server that runs as root, the tasks of each user run under a uid of their own, which never changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from corral.control.core.world import Job
from corral.kernel.errors import NotFound
from corral.service.secret_box import SecretBox
from corral.store import Store

FIRST_ALLOTTED: Final = 100_000
"""The first assigned uid, above those of people and services."""


class Accounts:
    """The uid of a user's tasks, and the secrets of a job."""

    def __init__(self, store: Store, secret_box: SecretBox, *, allot: bool) -> None:
        """With `allot`, a user without a uid is assigned one; otherwise tasks run as the server's own account."""
        self._store = store
        self._secret_box = secret_box
        self._allot = allot
        self._uids: dict[str, int | None] = {}
        self._lookups: dict[str, asyncio.Task[None]] = {}
        """By user, a lookup that has not begun to read."""

    def uid_of(self, user: str) -> int | None:
        """The uid of a user for whom `ready` was awaited; None is the server's own.

        Raises NotFound for a user who was never made ready.
        """
        if not self._allot:
            return None
        if user not in self._uids:
            raise NotFound("unknown-account", f"It is not settled under which account tasks of {user} run.")
        return self._uids[user]

    async def ready(self, user: str) -> None:
        """Assign or look up the uid of `user`. An account that is deleted and created again gets another one.

        Callers at the same moment share one lookup, which begins after all of their calls.

        Raises NotFound when the account is gone.
        """
        if not self._allot:
            return
        lookup = self._lookups.get(user)
        if lookup is None:
            lookup = self._lookups[user] = asyncio.create_task(self._look_up(user))
        await asyncio.shield(lookup)

    async def _look_up(self, user: str) -> None:
        del self._lookups[user]  # who calls from now on might want to know what this one does not read
        account = await self._store.user(user)
        if account is None:
            raise NotFound("unknown-account", f"The account {user} is gone; its tasks cannot start.")
        if account.uid is None:
            account = await self._store.allot_uid(user, FIRST_ALLOTTED)
        self._uids[user] = account.uid

    async def secrets(self, job: Job) -> Mapping[str, str]:
        """The decrypted secrets of a job, by name.

        Raises Conflict when they were sealed with another key.
        """
        owner = f"job:{job.id}"
        sealed = await self._store.secrets(owner)
        return {name: self._secret_box.open(owner, name, value) for name, value in sealed.items()}
