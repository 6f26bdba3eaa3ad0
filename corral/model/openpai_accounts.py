"""Why: accounts and groups have other words at OpenPAI's API, which every one of its routes and versions must share."""

from __future__ import annotations

from typing import Any

import msgspec


class OpenPaiUser(msgspec.Struct, frozen=True, rename="camel"):
    """An account as OpenPAI's clients see it."""

    username: str
    grouplist: tuple[str, ...]
    email: str
    extension: dict[str, Any]
    admin: bool
    virtual_cluster: tuple[str, ...]
    """The virtual clusters that it may use."""
    storage_config: tuple[str, ...]
    """The storages that its groups name, its default one first."""


class OpenPaiGroup(msgspec.Struct, frozen=True, rename="camel"):
    """A group as OpenPAI's clients see it: what it grants is `acls` of its extension."""

    groupname: str
    description: str = ""
    external_name: str = ""
    extension: dict[str, Any] = {}


class OpenPaiMember(msgspec.Struct, frozen=True, rename="camel"):
    """An account as the list of a group's members has it."""

    username: str
    cluster_admin: bool


class OpenPaiSignIn(msgspec.Struct, frozen=True):
    """What signing in gives."""

    user: str
    token: str
    admin: bool
    has_git_hub_pat: bool = msgspec.field(default=False, name="hasGitHubPAT")

    def __repr__(self) -> str:
        return f"OpenPaiSignIn({self.user!r}, …)"


class UserChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What of an account should be different; None leaves it."""

    email: str | None = None
    virtual_cluster: tuple[str, ...] | None = None
    admin: bool | None = None
    password: str | None = None
    extension: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return "UserChanges(…)"


class GroupChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What of a group should be different; None leaves it."""

    description: str | None = None
    external_name: str | None = None
    extension: dict[str, Any] | None = None
