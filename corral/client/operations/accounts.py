"""Calls for sessions, accounts, API tokens, secrets and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import (
        AccountUse,
        AuditRecord,
        ImportedPage,
        LoginLink,
        Me,
        NewToken,
        SecretView,
        SignedIn,
        TokenView,
        UserChanged,
        UserView,
        VersionView,
    )
    from corral.client.types import Page, Record


def version() -> Call[VersionView]:
    """Return the server's version and features."""
    return call("GET", "/version")


def login(*, link: str = "", user: str = "", password: str = "") -> Call[SignedIn]:
    """Sign in with a one-time link's token, or with user and password."""
    return call("POST", "/login", data={"link": link} if link else {"user": user, "password": password})


def logout() -> Call[None]:
    """Revoke this client's token."""
    return call("POST", "/logout")


def me() -> Call[Me]:
    """Return the caller's name, role and groups."""
    return call("GET", "/me")


def users(*, limit: int = 200, after: str = "") -> Call[Page[UserView]]:
    """Return a page of the accounts."""
    return call("GET", "/users", {"limit": limit, "after": after})


def user(name: str) -> Call[UserView]:
    """Return one account."""
    return call("GET", f"/users/{name}")


def use_of_user(name: str) -> Call[AccountUse]:
    """Return how much of its limits an account uses."""
    return call("GET", f"/users/{name}/use")


def create_user(
    name: str,
    *,
    role: str = "user",
    groups: Sequence[str] = (),
    password: str | None = None,
    email: str = "",
    max_priority: int | None = None,
) -> Call[UserView]:
    """Create an account."""
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
) -> Call[UserChanged]:
    """Change an account; None keeps a field, and `max_priority` "" removes the account's own bound.

    The caller's own password needs the old one or a fresh sign-in. A new password ends sign-ins and, unless
    `keep_tokens`, API tokens.
    """
    data: dict[str, Any] = {"maxPriority": max_priority, "role": role, "email": email}
    data |= {"groups": groups and list(groups), "password": password, "disabled": disabled}
    if password is not None:
        data |= {"oldPassword": old_password, "keepTokens": keep_tokens}
    return call("POST", f"/users/{name}", data=data)


def delete_user(name: str) -> Call[None]:
    """Delete an account."""
    return call("DELETE", f"/users/{name}")


def login_link(name: str) -> Call[LoginLink]:
    """Create a one-time sign-in link for an account."""
    return call("POST", f"/users/{name}/login-link")


def tokens() -> Call[Page[TokenView]]:
    """Return the caller's API tokens."""
    return call("GET", "/tokens")


def create_token(name: str = "", *, days: float = 90.0) -> Call[NewToken]:
    """Create an API token; only this answer contains its secret."""
    return call("POST", "/tokens", data={"name": name, "days": days})


def revoke_token(id: str) -> Call[None]:
    """Revoke one of the caller's API tokens."""
    return call("DELETE", f"/tokens/{id}")


def secrets() -> Call[Page[SecretView]]:
    """Return the names of the caller's secrets."""
    return call("GET", "/secrets")


def put_secret(name: str, value: str) -> Call[None]:
    """Store a secret, encrypted."""
    return call("PUT", f"/secrets/{name}", data={"value": value})


def delete_secret(name: str) -> Call[None]:
    """Delete a secret."""
    return call("DELETE", f"/secrets/{name}")


def audit(
    *,
    by: str = "",
    action: str = "",
    resource: str = "",
    refused: bool = False,
    begin: str = "",
    end: str = "",
    limit: int = 200,
    after: str = "",
) -> Call[Page[AuditRecord]]:
    """Return a page of the audit log, newest first: what one account did, an action, a resource or a kind of these."""
    times = {"from": begin or None, "to": end or None}
    query = {"by": by, "action": action, "resource": resource, "refused": refused, **times}
    return call("GET", "/audit", {**query, "limit": limit, "after": after})


def import_openpai(given: Record, *, dry_run: bool = False, replace: bool = False) -> Call[ImportedPage]:
    """Import groups, accounts, tokens and jobs of an OpenPAI cluster; the answer has the result of each."""
    return call("POST", "/openpai/import", {"dryRun": dry_run, "replace": replace}, data=given)
