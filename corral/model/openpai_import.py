"""Why: what is brought over from an OpenPAI cluster, and what became of each part, are said in one shape on both sides."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from corral.model.records import Record

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
_Names = tuple[_Name, ...]
_Text = Annotated[str, msgspec.Meta(max_length=1024)]
Result = Literal["created", "changed", "unchanged", "kept", "refused", "left"]
"""`kept`: there is another one here already, which stays; `refused`: it cannot be one here; `left`: it needs none."""


class ImportGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A group to have."""

    name: _Name
    description: _Text = ""
    external_name: _Text = ""
    queues: _Names = ()
    storages: _Names = ()
    admin: bool = False
    extension: dict[str, Any] = {}


class ImportUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An account to have."""

    name: _Name
    email: _Text = ""
    admin: bool = False
    groups: _Names = ()
    password_hash: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{128})?$")] = ""
    """What OpenPAI stores of the password; it opens the account once, and is hashed anew then."""
    extension: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ImportUser({self.name})"


class ImportToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A token that was exported."""

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
    """A part of what is brought over; it may come in several calls."""

    groups: tuple[ImportGroup, ...] = ()
    users: tuple[ImportUser, ...] = ()
    tokens: tuple[ImportToken, ...] = ()
    jobs: tuple[ImportJob, ...] = ()
    jwt_secret: _Text = ""
    """What the cluster signed its tokens with."""
    tokens_listed: bool = False
    """Whether its tokens were exported, so that no others are good."""
    issuer: _Text = ""
    """The OpenID provider where these users sign in."""
    coming_users: _Names = ()
    """In a trial: users that are not here yet, and will be by then."""

    def __repr__(self) -> str:
        return "OpenPaiImport(…)"


class Imported(Record, frozen=True):
    """What became of one thing."""

    kind: str
    name: str
    result: Result
    message: str = ""


class ImportedPage(Record, frozen=True):
    """What became of everything in one call, in its order."""

    items: tuple[Imported, ...]
