"""Users and groups in OpenPAI's API, managed with the same rules and records as everywhere else."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.compat.openpai.records.accounts import GroupChanges, OpenPaiGroup, OpenPaiMember, OpenPaiUser, UserChanges
from corral.compat.openpai.service.errors import OpenPaiRefusal, administrators_only, bad_parameters, no_group, no_user
from corral.compat.openpai.service.group_mapping import Directory, NoCluster, bounded, directory
from corral.kernel.errors import Conflict
from corral.model.accounts import ADMIN_GROUP, DEFAULT_GROUP, Group, User
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.account_passwords import AccountPasswords
from corral.service.people.accounts import Accounts
from corral.service.people.groups import Groups

SHORTEST_PASSWORD: Final = 6
"""Fewest characters that OpenPAI accepts for a password."""


class OpenPaiAccounts:
    """Manage users and groups through OpenPAI's API."""

    def __init__(self, context: Context, accounts: Accounts, passwords: AccountPasswords, groups: Groups) -> None:
        self._context = context
        self._store = context.store
        self._accounts = accounts
        self._passwords = passwords
        self._groups = groups

    async def users(self, actor: Actor) -> list[OpenPaiUser]:
        """Every account; email and extension are shown only to itself and to administrators."""
        await self._context.check(actor, "user.glance", Resource("user"))
        known = await self._directory()
        users = await self._store.all_users()
        return [known.shown(user, whole=actor.is_admin or actor.user == user.name) for user in users]

    async def user(self, actor: Actor, name: str) -> OpenPaiUser:
        """One account.

        Raises OpenPaiRefusal NoUserError.
        """
        await self._context.check(actor, "user.glance", Resource("user", name, owner=name))
        user = await self._account(name)
        return (await self._directory()).shown(user, whole=actor.is_admin or actor.user == name)

    async def create_user(self, actor: Actor, name: str, told: UserChanges) -> None:
        """Create an account.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "user.create", Resource("user", name))
        bounded(told.extension or {})
        taken = OpenPaiRefusal("ConflictUserError", f"User name {name[:200]} already exists.")
        if await self._store.user(name) is not None:
            raise taken
        try:
            groups = await self._for_clusters(actor, told.virtual_cluster or (), ())
        except NoCluster as missing:  # at creation OpenPAI reports a missing group instead
            raise no_group(missing.name) from None
        try:
            await self._accounts.create(
                actor,
                name,
                role="admin" if told.admin else "user",
                groups=groups,
                password=told.password,
                email=told.email or "",
                extension=told.extension,
                shortest=SHORTEST_PASSWORD,
            )
        except Conflict as error:
            raise taken if error.code == "user-exists" else error from None

    async def update_user(self, actor: Actor, name: str, told: UserChanges, *, merge: bool) -> str:
        """Change an account as an administrator; with `merge` its extension keeps keys that are not given.

        After a new password it returns which tokens are still valid. Changing one's own needs a fresh sign-in.

        Raises OpenPaiRefusal, Forbidden.
        """
        resource = Resource("user", name)
        await self._context.check(actor, "user.change", resource)
        user = await self._account(name)
        told = await self._without_same_password(name, told)
        groups: tuple[str, ...] | None = None
        if told.virtual_cluster is not None:
            groups = await self._for_clusters(actor, told.virtual_cluster, user.groups)
        if told.admin is False:
            known = (await self._directory()).groups
            mine = user.groups if groups is None else groups
            groups = tuple(group for group in mine if group not in known or not known[group].admin)
        changed = await self._accounts.change(
            actor,
            name,
            role=None if told.admin is None else "admin" if told.admin else "user",
            groups=groups,
            **_personal(user, told, merge=merge),
        )
        return changed.notice

    async def set_clusters(self, actor: Actor, name: str, clusters: tuple[str, ...]) -> None:
        """Set the virtual clusters that an account may use; not for administrators, who may use all.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "user.change", Resource("user", name))
        if (await self._directory()).is_admin(await self._account(name)):
            raise OpenPaiRefusal("ForbiddenUserError", "Admin's virtual clusters cannot be updated.")
        await self.update_user(actor, name, UserChanges(virtual_cluster=clusters), merge=True)

    async def update_self(
        self, actor: Actor, told: UserChanges, *, old_password: str = "", merge: bool, name: str = ""
    ) -> str:
        """Change the actor's own account; a new password needs the old one.

        Raises OpenPaiRefusal.
        """
        if name and name != actor.user:
            raise OpenPaiRefusal("ForbiddenUserError", "Can't update other user's data")
        user = await self._account(actor.user)
        action = "user.profile" if told.password is None else "user.password"
        await self._context.check(actor, action, Resource("user", user.name, owner=user.name))
        if told.password is not None and not await self._passwords.check(user.name, old_password):
            raise _wrong_password()
        told = await self._without_same_password(user.name, told)
        if told == UserChanges():
            return ""
        changed = await self._accounts.change(actor, user.name, proven=True, **_personal(user, told, merge=merge))
        return changed.notice

    async def change_profile(self, actor: Actor, name: str, told: UserChanges, old_password: str = "") -> str:
        """Change email, extension or password of the actor's own account, or of any account as an administrator.

        Raises OpenPaiRefusal.
        """
        if actor.is_admin and (actor.user != name or told.password is None):
            return await self.update_user(actor, name, told, merge=True)
        if name != actor.user:
            raise _wrong_password() if told.extension is None else administrators_only()
        return await self.update_self(actor, told, old_password=old_password, merge=True, name=name)

    async def delete_user(self, actor: Actor, name: str) -> None:
        """Delete an account that is not an administrator's.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "user.delete", Resource("user", name))
        user = await self._account(name)
        if (await self._directory()).is_admin(user):
            raise OpenPaiRefusal("RemoveAdminError", f"Admin {name} is not allowed to remove.")
        await self._accounts.delete(actor, name)

    async def set_groups(self, actor: Actor, name: str, names: tuple[str, ...]) -> None:
        """Set the groups of an account.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "user.change", Resource("user", name))
        await self._account(name)
        groups, role = (await self._directory()).named(names)
        await self._accounts.change(actor, name, groups=groups, role=role)

    async def join_group(self, actor: Actor, name: str, group: str) -> None:
        """Add an account to a group.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "user.change", Resource("user", name))
        user = await self._account(name)
        (await self._directory()).group(group)
        await self.set_groups(actor, name, (*await self._still_there(user), group))

    async def leave_group(self, actor: Actor, name: str, group: str) -> None:
        """Remove an account from a group.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "user.change", Resource("user", name))
        user = await self._account(name)
        (await self._directory()).group(group)
        left = tuple(each for each in await self._still_there(user) if each != group)
        await self.set_groups(actor, name, left)

    async def groups(self, actor: Actor) -> list[OpenPaiGroup]:
        """Every group."""
        await self._context.check(actor, "group.read", Resource("group"))
        known = await self._directory()
        return [known.shown_group(group) for group in known.groups.values()]

    async def group(self, actor: Actor, name: str) -> OpenPaiGroup:
        """One group.

        Raises OpenPaiRefusal NoGroupError.
        """
        await self._context.check(actor, "group.read", Resource("group", name))
        known = await self._directory()
        return known.shown_group(known.group(name))

    async def create_group(self, actor: Actor, name: str, told: GroupChanges) -> None:
        """Create a group.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "group.change", Resource("group", name))
        known = await self._directory()
        if name in known.groups:
            raise OpenPaiRefusal("ConflictUserError", f"Group name {name[:200]} already exists.")
        new = Group(name, description=told.description or "", external_name=told.external_name or "")
        await self._groups.put(actor, known.changed(new, told.extension or {}, merge=False))

    async def update_group(self, actor: Actor, name: str, told: GroupChanges, *, merge: bool) -> None:
        """Change the given fields of a group; with `merge` its extension keeps keys that are not given.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "group.change", Resource("group", name))
        known = await self._directory()
        group = known.group(name)
        if told.extension is not None:
            group = known.changed(group, told.extension, merge=merge)
        if told.description is not None:
            group = msgspec.structs.replace(group, description=told.description)
        if told.external_name is not None:
            group = msgspec.structs.replace(group, external_name=told.external_name)
        await self._groups.put(actor, group)

    async def set_in_group(self, actor: Actor, name: str, path: tuple[str, ...], value: Any) -> None:
        """Set one value inside a group's extension; the path is, for example, `acls`, `virtualClusters`.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "group.change", Resource("group", name))
        known = await self._directory()
        whole = msgspec.json.decode(msgspec.json.encode(known.shown_group(known.group(name)).extension))
        inside = whole
        for step in path[:-1]:
            inside = inside.setdefault(step, {})
            if not isinstance(inside, dict):
                raise bad_parameters(f"There is no {'/'.join(path)[:200]} in the extension: {step[:100]} is a value.")
        inside[path[-1]] = value
        await self.update_group(actor, name, GroupChanges(extension=whole), merge=False)

    async def delete_group(self, actor: Actor, name: str) -> None:
        """Delete a group; its members lose what it granted.

        Raises OpenPaiRefusal.
        """
        await self._context.check(actor, "group.change", Resource("group", name))
        (await self._directory()).group(name)
        if name in (DEFAULT_GROUP, ADMIN_GROUP):
            raise OpenPaiRefusal("ForbiddenKeyError", f"Key {name} is system reserved and should not be modified!")
        await self._groups.remove(actor, name)

    async def members(self, actor: Actor, name: str) -> list[OpenPaiMember]:
        """The members of a group; empty for an unknown group."""
        await self._context.check(actor, "group.list", Resource("group", name))
        known = await self._directory()
        users = [user for user in await self._store.all_users() if name in user.memberships]
        return [OpenPaiMember(user.name, known.is_admin(user)) for user in users]

    async def _without_same_password(self, name: str, told: UserChanges) -> UserChanges:
        """Drop a password that the account already has: clients send it along, and it must not end sessions."""
        if told.password is None or not await self._passwords.check(name, told.password):
            return told
        return msgspec.structs.replace(told, password=None)

    async def _directory(self) -> Directory:
        admission = await self._store.admission()
        return directory(await self._store.groups(), admission.queues, admission.granted)

    async def _account(self, name: str) -> User:
        user = await self._store.user(name) if "\0" not in name else None
        if user is None:
            raise no_user(name)
        return user

    async def _still_there(self, user: User) -> tuple[str, ...]:
        known = (await self._directory()).groups
        return tuple(name for name in user.memberships if name in known)

    async def _for_clusters(self, actor: Actor, clusters: tuple[str, ...], before: tuple[str, ...]) -> tuple[str, ...]:
        """The groups for these virtual clusters; missing groups are created."""
        groups, new = (await self._directory()).groups_for(clusters, before)
        for group in new:
            await self._groups.put(actor, group)
        return groups


def _wrong_password() -> OpenPaiRefusal:
    """The refusal of a signed-in caller's wrong password: Forbidden, as in OpenPAI, not a failed sign-in."""
    return OpenPaiRefusal("ForbiddenUserError", "Pls input the correct password.")


def _personal(user: User, told: UserChanges, *, merge: bool) -> dict[str, Any]:
    """The changes that an account's owner may make, as arguments of `change_user`."""
    extension = told.extension
    if extension is not None:
        extension = {**user.extension, **extension} if merge else extension
        bounded(extension)
    return {
        "password": told.password,
        "email": told.email,
        "extension": extension,
        "shortest": SHORTEST_PASSWORD,
    }
