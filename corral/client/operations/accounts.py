"""Why: sessions, accounts, tokens and secrets are asked for in the same words by both clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.types import Page, Record


def version() -> Call[Record]:
    """The server's version and features."""
    return call("GET", "/version")


def login(*, link: str = "", user: str = "", password: str = "") -> Call[Record]:
    """Sign in with a one-time link's token, or with user and password."""
    return call("POST", "/login", data={"link": link} if link else {"user": user, "password": password})


def logout() -> Call[None]:
    """Revoke this client's token."""
    return call("POST", "/logout")


def me() -> Call[Record]:
    """Who one is."""
    return call("GET", "/me")


def users(*, limit: int = 200, after: str = "") -> Call[Page[Record]]:
    """A page of the accounts."""
    return call("GET", "/users", {"limit": limit, "after": after})


def user(name: str) -> Call[Record]:
    """One account."""
    return call("GET", f"/users/{name}")


def use_of_user(name: str) -> Call[Record]:
    """What an account has of what one account may have."""
    return call("GET", f"/users/{name}/use")


def create_user(
    name: str,
    *,
    role: str = "user",
    groups: Sequence[str] = (),
    password: str | None = None,
    email: str = "",
    max_priority: int | None = None,
) -> Call[Record]:
    """Make an account."""
    data: dict[str, Any] = {"name": name, "role": role, "groups": list(groups), "password": password}
    data |= {"email": email} if email else {}
    data |= {} if max_priority is None else {"maxPriority": max_priority}
    return call("POST", "/users", data=data)


def change_user(
    name: str,
    *,
    role: str | None = None,
    groups: Sequence[str] | None = None,
    password: str | None = None,
    old_password: str = "",
    keep_tokens: bool = False,
    disabled: bool | None = None,
    max_priority: int | Literal[""] | None = None,
    email: str | None = None,
) -> Call[Record]:
    """Change an account; None leaves a field. With `max_priority` "" the account has no ceiling of its own.

    One's own password needs the old one or a fresh sign-in; a new password ends sign-ins and, unless `keep_tokens`, API
    tokens.
    """
    data: dict[str, Any] = {"maxPriority": max_priority, "role": role, "email": email}
    data |= {"groups": groups and list(groups), "password": password, "disabled": disabled}
    if password is not None:
        data |= {"oldPassword": old_password, "keepTokens": keep_tokens}
    return call("POST", f"/users/{name}", data=data)


def delete_user(name: str) -> Call[None]:
    """Remove an account."""
    return call("DELETE", f"/users/{name}")


def login_link(name: str) -> Call[Record]:
    """Make a one-time sign-in link for an account."""
    return call("POST", f"/users/{name}/login-link")


def tokens() -> Call[Page[Record]]:
    """One's own tokens."""
    return call("GET", "/tokens")


def create_token(name: str = "", *, days: float = 90.0) -> Call[Record]:
    """Make a token; this answer is the only one with its secret."""
    return call("POST", "/tokens", data={"name": name, "days": days})


def revoke_token(id: str) -> Call[None]:
    """Revoke one of one's tokens."""
    return call("DELETE", f"/tokens/{id}")


def secrets() -> Call[Page[Record]]:
    """The names of one's secrets."""
    return call("GET", "/secrets")


def put_secret(name: str, value: str) -> Call[None]:
    """Seal a secret."""
    return call("PUT", f"/secrets/{name}", data={"value": value})


def delete_secret(name: str) -> Call[None]:
    """Forget a secret."""
    return call("DELETE", f"/secrets/{name}")


def audit(*, limit: int = 200, after: str = "") -> Call[Page[Record]]:
    """A page of the audit log, newest first."""
    return call("GET", "/audit", {"limit": limit, "after": after})


def import_openpai(given: Record, *, dry_run: bool = False, replace: bool = False) -> Call[Record]:
    """Bring over groups, accounts, tokens and jobs of an OpenPAI cluster; what became of each."""
    return call("POST", "/openpai/import", {"dryRun": dry_run, "replace": replace}, data=given)
