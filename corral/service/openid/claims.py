"""Turn a provider's claims into an account name and groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from corral.kernel.errors import Forbidden
from corral.service.openid.settings import OpenIdSettings

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME: Final = 63
_MAX_GROUPS: Final = 1000
_MAX_SUBJECT: Final = 255


class Person(msgspec.Struct, frozen=True):
    """A person who signed in, as described by the provider."""

    issuer: str
    subject: str
    """Identifies the person at the issuer and never changes."""
    name: str
    """The name for a new account of the person here."""
    groups: tuple[str, ...] | None = None
    """The person's groups at the provider; None when the provider is not asked."""
    session: str = ""
    """The provider's id of the session, to end it here when it ends there."""
    email: str = ""


def person_of(claims: Mapping[str, Any], settings: OpenIdSettings) -> Person:
    """The person described by these claims, which must be verified.

    Raises Forbidden without a usable user name, or without any of the allowed groups.
    """
    told = find(claims, settings.user_claim)
    name = account_name(told) if isinstance(told, str) else ""
    if not name:
        raise Forbidden(
            "no-user-name",
            f"The provider does not say your user name in the claim {settings.user_claim}; an administrator sets "
            "oidc_user_claim and oidc_scopes.",
        )
    groups = _groups(find(claims, settings.groups_claim)) if settings.groups_claim else None
    if settings.allowed_groups and not set(settings.allowed_groups) & set(groups or ()):
        raise Forbidden("not-in-a-group", "You are in none of the groups that may sign in; ask an administrator.")
    email, session = claims.get("email"), claims.get("sid")
    return Person(
        settings.issuer,
        str(claims["sub"])[:_MAX_SUBJECT],
        name,
        groups,
        session if isinstance(session, str) else "",
        email if isinstance(email, str) and len(email) <= 254 else "",
    )


def account_name(told: str) -> str:
    """The name made valid for an account, without an address's domain; "" when nothing is left."""
    name = _UNFIT.sub("-", told.strip().partition("@")[0]).strip("-")[:_LONGEST_NAME]
    return "" if name in (".", "..") else name


def find(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of that name, else the value that the name's dots lead to; None when there is none.

    Some claims have dots and slashes in their names (`https://example.org/groups`), so every way to split is tried.
    """
    if path in claims:
        return claims[path]
    for head, rest in _splits(path):
        inner = claims.get(head)
        if isinstance(inner, Mapping) and (found := find(inner, rest)) is not None:
            return found
    return None


def _splits(path: str) -> Iterator[tuple[str, str]]:
    parts = path.split(".")[:10]
    for at in range(1, len(parts)):
        yield ".".join(parts[:at]), ".".join(parts[at:])


def _groups(told: Any) -> tuple[str, ...]:
    """Group names in a claim; a missing claim means no groups, because some providers leave it out then."""
    if isinstance(told, str):
        told = re.split(r"[,\s]+", told.strip())
    if not isinstance(told, list):
        return ()
    return tuple(sorted({each for each in told[:_MAX_GROUPS] if isinstance(each, str) and each}))
