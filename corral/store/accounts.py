"""Store users, groups, tokens and one-time sign-in links. Credentials are stored as hashes only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, bindparam, delete, func, insert, literal, select, update

from corral.kernel.errors import Conflict, NotFound, Unauthenticated
from corral.kernel.plug_ins import SECRETS_OF_ACCOUNTS, plug_ins
from corral.model.accounts import Group, Token, User
from corral.model.compile_caches import CacheScope
from corral.model.notifications.channels import SEALED
from corral.model.records import Page
from corral.store import tables
from corral.store.account_ids import give_id
from corral.store.compile_caches import drop_caches
from corral.store.database import Database, rows
from corral.store.notification_channels import forget_account
from corral.store.paging import bounded, read_cursor, write_cursor
from corral.store.rows import clean, encode, put
from corral.store.tenant_tables import tenant_tables
from corral.store.writer import Transaction

_users, _tokens, _links = tables.users, tables.tokens, tables.login_links
_EXTENSION: Final = msgspec.json.Decoder(dict[str, Any])
_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])
_jobs = tables.jobs
_UID: Final = "uid"
"""The counter of uids: the highest that any account has or had."""
_ASKED: Final = 500
"""Tokens that one statement looks up at most."""
_USER: Final = select(_users).where(_users.c.name == bindparam("n"))


def insert_user(transaction: Transaction, user: User, password_hash: str = "") -> str:
    """Insert a new account and return its id, which is assigned here. The name must be free."""
    row = {
        "name": user.name,
        "role": user.role,
        "groups": encode(user.groups),
        "password_hash": password_hash,
        "uid": user.uid,
        "created_at": user.created_at,
        "disabled": user.disabled,
        "email": clean(user.email),
        "extension": encode(user.extension),
        "id": give_id(transaction, user.name, user.created_at),
        "max_priority": user.max_priority,
    }
    transaction.write(insert(_users), row)
    return str(row["id"])


class Accounts(Database):
    """Users, groups, tokens and one-time sign-in links. The service makes the hashes."""

    async def add_user(self, user: User, password_hash: str = "") -> str:
        """Store a new account and return its id.

        Raises Conflict `user-exists`.
        """

        def run(transaction: Transaction) -> str:
            if transaction.read(_USER, {"n": user.name}).first() is not None:
                raise Conflict("user-exists", f"There is a user {user.name} already; choose another name.")
            return insert_user(transaction, user, password_hash)

        return await self.write(run)

    async def change_user(
        self,
        name: str,
        *,
        role: str | None = None,
        groups: tuple[str, ...] | None = None,
        uid: int | None = None,
        disabled: bool | None = None,
        password_hash: str | None = None,
        at: float = 0.0,
        kept_kinds: tuple[str, ...] = (),
        email: str | None = None,
        extension: dict[str, Any] | None = None,
        max_priority: int | str | None = None,
    ) -> User:
        """Change the fields that are given. `max_priority` "" removes the account's own ceiling.

        A new password revokes all tokens of the user except those of `kept_kinds`, as of `at` (seconds since 1970), and
        deletes all sign-in links of the user.

        Raises NotFound, Conflict `last-admin`.
        """
        changes: dict[str, Any] = {"role": role, "uid": uid, "disabled": disabled, "password_hash": password_hash}
        changes |= {"email": None if email is None else clean(email)}
        changes |= {"extension": None if extension is None else encode(extension)}
        changes = {key: value for key, value in changes.items() if value is not None}
        if groups is not None:
            changes["groups"] = encode(groups)
        if max_priority is not None:
            changes["max_priority"] = max_priority if isinstance(max_priority, int) else None

        def run(transaction: Transaction) -> User:
            _existing(transaction, name)
            if role == "user" or disabled:
                keep_an_admin(transaction, name)
            if changes:
                transaction.write(update(_users).where(_users.c.name == name).values(**changes))
            if password_hash is not None:
                theirs = (_tokens.c.user == name, _tokens.c.kind.not_in(kept_kinds), _tokens.c.revoked_at.is_(None))
                transaction.write(update(_tokens).where(*theirs).values(revoked_at=at))
                transaction.write(delete(_links).where(_links.c.user == name))
            return user_of(transaction.read(_USER, {"n": name}).one())

        return await self.write(run)

    async def allot_uid(self, name: str, first: int) -> User:
        """Assign the next uid from `first` on that no account has or ever had, unless the account has a uid.

        Raises NotFound.
        """

        def run(transaction: Transaction) -> User:
            _existing(transaction, name)
            if transaction.read(_USER, {"n": name}).one().uid is None:
                _pass_uid(transaction, max(first - 1, transaction.read(select(func.max(_users.c.uid))).scalar() or 0))
                uid = transaction.take(_UID)
                transaction.write(update(_users).where(_users.c.name == name).values(uid=uid))
            return user_of(transaction.read(_USER, {"n": name}).one())

        return await self.write(run)

    async def remove_user(self, name: str) -> None:
        """Delete an account with its tokens and links. Its jobs stay, without an owner.

        Raises NotFound, Conflict `last-admin` or `user-has-jobs`.
        """

        def run(transaction: Transaction) -> None:
            _existing(transaction, name)
            keep_an_admin(transaction, name)
            if transaction.read(select(_jobs.c.id).where(_jobs.c.user == name, _jobs.c.live).limit(1)).first():
                raise Conflict("user-has-jobs", f"{name} still has jobs that are not over; stop them first.")
            account = transaction.read(_USER, {"n": name}).one()
            _pass_uid(transaction, account.uid or 0)
            for table, column in (
                (_users, _users.c.name),
                (_tokens, _tokens.c.user),
                (_links, _links.c.user),
                (tables.saved_filters, tables.saved_filters.c.user),
                (tables.openid_identities, tables.openid_identities.c.user),
            ):
                transaction.write(delete(table).where(column == name))
            owned = tables.secrets.c.owner.in_(
                [f"{kind}:{name}" for kind in ("user", SEALED, *plug_ins(SECRETS_OF_ACCOUNTS))]
            )
            transaction.write(delete(tables.secrets).where(owned))
            forget_account(transaction, name)
            _disown(transaction, name, account.id)

        await self.write(run)

    async def user(self, name: str) -> User | None:
        """One account; None when it does not exist."""
        row = await self.read(lambda connection: connection.execute(_USER, {"n": name}).first())
        return None if row is None else user_of(row)

    async def older_namesake(self, user: User) -> str:
        """The id of the oldest earlier account whose id differs from that of `user` only by case, "" for none.

        Deleted accounts count: their folders on storages may still be there.
        """
        ids = tables.account_ids
        same = (func.lower(ids.c.id) == user.folder.lower()) & (ids.c.id != user.folder)
        query = select(ids).where(same).order_by(ids.c.at, ids.c.id)
        found = await self.read(lambda connection: rows(connection, query))
        return next((each.id for each in found if (each.at, each.id) < (user.created_at, user.folder)), "")

    async def password_hash(self, name: str) -> str:
        """The hash of the account's password, "" for none."""
        query = select(_users.c.password_hash).where(_users.c.name == name)
        return await self.read(lambda connection: connection.execute(query).scalar()) or ""

    async def replace_password_hash(self, name: str, before: str, after: str) -> None:
        """Replace the hash of a password by another hash of it, unless the password changed meanwhile."""
        statement = update(_users).where(_users.c.name == name, _users.c.password_hash == before)
        await self.change(statement.values(password_hash=after))

    async def users(self, *, limit: int = 100, after_cursor: str = "") -> Page[User]:
        """One page of the accounts, by name."""
        query = select(_users).order_by(_users.c.name).limit(bounded(limit) + 1)
        key = read_cursor(after_cursor, (str,))
        if key is not None:
            query = query.where(_users.c.name > key[0])
        found = await self.read(lambda connection: rows(connection, query))
        shown = [user_of(row) for row in found[: bounded(limit)]]
        return Page(shown, write_cursor((shown[-1].name,)) if len(found) > len(shown) else None)

    async def all_users(self) -> list[User]:
        """Every account, by name."""
        query = select(_users).order_by(_users.c.name)
        return [user_of(row) for row in await self.read(lambda connection: rows(connection, query))]

    async def count_users(self) -> int:
        """The number of accounts."""
        return int(
            await self.read(
                lambda connection: connection.execute(select(func.count()).select_from(_users)).scalar_one()
            )
        )

    async def put_group(self, group: Group) -> None:
        """Store a group, replacing an earlier one of that name."""
        await self.write(lambda transaction: put(transaction, tables.groups, [group_row(group)]))
        self.admission_changed()

    async def remove_group(self, name: str) -> None:
        """Delete a group and every membership in it, so that a later group of the same name starts empty."""
        naming = select(_users.c.name, _users.c.groups).where(_users.c.groups.contains(encode(name), autoescape=True))

        def run(transaction: Transaction) -> None:
            transaction.write(delete(tables.groups).where(tables.groups.c.name == name))
            drop_caches(transaction, scope=CacheScope("group", name).text)
            for row in transaction.read(naming).all():
                left = tuple(group for group in _NAMES.decode(row.groups) if group != name)
                transaction.write(update(_users).where(_users.c.name == row.name).values(groups=encode(left)))

        await self.write(run)
        self.admission_changed()

    async def groups(self) -> list[Group]:
        """Every group, by name."""
        query = select(tables.groups).order_by(tables.groups.c.name)
        found = await self.read(lambda connection: rows(connection, query))
        return [group_of(row) for row in found]

    async def add_token(self, token: Token, token_hash: str) -> None:
        """Store a token's hash."""
        row = msgspec.structs.asdict(token) | {"hash": token_hash}
        await self.change(insert(_tokens), row)

    async def add_token_once(self, token: Token, token_hash: str) -> bool:
        """Store a token's hash and return True; return False when the hash is stored already, under any id."""
        row = msgspec.structs.asdict(token) | {"hash": token_hash}

        def run(transaction: Transaction) -> bool:
            if transaction.read(select(_tokens.c.id).where(_tokens.c.hash == token_hash)).first() is not None:
                return False
            transaction.write(insert(_tokens), row)
            return True

        return await self.write(run)

    async def find_token(self, token_hash: str) -> tuple[Token, User, list[Group]] | None:
        """The token with this hash, its user, and those of the user's groups that exist."""
        return await self._token_and_user(_tokens.c.hash == token_hash)

    async def find_token_by_id(self, token_id: str) -> tuple[Token, User, list[Group]] | None:
        """The token with this id, its user, and those of the user's groups that exist."""
        return await self._token_and_user(_tokens.c.id == token_id)

    async def _token_and_user(self, wanted: ColumnElement[bool]) -> tuple[Token, User, list[Group]] | None:
        def run(connection: Any) -> tuple[Token, User, list[Group]] | None:
            row = connection.execute(select(_tokens).where(wanted)).first()
            if row is None:
                return None
            user = connection.execute(_USER, {"n": row.user}).first()
            if user is None:
                return None
            named = user_of(user)
            query = select(tables.groups).where(tables.groups.c.name.in_(named.memberships))
            return _token(row), named, [group_of(each) for each in connection.execute(query)]

        return await self.read(run)

    async def tokens(self, user: str) -> list[Token]:
        """The user's tokens, newest first."""
        query = select(_tokens).where(_tokens.c.user == user).order_by(_tokens.c.created_at.desc(), _tokens.c.id)
        return [_token(row) for row in await self.read(lambda connection: rows(connection, query))]

    async def token_hashes(self, user: str) -> dict[str, str]:
        """The hashes of the user's tokens, by the tokens' ids."""
        query = select(_tokens.c.id, _tokens.c.hash).where(_tokens.c.user == user)
        return {row.id: row.hash for row in await self.read(lambda connection: rows(connection, query))}

    async def token(self, token_id: str) -> Token | None:
        """One token; None when it does not exist."""
        query = select(_tokens).where(_tokens.c.id == token_id)
        row = await self.read(lambda connection: connection.execute(query).first())
        return None if row is None else _token(row)

    async def revoke_token(self, token_id: str, at: float) -> None:
        """Revoke a token; a second call changes nothing."""
        statement = (
            update(_tokens).where(_tokens.c.id == token_id, _tokens.c.revoked_at.is_(None)).values(revoked_at=at)
        )
        await self.change(statement)

    async def good_tokens(self, ids: Sequence[str], at: float) -> set[str]:
        """Those of the tokens that are neither revoked nor expired, and whose account is enabled."""
        good = _tokens.c.revoked_at.is_(None) & (_tokens.c.expires_at.is_(None) | (_tokens.c.expires_at > at))
        query = select(_tokens.c.id).join(_users, _users.c.name == _tokens.c.user)
        query = query.where(good, _users.c.disabled.is_(False))

        def run(connection: Any) -> set[str]:
            found: set[str] = set()
            for first in range(0, len(ids), _ASKED):
                some = query.where(_tokens.c.id.in_(ids[first : first + _ASKED]))
                found |= set(connection.execute(some).scalars())
            return found

        return await self.read(run)

    async def touch_tokens(self, used: dict[str, float]) -> None:
        """Record when tokens were last used."""
        statement = update(_tokens).where(_tokens.c.id == bindparam("t")).values(last_used_at=bindparam("w"))
        new = [{"t": token, "w": at} for token, at in used.items()]
        if new:
            await self.change(statement, new)

    async def add_login_link(self, link_hash: str, user: str, created_at: float, expires_at: float) -> None:
        """Store a one-time link's hash, and delete links that expired more than a day ago."""
        row = {"hash": link_hash, "user": user, "created_at": created_at, "expires_at": expires_at, "used_at": None}

        def run(transaction: Transaction) -> None:
            transaction.write(delete(_links).where(_links.c.expires_at < created_at - 86_400))
            transaction.write(insert(_links), row)

        await self.write(run)

    async def use_login_link(self, link_hash: str, now: float) -> str:
        """Consume a one-time link and return its user.

        Raises Unauthenticated when the link is unknown, used or expired.
        """

        def run(transaction: Transaction) -> str:
            row = transaction.read(select(_links).where(_links.c.hash == link_hash)).first()
            if row is None or row.used_at is not None or row.expires_at < now:
                raise Unauthenticated(
                    "bad-link",
                    "This sign-in link was used or has expired; ask an administrator for another (corral users link NAME).",
                )
            transaction.write(update(_links).where(_links.c.hash == link_hash).values(used_at=now))
            return str(row.user)

        return await self.write(run)


def _pass_uid(transaction: Transaction, uid: int) -> None:
    """Advance the uid counter, so that this uid and all lower ones are never assigned again."""
    behind = uid - transaction.current(_UID)
    if behind > 0:
        transaction.take(_UID, behind)


def _disown(transaction: Transaction, name: str, account: str) -> None:
    """Detach jobs, code, idempotency keys and more, so that a later account of this name inherits none."""
    orphans = tables.orphaned_jobs
    theirs = select(_jobs.c.id, literal(account)).where(_jobs.c.user == name, _jobs.c.id.not_in(select(orphans.c.job)))
    transaction.write(insert(orphans).from_select(["job", "account"], theirs))
    transaction.write(delete(tables.submissions).where(tables.submissions.c.user == name))
    transaction.write(delete(tables.idempotency).where(tables.idempotency.c.user == name))
    for column in (column for each in tenant_tables().values() for column in each.by_account):
        transaction.write(update(column.table).where(column == name).values({column.name: ""}))
    drop_caches(transaction, user=name)
    blobs, nobody = tables.blobs, f"{name} (deleted)"  # no account has such a name
    again = select(blobs.c.digest).where(blobs.c.user == name).scalar_subquery()
    transaction.write(delete(blobs).where(blobs.c.user == nobody, blobs.c.digest.in_(again)))
    transaction.write(update(blobs).where(blobs.c.user == name).values(user=nobody))


def user_of(row: Any) -> User:
    """The account in a row."""
    return User(
        name=row.name,
        role=row.role,
        groups=_NAMES.decode(row.groups),
        uid=row.uid,
        created_at=row.created_at,
        disabled=row.disabled,
        has_password=bool(row.password_hash),
        email=row.email,
        extension=_EXTENSION.decode(row.extension),
        id=row.id,
        max_priority=row.max_priority,
    )


def group_of(row: Any) -> Group:
    """The group in a row."""
    return Group(
        row.name,
        _NAMES.decode(row.queues),
        _NAMES.decode(row.storages),
        admin=row.admin,
        description=row.description,
        external_name=row.external_name,
        extension=_EXTENSION.decode(row.extension),
        manages=_NAMES.decode(row.manages),
        max_priority=row.max_priority,
    )


def group_row(group: Group) -> dict[str, Any]:
    """The row of a group."""
    return {
        "name": group.name,
        "queues": encode(group.queues),
        "storages": encode(group.storages),
        "admin": group.admin,
        "description": clean(group.description),
        "external_name": clean(group.external_name),
        "extension": encode(group.extension),
        "manages": encode(group.manages),
        "max_priority": group.max_priority,
    }


def _token(row: Any) -> Token:
    return Token(
        id=row.id,
        user=row.user,
        name=row.name,
        kind=row.kind,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )


def _existing(transaction: Transaction, name: str) -> None:
    if transaction.read(_USER, {"n": name}).first() is None:
        raise NotFound("user-not-found", f"There is no user {name}.")


def keep_an_admin(transaction: Transaction, name: str) -> None:
    """Refuse a change that would leave no administrator.

    Raises Conflict `last-admin`.
    """
    others = select(func.count()).where(_users.c.role == "admin", ~_users.c.disabled, _users.c.name != name)
    this = transaction.read(_USER, {"n": name}).one()
    if this.role == "admin" and not transaction.read(others).scalar_one():
        raise Conflict("last-admin", f"{name} is the last administrator; make another one first.")
