"""Groups: their members, and the queues and storages that they grant.

A group is one row of the store, whether these calls, another API, a sign-in provider or an import changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.accounts import ADMIN_GROUP, DEFAULT_GROUP, Group, User
from corral.model.views import GroupView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.people.authentication import Authentication
from corral.spec.errors import did_you_mean
from corral.store.groups import GroupChange

ALL: Final = "*"
BUILT_IN: Final = {
    DEFAULT_GROUP: Group(DEFAULT_GROUP, description="group for default vc"),
    ADMIN_GROUP: Group(ADMIN_GROUP, queues=(ALL,), storages=(ALL,), admin=True, description="admin group"),
}
"""The groups that exist before any is created."""
_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,126}")
_SHOWN: Final = 1000
"""Most members that a view of a group names."""
_MOST_STORAGES: Final = 1000


class Grants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Queues and storages to grant to a group or to revoke; `*` is all."""

    queues: tuple[str, ...] = ()
    manages: tuple[str, ...] = ()
    """Queues that the members manage."""
    storages: tuple[str, ...] = ()


NONE: Final = Grants()


class Groups:
    """Groups as administrators manage them and members see them."""

    def __init__(self, context: Context, authentication: Authentication) -> None:
        self._context = context
        self._store = context.store
        self._authentication = authentication

    async def views(self, actor: Actor) -> list[GroupView]:
        """Every group for administrators; for others the groups that they are in."""
        await self._context.check(actor, "group.read", Resource("group"))
        groups = BUILT_IN | {group.name: group for group in await self._store.groups()}
        members = _members(await self._store.all_users())
        found = [_view(group, members.get(name, [])) for name, group in sorted(groups.items())]
        if actor.is_admin:
            return found
        mine = {name for name, users in members.items() if actor.user in users}
        return [view for view in found if view.name in mine]

    async def get(self, actor: Actor, name: str) -> GroupView:
        """One group.

        Raises NotFound `group-not-found` when it does not exist, or when the caller is not in it.
        """
        found = {view.name: view for view in await self.views(actor)}
        if name not in found:
            raise _no_group(name, found)
        return found[name]

    async def create(
        self,
        actor: Actor,
        name: str,
        grants: Grants = NONE,
        description: str = "",
        max_priority: int | None = None,
    ) -> GroupView:
        """Create a group.

        Raises InvalidInput `bad-group-name`, `unknown-queue`, `unknown-storage`; Conflict `group-exists`.
        """
        resource = Resource("group", name)
        decision = await self._context.check(actor, "group.change", resource)
        if not _NAME.fullmatch(name):
            message = "A group's name has up to 126 of A-Z, a-z, 0-9, _ . - and is neither . nor two of them."
            raise InvalidInput("bad-group-name", message)
        if name in BUILT_IN:
            raise _exists(name)
        await self._check_grants(grants)
        group = Group(
            name,
            grants.queues,
            grants.storages,
            description=description,
            manages=grants.manages,
            max_priority=max_priority,
        )
        told = _told(grants) | ({} if max_priority is None else {"max_priority": max_priority})
        line = self._context.line(actor, "group.change", resource, decision, made=True, **told)
        if not await self._store.add_group(group, line):
            raise _exists(name)
        self._authentication.forget_all()
        return _view(group, [])

    async def change(
        self,
        actor: Actor,
        name: str,
        *,
        grant: Grants = NONE,
        revoke: Grants = NONE,
        add: tuple[str, ...] = (),
        remove: tuple[str, ...] = (),
        description: str | None = None,
        external_name: str | None = None,
        admin: bool | None = None,
        max_priority: int | str | None = None,
    ) -> GroupView:
        """Change a group's grants, members and description, all or nothing.

        With `max_priority` "" the group has no maxPriority.

        Raises NotFound `group-not-found`, `user-not-found`; InvalidInput for unknown queues and storages; Conflict
        `last-admin`, `default-group`, `administrators-group`.
        """
        resource = Resource("group", name)
        decision = await self._context.check(actor, "group.change", resource)
        await self._check_grants(grant)
        if (add or remove) and name == DEFAULT_GROUP:
            message = "The default group has every account without another group; its members cannot be changed."
            raise Conflict("default-group", message)
        if admin is False and name == ADMIN_GROUP:
            raise Conflict("administrators-group", f"Members of {ADMIN_GROUP} are always administrators.")
        told: dict[str, Any] = _told(grant) | {f"revoked_{key}": value for key, value in _told(revoke).items()}
        told |= {"added": list(add)} if add else {}
        told |= {"removed": list(remove)} if remove else {}
        told |= {} if admin is None else {"admin": admin}
        told |= {} if max_priority is None else {"max_priority": max_priority}
        change = GroupChange(
            grant=msgspec.structs.asdict(grant),
            revoke=msgspec.structs.asdict(revoke),
            add=add,
            remove=remove,
            description=description,
            external_name=external_name,
            admin=admin,
            max_priority=max_priority,
        )
        line = self._context.line(actor, "group.change", resource, decision, **told)
        group = await self._store.change_group(name, change, line, BUILT_IN.get(name))
        if group is None:
            raise _no_group(name, [each.name for each in await self._store.groups()])
        self._authentication.forget_all()
        await self._context.streams.look()
        return _view(group, _members(await self._store.all_users()).get(name, []))

    async def delete(self, actor: Actor, name: str) -> None:
        """Delete a group; its members lose what it granted.

        Raises NotFound `group-not-found`, Conflict `built-in-group`.
        """
        await self._context.check(actor, "group.change", Resource("group", name))
        if name in BUILT_IN:
            raise Conflict("built-in-group", f"The group {name} is always there; revoke what it grants instead.")
        known = [group.name for group in await self._store.groups()]
        if name not in known:
            raise _no_group(name, known)
        await self.remove(actor, name)

    async def all(self, actor: Actor) -> list[Group]:
        """Every group."""
        await self._context.check(actor, "group.list", Resource("group"))
        return await self._store.groups()

    async def put(self, actor: Actor, group: Group) -> None:
        """Create or replace a group."""
        resource = Resource("group", group.name)
        decision = await self._context.check(actor, "group.change", resource)
        await self._store.put_group(group)
        self._authentication.forget_all()
        await self._context.note(actor, "group.change", resource, decision, queues=list(group.queues))

    async def remove(self, actor: Actor, name: str) -> None:
        """Delete a group and its memberships."""
        resource = Resource("group", name)
        decision = await self._context.check(actor, "group.change", resource)
        await self._store.remove_group(name)
        self._authentication.forget_all()
        await self._context.note(actor, "group.change", resource, decision, removed=True)

    async def _check_grants(self, grants: Grants) -> None:
        queues = (*((await self._store.admission()).queues or ("default",)), ALL)
        for queue in (*grants.queues, *grants.manages):
            if queue not in queues:
                raise _unknown("queue", queue, queues)
        if not grants.storages:
            return
        page = await self._store.documents(kind="Storage", limit=_MOST_STORAGES)
        storages = (*(each.name for each in page.items), ALL)
        for storage in grants.storages:
            if storage not in storages:
                raise _unknown("storage", storage, storages)


def _members(users: Iterable[User]) -> dict[str, list[str]]:
    """The names of the members of each group, by the memberships that the access rules use."""
    found: dict[str, list[str]] = {}
    for user in users:
        for group in user.memberships:
            found.setdefault(group, []).append(user.name)
    return found


def _view(group: Group, members: list[str]) -> GroupView:
    return GroupView(
        group.name,
        group.description,
        group.external_name,
        group.queues,
        group.manages,
        group.storages,
        group.admin,
        tuple(members[:_SHOWN]),
        len(members),
        group.max_priority,
    )


def _told(grants: Grants) -> dict[str, Any]:
    return {key: list(value) for key, value in msgspec.structs.asdict(grants).items() if value}


def _exists(name: str) -> Conflict:
    return Conflict("group-exists", f"There is a group {name} already; choose another name.")


def _no_group(name: str, known: Iterable[str]) -> NotFound:
    return NotFound(
        "group-not-found", f"There is no group {name[:100]}{_near(name, known, '; `corral groups` lists them')}"
    )


def _near(name: str, known: Iterable[str], unsure: str) -> str:
    """The end of a message about an unknown name: a similar name, or `unsure`."""
    near = did_you_mean(name, tuple(known)) or unsure
    return near if near.endswith("?") else f"{near}."


def _unknown(kind: str, name: str, known: tuple[str, ...]) -> InvalidInput:
    near = _near(name, known, f" (corral get {kind} lists those there are)")
    return InvalidInput(f"unknown-{kind}", f'There is no {kind} "{name[:100]}"{near}')
