"""The caller of an API request, as established when its token was checked."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.model.store_writes import SubmitLimit

MONITORING: Final = "monitoring"
"""The kind of the token with which a Prometheus and its Alertmanager call."""


class Actor(msgspec.Struct, frozen=True):
    """A caller of the API: a person's account, or a running job with its own token."""

    user: str
    role: str = "user"
    """`admin`, `user`, or `job` for a job's token."""
    groups: tuple[str, ...] = ()
    token_id: str = ""
    kind: str = "api"
    """The kind of its token: `session`, `api`, `application`, `object`, `job`, `monitoring`, or the name of a tenant."""
    job: str = ""
    """The id of the job that the token belongs to."""
    queues: tuple[str, ...] = ()
    """The queues that its groups grant; `*` is all."""
    storages: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """The queues that it manages, their child queues included; `*` is all."""
    submits: SubmitLimit | None = None
    """The limit on its submissions; set only where this call is a submission and is limited."""
    max_priority: int | None = None
    """The highest priority that its jobs may have: the account's own limit, else the highest of its groups' limits."""
    max_priority_of: str = ""
    """The source of `max_priority`: `user NAME` or `group NAME`."""

    @property
    def is_admin(self) -> bool:
        """Whether it is an administrator's account."""
        return self.role == "admin"
