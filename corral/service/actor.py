"""Why: every decision is about somebody; who that is was settled once, when the token was checked."""

from __future__ import annotations

import msgspec

from corral.model.writes import SubmitLimit


class Actor(msgspec.Struct, frozen=True):
    """Who calls: a person's account, or a running job by its own token."""

    user: str
    role: str = "user"
    """`admin`, `user`, or `job` for a job's token."""
    groups: tuple[str, ...] = ()
    token_id: str = ""
    kind: str = "api"
    """`session`, `api` or `job`."""
    job: str = ""
    """The id of the job whose token it is."""
    queues: tuple[str, ...] = ()
    """The queues that its groups grant; `*` is all."""
    storages: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """The queues that it manages, those below them included; `*` is all."""
    submits: SubmitLimit | None = None
    """What its submissions count against, where this call is one and they are limited."""
    max_priority: int | None = None
    """The highest priority of its jobs: its account's own, else the highest that one of its groups grants."""
    max_priority_of: str = ""
    """Whose word that is: `user NAME` or `group NAME`."""

    @property
    def is_admin(self) -> bool:
        """Whether it is an administrator's account."""
        return self.role == "admin"
