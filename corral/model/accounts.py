"""Why: who somebody is and what they were granted are facts like any other, shared by the store, the rules and the API."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.model.records import Record

DEFAULT_GROUP: Final = "default"
"""The group of those who are in no other, and of everybody that OpenPAI's API makes."""
ADMIN_GROUP: Final = "admingroup"
"""OpenPAI's name for the administrators: whose role it is, is in it."""


class User(msgspec.Struct, frozen=True):
    """One account; times are seconds since 1970. Its password hash never leaves the store's own calls."""

    name: str
    role: str = "user"
    """`admin` or `user`."""
    groups: tuple[str, ...] = ()
    uid: int | None = None
    """The system account its tasks run under, when the server runs as root."""
    created_at: float = 0.0
    disabled: bool = False
    has_password: bool = False
    email: str = ""
    extension: dict[str, Any] = {}
    """What OpenPAI's clients keep with an account, as they wrote it."""
    id: str = ""
    """Never given twice: its name, or its name with a number where a deleted account had that name; the store gives it."""
    max_priority: int | None = None
    """The highest priority of its jobs; None leaves it to its groups."""

    @property
    def folder(self) -> str:
        """The folder that it has on storages which give each user one: its id."""
        return self.id or self.name

    @property
    def memberships(self) -> tuple[str, ...]:
        """The groups whose grants it has: its own, else the default one, and the administrators' by its role."""
        own = self.groups or (DEFAULT_GROUP,)
        return (*own, ADMIN_GROUP) if self.role == "admin" and ADMIN_GROUP not in own else own


class Group(msgspec.Struct, frozen=True):
    """What the members of a group may use; `*` stands for all."""

    name: str
    queues: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()
    """The first one is the members' default."""
    admin: bool = False
    """Whether its members are administrators."""
    description: str = ""
    external_name: str = ""
    """What a company's own directory calls it."""
    extension: dict[str, Any] = {}
    """What OpenPAI's clients keep with a group, without the grants, which are above."""
    manages: tuple[str, ...] = ()
    """The queues whose managers its members are, with the queues below them."""
    max_priority: int | None = None
    """The highest priority of its members' jobs; None says nothing."""


class Token(msgspec.Struct, frozen=True):
    """One bearer token: of it only a hash is kept."""

    id: str
    user: str
    name: str
    kind: str
    """`api`: made by its user; `session`: made by a sign-in; `openpai`: by one at OpenPAI's API; `application`: made for
    a program at OpenPAI's API, good for jobs and for reading."""
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None


class AuditRecord(Record, frozen=True):
    """One decision about a call that changes something, or that was refused."""

    seq: int
    at: str
    actor: str
    action: str
    resource: str
    rule: str
    allowed: bool
    detail: dict[str, Any] = {}


class AuditWrite(msgspec.Struct, frozen=True):
    """A line to be added to the audit log; `at` is seconds since 1970."""

    at: float
    actor: str
    action: str
    resource: str
    rule: str
    allowed: bool
    detail: dict[str, Any] = {}


class QueueRecord(msgspec.Struct, frozen=True):
    """One queue as configured; `doc` is its part of the cluster document."""

    name: str
    doc: dict[str, Any] = {}
