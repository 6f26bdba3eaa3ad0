"""Change groups and their members, each change in one transaction with its audit line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import func, insert, select, update

from corral.kernel.errors import Conflict, NotFound
from corral.model.accounts import ADMIN_GROUP, AuditWrite, Group, User
from corral.store import tables
from corral.store.accounts import Accounts, group_of, group_row, insert_user, keep_an_admin, user_of
from corral.store.audit import write_audit
from corral.store.rows import clean, encode, put
from corral.store.writer import Transaction

_users, _groups = tables.users, tables.groups
_GRANTED: Final = ("queues", "manages", "storages")


class GroupChange(msgspec.Struct, frozen=True):
    """A change of a group; None leaves a field as it is."""

    grant: dict[str, tuple[str, ...]]
    """Names by `queues`, `manages` and `storages`."""
    revoke: dict[str, tuple[str, ...]]
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    description: str | None = None
    external_name: str | None = None
    admin: bool | None = None
    max_priority: int | str | None = None
    """"" removes the ceiling."""


class Groups(Accounts):
    """Groups with their members."""

    async def add_group(self, group: Group, audit: AuditWrite) -> bool:
        """Store a new group; False when a group of that name exists."""

        def run(transaction: Transaction) -> bool:
            if transaction.read(select(_groups.c.name).where(_groups.c.name == group.name)).first() is not None:
                return False
            transaction.write(insert(_groups), group_row(group))
            write_audit(transaction, audit)
            return True

        made = await self.write(run)
        self.admission_changed()
        return made

    async def change_group(
        self, name: str, change: GroupChange, audit: AuditWrite, unsaid: Group | None
    ) -> Group | None:
        """Change a group; returns the changed group, None when there is none.

        `unsaid` is the group to start from when none of that name is stored. Raises NotFound for a user that does not
        exist, Conflict `last-admin`.
        """

        def run(transaction: Transaction) -> Group | None:
            row = transaction.read(select(_groups).where(_groups.c.name == name)).first()
            group = unsaid if row is None else group_of(row)
            if group is None:
                return None
            changed = _changed(group, change)
            put(transaction, _groups, [group_row(changed)])
            for user in dict.fromkeys(change.remove):
                _move(transaction, user, name, there=False)
            for user in dict.fromkeys(change.add):
                _move(transaction, user, name, there=True)
            write_audit(transaction, audit)
            return changed

        found = await self.write(run)
        self.admission_changed()
        return found

    async def put_accounts(
        self, before: Mapping[str, User | None], after: Mapping[str, User], audits: Sequence[AuditWrite]
    ) -> None:
        """Create and change accounts, all or none; `before` is their state on which the change is based.

        Raises Conflict `accounts-changed` when an account has changed since, `last-admin`.
        """

        def run(transaction: Transaction) -> None:
            for name, user in after.items():
                row = transaction.read(select(_users).where(_users.c.name == name)).first()
                if (None if row is None else user_of(row)) != before[name]:
                    raise Conflict("accounts-changed", f"{name} has changed since it was read; read the list again.")
                if row is None:
                    insert_user(transaction, user)
                    continue
                said: dict[str, Any] = {"role": user.role, "groups": encode(user.groups), "email": clean(user.email)}
                said |= {"disabled": user.disabled}
                transaction.write(update(_users).where(_users.c.name == name).values(**said))
            admins = select(func.count()).where(_users.c.role == "admin", ~_users.c.disabled)
            if not transaction.read(admins).scalar_one():
                raise Conflict("last-admin", "No enabled administrator would be left; keep one.")
            for audit in audits:
                write_audit(transaction, audit)

        await self.write(run)


def _changed(group: Group, change: GroupChange) -> Group:
    said: dict[str, Any] = {}
    for field in _GRANTED:
        gone = set(change.revoke.get(field, ()))
        kept = [name for name in getattr(group, field) if name not in gone]
        said[field] = tuple(dict.fromkeys((*kept, *change.grant.get(field, ()))))
    if change.description is not None:
        said["description"] = clean(change.description)
    if change.external_name is not None:
        said["external_name"] = clean(change.external_name)
    if change.admin is not None:
        said["admin"] = change.admin
    if change.max_priority is not None:
        said["max_priority"] = change.max_priority if isinstance(change.max_priority, int) else None
    return msgspec.structs.replace(group, **said)


def _move(transaction: Transaction, name: str, group: str, *, there: bool) -> None:
    """Add an account to a group or remove it; membership in the administrators' group is the account's role."""
    row = transaction.read(select(_users).where(_users.c.name == name)).first()
    if row is None:
        raise NotFound("user-not-found", f"There is no user {name[:100]}.")
    user = user_of(row)
    if group == ADMIN_GROUP:
        if not there:
            keep_an_admin(transaction, name)
        values: dict[str, Any] = {"role": "admin" if there else "user"}
    else:
        values = {"groups": encode(_left(user, group, there=there))}
    transaction.write(update(_users).where(_users.c.name == name).values(**values))


def _left(user: User, group: str, *, there: bool) -> tuple[str, ...]:
    own = tuple(each for each in user.memberships if each != ADMIN_GROUP or each in user.groups)
    if there:
        return own if group in own else (*own, group)
    return tuple(each for each in own if each != group)
