"""Manage accounts, groups and secrets, and read the audit log, which records each change."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.accounts import AuditRecord, Group, User
from corral.model.records import LIVE_PHASES, JobFilter, Page, rfc3339
from corral.model.store_writes import SubmitLimit
from corral.model.views import AccountUse, Amount, SecretView, UserChanged, UserView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.openpai import jwt
from corral.service.people.sessions import API, Sessions

_USER: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,126}")
_SECRET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_SHORTEST: Final = 8
_LONGEST: Final = 1024
_LONGEST_EMAIL: Final = 254
_EMAIL: Final = re.compile(r"[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+")
_SECRET_BYTES: Final = 64 * 1024
_MAX_SECRETS: Final = 1000


class People(Sessions):
    """Users, groups, secrets and the audit log."""

    async def users(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[UserView]:
        """One page of the accounts, by name."""
        await self.check(actor, "user.list", Resource("user"))
        page = await self.store.users(limit=limit, after_cursor=after)
        return Page([_view(user) for user in page.items], page.next)

    async def user(self, actor: Actor, name: str) -> UserView:
        """One account.

        Raises NotFound.
        """
        await self.check(actor, "user.read", Resource("user", name, owner=name))
        return _view(await self._existing(name))

    async def use_of(self, actor: Actor, user: str, submits: SubmitLimit | None = None) -> AccountUse:
        """An account's use of its limits; `submits` is the limit on its submissions.

        Raises NotFound, Forbidden.
        """
        await self.check(actor, "user.read", Resource("user", user, owner=user))
        account, bounds = await self._existing(user), self.allowance
        return AccountUse(
            tasks=Amount(await self.store.open_tasks(user), bounds.tasks),
            code_bytes=Amount(await self.store.code_bytes(user), bounds.code_bytes),
            submissions=Amount(await self._submitted(user, submits), submits.most if submits else 0),
            log_bytes_of_stream=bounds.log_bytes,
            folder_bytes_of_task=bounds.folder_bytes,
            folder=account.folder,
        )

    async def _submitted(self, user: str, limit: SubmitLimit | None) -> int:
        return 0 if limit is None else await self.store.submissions(user, limit.api, self.clock.now())

    async def create_user(
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
        decision = await self.check(actor, "user.create", resource, role=role)
        check_user_name(name)
        check_role(role)
        if not self.several_users and await self.store.count_users() > 0:
            raise Conflict(
                "single-user",
                "This server runs every task under its own account, so it takes one user; "
                "start it as root, or with --trust-users.",
            )
        user = User(
            name,
            role,
            tuple(groups),
            uid,
            self.clock.now(),
            has_password=password is not None,
            email=email,
            max_priority=max_priority,
            extension=extension or {},
        )
        given = await self.store.add_user(user, await self._hash(password, shortest) if password is not None else "")
        await self.note(actor, "user.create", resource, decision, role=role, groups=list(groups))
        return _view(msgspec.structs.replace(user, id=given))

    async def change_user(
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
        decision = await self.check(actor, action, resource)
        if role is not None:
            check_role(role)
        if password is not None and name == actor.user and not proven:
            await self.prove(actor, old_password)
        hashed = await self._hash(password, shortest) if password is not None else None
        kept = (jwt.APPLICATION, API) if keep_tokens else (jwt.APPLICATION,)
        user = await self.store.change_user(
            name,
            role=role,
            groups=groups,
            uid=uid,
            disabled=disabled,
            password_hash=hashed,
            at=self.clock.now(),
            kept_kinds=kept,
            email=email,
            extension=extension,
            max_priority=max_priority,
        )
        self._forget(user=name)
        await self.streams.look()
        await self.note(
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

    async def _left_after_password(self, name: str, *, keep_tokens: bool) -> str:
        """Say which tokens a new password ended, and which are still valid."""
        now = self.clock.now()
        left = [
            token.kind
            for token in await self.store.tokens(name)
            if token.revoked_at is None and (token.expires_at is None or token.expires_at > now)
        ]
        ended = "All sign-ins have ended" if keep_tokens else "All sign-ins and API tokens have ended"
        return (
            f"{ended}. Still valid: {left.count(jwt.APPLICATION)} application tokens, {left.count(API)} API tokens; "
            "revoke those that are not wanted."
        )

    async def delete_user(self, actor: Actor, name: str) -> None:
        """Delete an account without live jobs.

        Raises NotFound, Conflict.
        """
        resource = Resource("user", name)
        decision = await self.check(actor, "user.delete", resource)
        live = await self.store.list_jobs(JobFilter(users=(name,), phases=LIVE_PHASES), limit=1)
        if live.items:
            raise Conflict("user-has-jobs", f"{name} still has jobs that are not over; stop them first.")
        await self.store.remove_user(name)
        self._forget(user=name)
        await self.streams.look()
        await self.note(actor, "user.delete", resource, decision)

    async def groups(self, actor: Actor) -> list[Group]:
        """Every group."""
        await self.check(actor, "group.list", Resource("group"))
        return await self.store.groups()

    async def put_group(self, actor: Actor, group: Group) -> None:
        """Create or replace a group."""
        resource = Resource("group", group.name)
        decision = await self.check(actor, "group.change", resource)
        await self.store.put_group(group)
        self._known.clear()
        await self.note(actor, "group.change", resource, decision, queues=list(group.queues))

    async def remove_group(self, actor: Actor, name: str) -> None:
        """Delete a group and its memberships."""
        resource = Resource("group", name)
        decision = await self.check(actor, "group.change", resource)
        await self.store.remove_group(name)
        self._known.clear()
        await self.note(actor, "group.change", resource, decision, removed=True)

    async def secrets(self, actor: Actor) -> list[SecretView]:
        """The names of the actor's secrets."""
        await self.check(actor, "secret.list", Resource("secret", owner=actor.user))
        return [SecretView(name) for name in await self.store.secrets(_owner(actor))]

    async def put_secret(self, actor: Actor, name: str, value: str) -> None:
        """Store a secret of the actor, sealed.

        Raises InvalidInput for a name or a size out of bounds, Conflict `too-many-secrets`.
        """
        resource = Resource("secret", name, owner=actor.user)
        decision = await self.check(actor, "secret.put", resource)
        if not _SECRET.fullmatch(name):
            raise InvalidInput(
                "bad-secret-name", "A secret's name has letters, digits, . _ - and begins with one of the first two."
            )
        if len(value.encode("utf-8", "replace")) > _SECRET_BYTES:
            raise InvalidInput("secret-too-long", f"A secret has at most {_SECRET_BYTES} bytes.")
        there = await self.store.secrets(_owner(actor))
        if name not in there and len(there) >= _MAX_SECRETS:
            raise Conflict("too-many-secrets", f"There are {_MAX_SECRETS} secrets already; delete some first.")
        await self.store.put_secret(
            _owner(actor), name, self.secret_box.seal(_owner(actor), name, value), self.clock.now()
        )
        await self.note(actor, "secret.put", resource, decision)

    async def delete_secret(self, actor: Actor, name: str) -> None:
        """Delete a secret; jobs that received it keep it.

        Raises NotFound.
        """
        resource = Resource("secret", name, owner=actor.user)
        decision = await self.check(actor, "secret.delete", resource)
        if not await self.store.remove_secret(_owner(actor), name):
            raise NotFound("secret-not-found", f"There is no secret {name[:100]} of yours.")
        await self.note(actor, "secret.delete", resource, decision)

    async def audit(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[AuditRecord]:
        """One page of the audit log, the latest line first."""
        await self.check(actor, "audit.read", Resource("audit"))
        return await self.store.audit(limit=limit, after_cursor=after)

    async def _hash(self, password: str, shortest: int) -> str:
        if not shortest <= len(password) <= _LONGEST:
            raise InvalidInput("bad-password", f"A password has {shortest} to {_LONGEST} characters.")
        return await self.passwords.hash(password)

    async def _existing(self, name: str) -> User:
        user = await self.store.user(name)
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
        raise InvalidInput("bad-email", f"{shown} is no address.")


def _owner(actor: Actor) -> str:
    return f"user:{actor.user}"


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
