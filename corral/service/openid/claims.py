"""Why: every provider says who somebody is in claims of its own; here they become a name and groups, and nothing else."""

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
    """Who the provider says has signed in."""

    issuer: str
    subject: str
    """What never changes of them there."""
    name: str
    """What the account of theirs is called here, unless they have one."""
    groups: tuple[str, ...] | None = None
    """What they are in there; None when the provider is not asked."""
    session: str = ""
    """The provider's own name of the session, for when it ends."""
    email: str = ""


def person_of(claims: Mapping[str, Any], settings: OpenIdSettings) -> Person:
    """Who these claims, already verified, tell of.

    Raises Forbidden without a name that can be one here, or without any of the groups that are let in.
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
    """A user name as accounts here have it, without an address's domain; "" when nothing is left."""
    name = _UNFIT.sub("-", told.strip().partition("@")[0]).strip("-")[:_LONGEST_NAME]
    return "" if name in (".", "..") else name


def find(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of that name, else what the dots of the name lead to; None when there is nothing.

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
    """A claim that is not there says that there are none: some providers leave it out then."""
    if isinstance(told, str):
        told = re.split(r"[,\s]+", told.strip())
    if not isinstance(told, list):
        return ()
    return tuple(sorted({each for each in told[:_MAX_GROUPS] if isinstance(each, str) and each}))
