"""Routes for accounts, API tokens, secrets and the audit log; the value of a secret is never returned."""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal

import msgspec
from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.parameters import TIME, After, Limit, MaxPriority, Name
from corral.api.password_attempts import counted_attempt
from corral.api.rate_limits import ApiCallLimits
from corral.api.routers import router_of
from corral.model.accounts import AuditFilter, AuditRecord
from corral.model.records import Page
from corral.model.views import AccountUse, LoginLink, NewToken, SecretView, TokenView, UserChanged, UserView
from corral.service.people.accounts import check_email
from corral.service.times import read_time

router = router_of("accounts")

_Word = Annotated[str, msgspec.Meta(max_length=100)]
_Address = Annotated[str, msgspec.Meta(max_length=1000)]
_Password = Annotated[str, msgspec.Meta(min_length=8, max_length=1024)]


class NewUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An account to create; without a password, its user first signs in with a one-time link."""

    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_.-]{1,126}$")]
    role: Annotated[str, msgspec.Meta(pattern="^(admin|user)$")] = "user"
    groups: tuple[_Word, ...] = ()
    password: _Password | None = None
    email: _Address = ""
    max_priority: MaxPriority | None = None
    """The highest priority of the account's jobs; None leaves it to the account's groups."""


class UserChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A change of an account; None leaves a field as it is."""

    role: Annotated[str, msgspec.Meta(pattern="^(admin|user)$")] | None = None
    groups: tuple[_Word, ...] | None = None
    password: _Password | None = None
    old_password: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    """Needed when users change their own password, unless they have just signed in."""
    keep_tokens: bool = False
    """Whether the account's API tokens stay valid after a change of password."""
    disabled: bool | None = None
    max_priority: MaxPriority | Literal[""] | None = None
    """The highest priority of the account's jobs; "" leaves it to the account's groups."""
    email: _Address | None = None
    """"" removes the address."""

    def __repr__(self) -> str:
        return "UserChange(…)"


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API token to create: its purpose, and the number of days that it is valid."""

    name: _Word = ""
    days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 90.0


class SecretValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a secret, to be stored encrypted."""

    value: Annotated[str, msgspec.Meta(max_length=65536)]

    def __repr__(self) -> str:
        return "SecretValue(…)"


@router.get("/users", responses=answers(Page[UserView]))
async def list_users(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """List the accounts."""
    return Json(await service_of(request).accounts.page(actor, limit=limit, after=after))


@router.post("/users", status_code=201, responses=answers(UserView, 201, also=(409,)), openapi_extra=json_body(NewUser))
async def create_user(request: Request, actor: Caller) -> Json:
    """Create an account."""
    asked: NewUser = read_json(await request.body(), NewUser)
    check_email(asked.email)
    made = await service_of(request).accounts.create(
        actor,
        asked.name,
        role=asked.role,
        groups=asked.groups,
        password=asked.password,
        email=asked.email,
        max_priority=asked.max_priority,
    )
    return Json(made, 201)


@router.get("/users/{name}", responses=answers(UserView))
async def get_user(request: Request, actor: Caller, name: Name) -> Json:
    """Return one account."""
    return Json(await service_of(request).accounts.get(actor, name))


@router.get("/users/{name}/use", responses=answers(AccountUse))
async def use_of_user(request: Request, actor: Caller, name: Name) -> Json:
    """Return how much of its limits an account uses: jobs waiting and running, and data kept."""
    calls: ApiCallLimits = request.app.state.calls
    return Json(await service_of(request).accounts.use_of(actor, name, calls.submits))


@router.post("/users/{name}", responses=answers(UserChanged, also=(409,)), openapi_extra=json_body(UserChange))
async def change_user(request: Request, actor: Caller, name: Name) -> Json:
    """Change an account's role, groups, password or e-mail address, or disable it."""
    asked: UserChange = read_json(await request.body(), UserChange)
    check_email(asked.email or "")
    guessing = name == actor.user and asked.password is not None and bool(asked.old_password)
    async with counted_attempt(request, actor.user, "wrong-old-password") if guessing else contextlib.nullcontext():
        changed = await service_of(request).accounts.change(
            actor,
            name,
            role=asked.role,
            groups=asked.groups,
            password=asked.password,
            old_password=asked.old_password,
            keep_tokens=asked.keep_tokens,
            disabled=asked.disabled,
            max_priority=asked.max_priority,
            email=asked.email,
        )
    return Json(changed)


@router.delete("/users/{name}", status_code=204, responses=answers(None, 204, also=(409,)))
async def delete_user(request: Request, actor: Caller, name: Name) -> Json:
    """Delete an account; refused while it has jobs that have not ended."""
    await service_of(request).accounts.delete(actor, name)
    return no_content()


@router.post("/users/{name}/login-link", status_code=201, responses=answers(LoginLink, 201))
async def login_link(request: Request, actor: Caller, name: Name) -> Json:
    """Create a one-time sign-in link for an account."""
    return Json(await service_of(request).sessions.login_link(actor, name), 201)


@router.get("/tokens", responses=answers(Page[TokenView]))
async def list_tokens(request: Request, actor: Caller) -> Json:
    """List the caller's API tokens, without their secrets."""
    return Json(Page(items=list(await service_of(request).tokens.all(actor))))


@router.post("/tokens", status_code=201, responses=answers(NewToken, 201), openapi_extra=json_body(TokenRequest))
async def create_token(request: Request, actor: Caller) -> Json:
    """Create an API token; only this answer contains its secret."""
    asked: TokenRequest = read_json(await request.body(), TokenRequest)
    return Json(await service_of(request).tokens.create(actor, name=asked.name, days=asked.days), 201)


@router.delete("/tokens/{name}", status_code=204, responses=answers(None, 204))
async def revoke_token(request: Request, actor: Caller, name: Name) -> Json:
    """Revoke one of the caller's API tokens, by its id."""
    await service_of(request).tokens.revoke(actor, name)
    return no_content()


@router.get("/secrets", responses=answers(Page[SecretView]))
async def list_secrets(request: Request, actor: Caller) -> Json:
    """List the names of the caller's secrets."""
    return Json(Page(items=list(await service_of(request).secrets.names(actor))))


@router.put("/secrets/{name}", status_code=204, responses=answers(None, 204), openapi_extra=json_body(SecretValue))
async def put_secret(request: Request, actor: Caller, name: Name) -> Json:
    """Store a secret, encrypted, under a name that job files refer to."""
    asked: SecretValue = read_json(await request.body(), SecretValue)
    await service_of(request).secrets.put(actor, name, asked.value)
    return no_content()


@router.delete("/secrets/{name}", status_code=204, responses=answers(None, 204))
async def delete_secret(request: Request, actor: Caller, name: Name) -> Json:
    """Delete a secret."""
    await service_of(request).secrets.delete(actor, name)
    return no_content()


@router.get("/audit", responses=answers(Page[AuditRecord]))
async def list_audit(
    request: Request,
    actor: Caller,
    by: Annotated[str, Query(max_length=200, description="Only what this account did or was refused.")] = "",
    action: Annotated[
        str, Query(max_length=100, description="Only this action, or all of a kind: `job.stop`, `job`.")
    ] = "",
    resource: Annotated[
        str, Query(max_length=500, description="Only this resource, or all of a kind: `user:ada`, `user`.")
    ] = "",
    refused: Annotated[bool, Query(description="Only what was refused.")] = False,
    begin: Annotated[str, Query(alias="from", max_length=50, description=f"Only lines from then on. {TIME}")] = "",
    end: Annotated[str, Query(alias="to", max_length=50, description=f"Only lines before then. {TIME}")] = "",
    limit: Limit = 200,
    after: After = "",
) -> Json:
    """List the audit log, newest first: each action, its actor, and the rule that allowed or denied it."""
    since, until = (read_time(name, text) if text else None for name, text in (("from", begin), ("to", end)))
    wanted = AuditFilter(by, action, resource, refused, since, until)
    return Json(await service_of(request).audit_log.page(actor, wanted, limit=limit, after=after))
