"""The request and the results of importing groups, users, tokens and jobs from an OpenPAI cluster."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from corral.model.records import Record

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
_Names = tuple[_Name, ...]
_Text = Annotated[str, msgspec.Meta(max_length=1024)]
Result = Literal["created", "changed", "unchanged", "kept", "refused", "left"]
"""`kept`: another one of this name exists and stays; `refused`: not valid here; `left`: not needed here."""


class ImportGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A group to create."""

    name: _Name
    description: _Text = ""
    external_name: _Text = ""
    queues: _Names = ()
    storages: _Names = ()
    admin: bool = False
    extension: dict[str, Any] = {}


class ImportUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An account to create."""

    name: _Name
    email: _Text = ""
    admin: bool = False
    groups: _Names = ()
    password_hash: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{128})?$")] = ""
    """OpenPAI's stored password hash; it is accepted for one sign-in, then the password is hashed anew."""
    extension: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ImportUser({self.name})"


class ImportToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A token to import."""

    user: _Name
    token: Annotated[str, msgspec.Meta(max_length=4096)]

    def __repr__(self) -> str:
        return f"ImportToken({self.user})"


class ImportJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A job to submit as its user."""

    user: _Name
    name: _Name
    text: str


class OpenPaiImport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One part of an import, which may be spread over several calls."""

    groups: tuple[ImportGroup, ...] = ()
    users: tuple[ImportUser, ...] = ()
    tokens: tuple[ImportToken, ...] = ()
    jobs: tuple[ImportJob, ...] = ()
    jwt_secret: _Text = ""
    """The secret with which the cluster signed its tokens."""
    tokens_listed: bool = False
    """Whether the cluster's valid tokens were exported; then no other token is accepted."""
    issuer: _Text = ""
    """The OpenID provider where these users sign in."""
    coming_users: _Names = ()
    """In a dry run: users that do not exist yet but will when the import runs."""

    def __repr__(self) -> str:
        return "OpenPaiImport(…)"


class Imported(Record, frozen=True):
    """The result for one imported object."""

    kind: str
    name: str
    result: Result
    message: str = ""


class ImportedPage(Record, frozen=True):
    """The results of one call, in the order of its objects."""

    items: tuple[Imported, ...]
