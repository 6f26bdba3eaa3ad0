"""The JSON shapes of accounts and groups in OpenPAI's API, shared by all its routes and versions."""

from __future__ import annotations

from typing import Any

import msgspec


class OpenPaiUser(msgspec.Struct, frozen=True, rename="camel"):
    """An account in OpenPAI's API."""

    username: str
    grouplist: tuple[str, ...]
    email: str
    extension: dict[str, Any]
    admin: bool
    virtual_cluster: tuple[str, ...]
    """The virtual clusters that it may use."""
    storage_config: tuple[str, ...]
    """The storages that its groups grant, its default first."""


class OpenPaiGroup(msgspec.Struct, frozen=True, rename="camel"):
    """A group in OpenPAI's API; its grants are `acls` of its extension."""

    groupname: str
    description: str = ""
    external_name: str = ""
    extension: dict[str, Any] = {}


class OpenPaiMember(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of a group's member list."""

    username: str
    cluster_admin: bool


class OpenPaiSignIn(msgspec.Struct, frozen=True):
    """The result of a sign-in."""

    user: str
    token: str
    admin: bool
    has_git_hub_pat: bool = msgspec.field(default=False, name="hasGitHubPAT")

    def __repr__(self) -> str:
        return f"OpenPaiSignIn({self.user!r}, …)"


class UserChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of an account; None leaves a field."""

    email: str | None = None
    virtual_cluster: tuple[str, ...] | None = None
    admin: bool | None = None
    password: str | None = None
    extension: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return "UserChanges(…)"


class GroupChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a group; None leaves a field."""

    description: str | None = None
    external_name: str | None = None
    extension: dict[str, Any] | None = None
