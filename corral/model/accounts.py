"""Accounts, groups, tokens and audit lines, as the store, the permission rules and the API share them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.model.records import Record

DEFAULT_GROUP: Final = "default"
"""The group of accounts that are in no other group, and of all accounts made by an API without groups."""
ADMIN_GROUP: Final = "admingroup"
"""The administrators' group; every account with the role `admin` is a member."""


class User(msgspec.Struct, frozen=True):
    """One account; times are seconds since 1970. The store never hands out its password hash."""

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
    """Fields that clients keep with an account, as they wrote them."""
    id: str = ""
    """Unique for ever, given by the store: the name, or the name with a number if a deleted account had that name."""
    max_priority: int | None = None
    """The highest priority that its jobs may have; None: its groups decide."""

    @property
    def folder(self) -> str:
        """Its folder on storages with one folder per user: its id."""
        return self.id or self.name

    @property
    def memberships(self) -> tuple[str, ...]:
        """The groups whose grants it has: its own or else the default one, plus the administrators' by its role."""
        own = self.groups or (DEFAULT_GROUP,)
        return (*own, ADMIN_GROUP) if self.role == "admin" and ADMIN_GROUP not in own else own


class Group(msgspec.Struct, frozen=True):
    """The grants that members of a group have; `*` stands for all."""

    name: str
    queues: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()
    """The first one is the members' default."""
    admin: bool = False
    """Whether its members are administrators."""
    description: str = ""
    external_name: str = ""
    """The group's name in an external directory."""
    extension: dict[str, Any] = {}
    """Fields that clients keep with a group, without the grants, which are above."""
    manages: tuple[str, ...] = ()
    """The queues that its members manage, each with the queues below it."""
    max_priority: int | None = None
    """The highest priority that its members' jobs may have; None sets no bound."""


class Token(msgspec.Struct, frozen=True):
    """One bearer token; only its hash is stored."""

    id: str
    user: str
    name: str
    kind: str
    """How it was made: `api` by its user, `session` by a sign-in, or by a sign-in at the API of the tenant of this name.

    `application` is made for a program at a tenant's API and allows only jobs and reading.
    """
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None


class AuditRecord(Record, frozen=True):
    """One authorization decision about a call that changes something, or that was refused."""

    seq: int
    at: str
    actor: str
    action: str
    resource: str
    rule: str
    allowed: bool
    detail: dict[str, Any] = {}


class AuditFilter(msgspec.Struct, frozen=True):
    """Which lines of the audit log are wanted; an empty field wants all."""

    actor: str = ""
    action: str = ""
    """An action, or the part before its dot: `job` is every action on jobs."""
    resource: str = ""
    """A resource, or its kind: `user:ada`, `user`."""
    refused: bool = False
    """Only what was refused."""
    begin: float | None = None
    end: float | None = None
    """Seconds since 1970: from `begin` on, before `end`."""


class AuditWrite(msgspec.Struct, frozen=True):
    """A line to add to the audit log; `at` is seconds since 1970."""

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
