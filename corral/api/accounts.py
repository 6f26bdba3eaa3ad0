"""Why: accounts, tokens and secrets are managed by the same rules as jobs; a secret value goes in and never comes out."""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Request

from corral.api.bounds import After, Limit, MaxPriority, Name
from corral.api.callers import Caller, service_of
from corral.api.guessing import guess
from corral.api.limits import Counting
from corral.api.wire import Json, answers, json_body, no_content, read_json
from corral.model.accounts import AuditRecord
from corral.model.records import Page
from corral.model.views import AccountUse, LoginLink, NewToken, SecretView, TokenView, UserChanged, UserView
from corral.service.people import check_email

router = APIRouter(tags=["accounts"])

_Word = Annotated[str, msgspec.Meta(max_length=100)]
_Address = Annotated[str, msgspec.Meta(max_length=1000)]
_Password = Annotated[str, msgspec.Meta(min_length=8, max_length=1024)]


class NewUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An account to make; without a password it is opened by a sign-in link."""

    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_.-]{1,126}$")]
    role: Annotated[str, msgspec.Meta(pattern="^(admin|user)$")] = "user"
    groups: tuple[_Word, ...] = ()
    password: _Password | None = None
    email: _Address = ""
    max_priority: MaxPriority | None = None
    """The highest priority of its jobs; None leaves it to its groups."""


class UserChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What should be different; None leaves it."""

    role: Annotated[str, msgspec.Meta(pattern="^(admin|user)$")] | None = None
    groups: tuple[_Word, ...] | None = None
    password: _Password | None = None
    old_password: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    """For one's own password, unless one has just signed in."""
    keep_tokens: bool = False
    """Whether API tokens outlive a new password."""
    disabled: bool | None = None
    max_priority: MaxPriority | Literal[""] | None = None
    """The highest priority of its jobs; "" leaves it to its groups."""
    email: _Address | None = None
    """An empty one takes it away."""

    def __repr__(self) -> str:
        return "UserChange(…)"


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token to make: what it is for, and how many days it is valid."""

    name: _Word = ""
    days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 90.0


class SecretValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value to seal."""

    value: Annotated[str, msgspec.Meta(max_length=65536)]

    def __repr__(self) -> str:
        return "SecretValue(…)"


@router.get("/users", responses=answers(Page[UserView]))
async def list_users(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """The accounts."""
    return Json(await service_of(request).users(actor, limit=limit, after=after))


@router.post("/users", status_code=201, responses=answers(UserView, 201, also=(409,)), openapi_extra=json_body(NewUser))
async def create_user(request: Request, actor: Caller) -> Json:
    """Make an account."""
    asked: NewUser = read_json(await request.body(), NewUser)
    check_email(asked.email)
    made = await service_of(request).create_user(
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
    """One account."""
    return Json(await service_of(request).user(actor, name))


@router.get("/users/{name}/use", responses=answers(AccountUse))
async def use_of_user(request: Request, actor: Caller, name: Name) -> Json:
    """What an account has waiting, running and kept, of what one account may have."""
    calls: Counting = request.app.state.calls
    return Json(await service_of(request).use_of(actor, name, calls.submits))


@router.post("/users/{name}", responses=answers(UserChanged, also=(409,)), openapi_extra=json_body(UserChange))
async def change_user(request: Request, actor: Caller, name: Name) -> Json:
    """Change an account's role, groups, password, or lock it."""
    asked: UserChange = read_json(await request.body(), UserChange)
    check_email(asked.email or "")
    guessing = name == actor.user and asked.password is not None and bool(asked.old_password)
    async with guess(request, actor.user, "wrong-old-password") if guessing else contextlib.nullcontext():
        changed = await service_of(request).change_user(
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
    """Remove an account; its live jobs must have ended."""
    await service_of(request).delete_user(actor, name)
    return no_content()


@router.post("/users/{name}/login-link", status_code=201, responses=answers(LoginLink, 201))
async def login_link(request: Request, actor: Caller, name: Name) -> Json:
    """Make a one-time sign-in link for an account."""
    return Json(await service_of(request).login_link(actor, name), 201)


@router.get("/tokens", responses=answers(Page[TokenView]))
async def list_tokens(request: Request, actor: Caller) -> Json:
    """The caller's tokens, without their secrets."""
    return Json(Page(items=list(await service_of(request).tokens(actor))))


@router.post("/tokens", status_code=201, responses=answers(NewToken, 201), openapi_extra=json_body(TokenRequest))
async def create_token(request: Request, actor: Caller) -> Json:
    """Make a token; this answer is the only one that shows it."""
    asked: TokenRequest = read_json(await request.body(), TokenRequest)
    return Json(await service_of(request).create_token(actor, name=asked.name, days=asked.days), 201)


@router.delete("/tokens/{name}", status_code=204, responses=answers(None, 204))
async def revoke_token(request: Request, actor: Caller, name: Name) -> Json:
    """Revoke one of the caller's tokens, by its id."""
    await service_of(request).revoke_token(actor, name)
    return no_content()


@router.get("/secrets", responses=answers(Page[SecretView]))
async def list_secrets(request: Request, actor: Caller) -> Json:
    """The names of the caller's secrets."""
    return Json(Page(items=list(await service_of(request).secrets(actor))))


@router.put("/secrets/{name}", status_code=204, responses=answers(None, 204), openapi_extra=json_body(SecretValue))
async def put_secret(request: Request, actor: Caller, name: Name) -> Json:
    """Seal a secret under a name that job files refer to."""
    asked: SecretValue = read_json(await request.body(), SecretValue)
    await service_of(request).put_secret(actor, name, asked.value)
    return no_content()


@router.delete("/secrets/{name}", status_code=204, responses=answers(None, 204))
async def delete_secret(request: Request, actor: Caller, name: Name) -> Json:
    """Forget a secret."""
    await service_of(request).delete_secret(actor, name)
    return no_content()


@router.get("/audit", responses=answers(Page[AuditRecord]))
async def list_audit(request: Request, actor: Caller, limit: Limit = 200, after: After = "") -> Json:
    """Who did what, and which rule decided, newest first."""
    return Json(await service_of(request).audit(actor, limit=limit, after=after))
