"""Manage accounts; the audit log records each change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.accounts import User
from corral.model.records import LIVE_PHASES, JobFilter, Page, rfc3339
from corral.model.store_writes import SubmitLimit
from corral.model.views import AccountUse, Amount, UserChanged, UserView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.account_passwords import AccountPasswords
from corral.service.people.authentication import Authentication
from corral.service.people.groups import BUILT_IN
from corral.service.people.token_kinds import API, APPLICATION
from corral.spec.errors import did_you_mean

_USER: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,126}")
_SHORTEST: Final = 8
_LONGEST_EMAIL: Final = 254
_EMAIL: Final = re.compile(r"[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+")


class Accounts:
    """The accounts of people, and what each uses of its limits."""

    def __init__(self, context: Context, passwords: AccountPasswords, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._passwords = passwords
        self._authentication = authentication

    async def page(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[UserView]:
        """One page of the accounts, by name."""
        await self._context.check(actor, "user.list", Resource("user"))
        page = await self._store.users(limit=limit, after_cursor=after)
        return Page([_view(user) for user in page.items], page.next)

    async def get(self, actor: Actor, name: str) -> UserView:
        """One account.

        Raises NotFound.
        """
        await self._context.check(actor, "user.read", Resource("user", name, owner=name))
        return _view(await self._existing(name))

    async def use_of(self, actor: Actor, user: str, submits: SubmitLimit | None = None) -> AccountUse:
        """An account's use of its limits; `submits` is the limit on its submissions.

        Raises NotFound, Forbidden.
        """
        await self._context.check(actor, "user.read", Resource("user", user, owner=user))
        account, bounds = await self._existing(user), self._context.allowance
        return AccountUse(
            tasks=Amount(await self._store.open_tasks(user), bounds.tasks),
            code_bytes=Amount(await self._store.code_bytes(user), bounds.code_bytes),
            submissions=Amount(await self._submitted(user, submits), submits.most if submits else 0),
            log_bytes_of_stream=bounds.log_bytes,
            folder_bytes_of_task=bounds.folder_bytes,
            folder=account.folder,
        )

    async def _submitted(self, user: str, limit: SubmitLimit | None) -> int:
        return 0 if limit is None else await self._store.submissions(user, limit.api, self._clock.now())

    async def create(
        self,
        actor: Actor,
        name: str,
        *,
        role: str = "user",
        groups: tuple[str, ...] = (),
        password: str | None = None,
        uid: int | None = None,
        email: str = "",
        max_priority: int | None = None,
        extension: dict[str, Any] | None = None,
        shortest: int = _SHORTEST,
    ) -> UserView:
        """Create an account; without a password it is opened by a sign-in link.

        A password has at least `shortest` characters. Raises InvalidInput, Conflict `user-exists` or `single-user`.
        """
        resource = Resource("user", name)
        decision = await self._context.check(actor, "user.create", resource, role=role)
        check_user_name(name)
        check_role(role)
        if not self._context.several_users and await self._store.count_users() > 0:
            raise Conflict(
                "single-user",
                "This server runs every task under its own account, so it takes one user; "
                "start it as root, or with --trust-users.",
            )
        await self._check_groups(groups)
        user = User(
            name,
            role,
            tuple(groups),
            uid,
            self._clock.now(),
            has_password=password is not None,
            email=email,
            max_priority=max_priority,
            extension=extension or {},
        )
        given = await self._store.add_user(
            user, await self._passwords.hash(password, shortest) if password is not None else ""
        )
        await self._context.note(actor, "user.create", resource, decision, role=role, groups=list(groups))
        return _view(msgspec.structs.replace(user, id=given))

    async def change(
        self,
        actor: Actor,
        name: str,
        *,
        role: str | None = None,
        groups: tuple[str, ...] | None = None,
        password: str | None = None,
        old_password: str = "",
        keep_tokens: bool = False,
        proven: bool = False,
        disabled: bool | None = None,
        uid: int | None = None,
        email: str | None = None,
        extension: dict[str, Any] | None = None,
        shortest: int = _SHORTEST,
        max_priority: int | str | None = None,
    ) -> UserChanged:
        """Change the given fields of an account; everybody may change their own password, address and extension.

        One's own password needs the old one or a fresh sign-in, unless `proven` says that this was checked before. A
        new password ends the account's sign-ins and unused sign-in links and, without `keep_tokens`, its API tokens.
        With `max_priority` "" the account has no limit of its own.

        Raises NotFound, InvalidInput, Forbidden, Conflict `last-admin`.
        """
        own = role is None and groups is None and disabled is None and uid is None and max_priority is None
        action = "user.change"
        if own and (password is not None or email is not None or extension is not None):
            action = "user.profile" if password is None else "user.password"
        resource = Resource("user", name, owner=name)
        decision = await self._context.check(actor, action, resource)
        if role is not None:
            check_role(role)
        if groups is not None:
            before = await self._store.user(name)
            await self._check_groups(groups, () if before is None else before.groups)
        if password is not None and name == actor.user and not proven:
            await self._passwords.prove(actor, old_password)
        hashed = await self._passwords.hash(password, shortest) if password is not None else None
        kept = (APPLICATION, API) if keep_tokens else (APPLICATION,)
        user = await self._store.change_user(
            name,
            role=role,
            groups=groups,
            uid=uid,
            disabled=disabled,
            password_hash=hashed,
            at=self._clock.now(),
            kept_kinds=kept,
            email=email,
            extension=extension,
            max_priority=max_priority,
        )
        self._authentication.forget(user=name)
        await self._context.streams.look()
        await self._context.note(
            actor,
            action,
            resource,
            decision,
            role=role,
            disabled=disabled,
            groups=None if groups is None else list(groups),
            max_priority=max_priority,
        )
        notice = "" if hashed is None else await self._left_after_password(name, keep_tokens=keep_tokens)
        return UserChanged(**msgspec.structs.asdict(_view(user)), notice=notice)

    async def _check_groups(self, names: Iterable[str], before: Iterable[str] = ()) -> None:
        """Check that groups exist; those that an account is in `before` are not asked again.

        Raises InvalidInput `unknown-group`.
        """
        if not (new := set(names) - set(before)):
            return
        known = BUILT_IN.keys() | {group.name for group in await self._store.groups()}
        for name in sorted(new - known):
            near = did_you_mean(name, known)
            end = near if near.endswith("?") else "; make it first (corral groups make)."
            raise InvalidInput("unknown-group", f"There is no group {name[:100]}{end}")

    async def _left_after_password(self, name: str, *, keep_tokens: bool) -> str:
        """Say which tokens a new password ended, and which are still valid."""
        now = self._clock.now()
        left = [
            token.kind
            for token in await self._store.tokens(name)
            if token.revoked_at is None and (token.expires_at is None or token.expires_at > now)
        ]
        ended = "All sign-ins have ended" if keep_tokens else "All sign-ins and API tokens have ended"
        return (
            f"{ended}. Still valid: {left.count(APPLICATION)} application tokens, {left.count(API)} API tokens; "
            "revoke those that are not wanted."
        )

    async def delete(self, actor: Actor, name: str) -> None:
        """Delete an account without live jobs.

        Raises NotFound, Conflict.
        """
        resource = Resource("user", name)
        decision = await self._context.check(actor, "user.delete", resource)
        live = await self._store.list_jobs(JobFilter(users=(name,), phases=LIVE_PHASES), limit=1)
        if live.items:
            raise Conflict("user-has-jobs", f"{name} still has jobs that are not over; stop them first.")
        await self._store.remove_user(name)
        self._authentication.forget(user=name)
        await self._context.streams.look()
        await self._context.note(actor, "user.delete", resource, decision)

    async def _existing(self, name: str) -> User:
        user = await self._store.user(name)
        if user is None:
            raise NotFound("user-not-found", f"There is no user {name[:100]}.")
        return user


def check_user_name(name: str) -> None:
    """Refuse an invalid account name.

    Raises InvalidInput.
    """
    if not _USER.fullmatch(name):
        raise InvalidInput(
            "bad-user-name", "A user name has up to 126 of A-Z, a-z, 0-9, _ . - and is neither . nor two of them."
        )


def check_email(address: str) -> None:
    """Refuse an invalid email address; "" is allowed.

    Raises InvalidInput.
    """
    if address and (len(address) > _LONGEST_EMAIL or not _EMAIL.fullmatch(address)):
        shown = address[:100] if address.isprintable() else ascii(address[:100])
        raise InvalidInput("bad-email", f"{shown} is not a mail address.")


def check_role(role: str) -> None:
    """Refuse an unknown role.

    Raises InvalidInput.
    """
    if role not in ("admin", "user"):
        raise InvalidInput("bad-role", "A role is admin or user.")


def _view(user: User) -> UserView:
    return UserView(
        user.name,
        user.role,
        user.groups,
        user.uid,
        rfc3339(user.created_at),
        user.disabled,
        user.has_password,
        user.folder,
        user.max_priority,
        user.email,
    )
