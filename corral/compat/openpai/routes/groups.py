"""OpenPAI's routes for groups, which grant administration, virtual clusters and storages."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.records.accounts import GroupChanges
from corral.compat.openpai.routes.callers import Administrator, AnyCaller, SignedInAdministrator
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import body_of, read
from corral.compat.openpai.routes.users import Update
from corral.compat.openpai.service.errors import bad_parameters

router = late_router()

_LONGEST = 4096
_Text = Annotated[str, msgspec.Meta(max_length=_LONGEST)]
_DEEPEST = 8


class NewGroup(msgspec.Struct, frozen=True, rename="camel"):
    """A group to create."""

    groupname: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_]+$", max_length=255)]
    description: _Text = ""
    external_name: _Text = ""
    extension: dict[str, Any] = {}


class GroupUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """A change of a group."""

    groupname: Annotated[str, msgspec.Meta(max_length=255)]
    description: _Text | None = None
    external_name: _Text | None = None
    extension: dict[str, Any] | None = None


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One field of a group, under its own name as in OpenPAI, or as `data`."""

    data: Any = None
    description: _Text | None = None
    external_name: _Text | None = None
    extension: dict[str, Any] | None = None

    def text(self, named: str | None, name: str) -> str:
        """Return the text of the field, under either name.

        Raises OpenPaiRefusal if it is missing or not text.
        """
        found = self.data if named is None else named
        if not isinstance(found, str) or len(found) > _LONGEST:
            raise bad_parameters(f"{name} is text of at most {_LONGEST} characters.")
        return found


class Value(msgspec.Struct, frozen=True):
    """A JSON value to set within an extension."""

    data: Any


@router.get("")
async def get_all_groups(request: Request, actor: AnyCaller) -> Json:
    """List all groups."""
    return Json(await openpai_of(request).accounts.groups(actor))


@router.post("")
async def create_group(request: Request, actor: SignedInAdministrator) -> Json:
    """Create a group."""
    asked = await body_of(request, NewGroup)
    told = GroupChanges(description=asked.description, external_name=asked.external_name, extension=asked.extension)
    await openpai_of(request).accounts.create_group(actor, asked.groupname, told)
    return _done("group is created successfully")


@router.put("")
async def update_group(request: Request, actor: SignedInAdministrator) -> Json:
    """Change a group."""
    update = await body_of(request, Update)
    asked = read(update.data, GroupUpdate)
    told = GroupChanges(description=asked.description, external_name=asked.external_name, extension=asked.extension)
    if not update.patch:
        told = GroupChanges(
            description=told.description or "",
            external_name=told.external_name or "",
            extension={} if told.extension is None else told.extension,
        )
    await openpai_of(request).accounts.update_group(actor, asked.groupname, told, merge=update.patch)
    return _done(f"update group {asked.groupname} successfully.")


@router.get("/{group}")
async def get_group(request: Request, actor: AnyCaller, group: str) -> Json:
    """Return one group."""
    return Json(await openpai_of(request).accounts.group(actor, group))


@router.delete("/{group}")
async def delete_group(request: Request, actor: SignedInAdministrator, group: str) -> Json:
    """Delete a group."""
    await openpai_of(request).accounts.delete_group(actor, group)
    return _done("group is removed successfully")


@router.get("/{group}/userlist")
async def get_group_members(request: Request, actor: Administrator, group: str) -> Json:
    """List the members of a group."""
    return Json(await openpai_of(request).accounts.members(actor, group))


@router.put("/{group}/extension")
async def update_extension(request: Request, actor: SignedInAdministrator, group: str) -> Json:
    """Set the given fields of a group's extension; a body with `data` replaces all of it."""
    asked = await body_of(request, Part)
    merge = asked.extension is not None
    told = asked.extension if merge else read(asked.data, dict[str, Any])
    await openpai_of(request).accounts.update_group(actor, group, GroupChanges(extension=told), merge=merge)
    return _done("update group extension data successfully.")


@router.put("/{group}/extension/{path:path}")
async def update_in_extension(request: Request, actor: SignedInAdministrator, group: str, path: str) -> Json:
    """Set one value in a group's extension."""
    asked = await body_of(request, Value)
    steps = tuple(step for step in path.split("/") if step)
    if not steps or len(steps) > _DEEPEST:
        raise bad_parameters(f"A path into an extension has up to {_DEEPEST} names.")
    await openpai_of(request).accounts.set_in_group(actor, group, steps, asked.data)
    return _done("Update group extension data successfully.")


@router.put("/{group}/description")
async def update_description(request: Request, actor: SignedInAdministrator, group: str) -> Json:
    """Set the description of a group."""
    asked = await body_of(request, Part)
    told = GroupChanges(description=asked.text(asked.description, "description"))
    await openpai_of(request).accounts.update_group(actor, group, told, merge=True)
    return _done("update group description data successfully.")


@router.put("/{group}/externalname")
async def update_external_name(request: Request, actor: SignedInAdministrator, group: str) -> Json:
    """Set the group's name in an external directory."""
    asked = await body_of(request, Part)
    told = GroupChanges(external_name=asked.text(asked.external_name, "externalName"))
    await openpai_of(request).accounts.update_group(actor, group, told, merge=True)
    return _done("update group externalNameData data successfully.")


def _done(message: str) -> Json:
    return Json({"message": message}, 201)
