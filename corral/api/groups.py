"""Routes for groups: their members, and the queues and storages that they grant or manage."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.parameters import MaxPriority, Name
from corral.api.routers import router_of
from corral.model.records import Page
from corral.model.views import Batch, GroupView
from corral.service.people.groups import Grants

router = router_of("accounts")

_Word = Annotated[str, msgspec.Meta(max_length=126)]
_Words = Annotated[tuple[_Word, ...], msgspec.Meta(max_length=1000)]
_Line = Annotated[str, msgspec.Meta(max_length=1000)]


class GrantWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Queues and storages to grant or to revoke; `*` means all."""

    queues: _Words = ()
    manages: _Words = ()
    """Queues that the members manage."""
    storages: _Words = ()

    def grants(self) -> Grants:
        """Return the same grants as the service's type."""
        return Grants(self.queues, self.manages, self.storages)


class NewGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A group to create."""

    name: _Word
    description: _Line = ""
    grant: GrantWords = GrantWords()
    max_priority: MaxPriority | None = None
    """The highest priority of its members' jobs."""


class GroupChangeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A change of a group, applied as a whole or not at all."""

    grant: GrantWords = GrantWords()
    revoke: GrantWords = GrantWords()
    add: _Words = ()
    """Accounts to add as members."""
    remove: _Words = ()
    description: _Line | None = None
    external_name: _Line | None = None
    """The group's name at the sign-in provider."""
    admin: bool | None = None
    """Whether its members are administrators."""
    max_priority: MaxPriority | Literal[""] | None = None
    """The highest priority of its members' jobs; "" removes the bound."""


@router.post(
    "/users-batch",
    responses=answers(Batch, also=(409,)),
    openapi_extra={"requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def batch_users(
    request: Request,
    actor: Caller,
    dry_run: Annotated[bool, Query(alias="dryRun", description="Only say what each line would do.")] = False,
    links: Annotated[bool, Query(description="Make a sign-in link for each new account.")] = False,
) -> Json:
    """Create and change the accounts of a CSV file: all of them or none."""
    return Json(
        await service_of(request).account_batches.apply(actor, await request.body(), dry_run=dry_run, links=links)
    )


@router.get("/groups", responses=answers(Page[GroupView]))
async def list_groups(request: Request, actor: Caller) -> Json:
    """List all groups for administrators, and the caller's own groups for others."""
    return Json(Page(items=await service_of(request).groups.views(actor)))


@router.post(
    "/groups", status_code=201, responses=answers(GroupView, 201, also=(409,)), openapi_extra=json_body(NewGroup)
)
async def create_group(request: Request, actor: Caller) -> Json:
    """Create a group."""
    asked: NewGroup = read_json(await request.body(), NewGroup)
    made = await service_of(request).groups.create(
        actor, asked.name, asked.grant.grants(), asked.description, asked.max_priority
    )
    return Json(made, 201)


@router.get("/groups/{name}", responses=answers(GroupView))
async def get_group(request: Request, actor: Caller, name: Name) -> Json:
    """Return one group with its members."""
    return Json(await service_of(request).groups.get(actor, name))


@router.post("/groups/{name}", responses=answers(GroupView, also=(409,)), openapi_extra=json_body(GroupChangeWords))
async def change_group(request: Request, actor: Caller, name: Name) -> Json:
    """Change a group's grants, members, description and other properties."""
    asked: GroupChangeWords = read_json(await request.body(), GroupChangeWords)
    changed = await service_of(request).groups.change(
        actor,
        name,
        grant=asked.grant.grants(),
        revoke=asked.revoke.grants(),
        add=asked.add,
        remove=asked.remove,
        description=asked.description,
        external_name=asked.external_name,
        admin=asked.admin,
        max_priority=asked.max_priority,
    )
    return Json(changed)


@router.delete("/groups/{name}", status_code=204, responses=answers(None, 204, also=(409,)))
async def delete_group(request: Request, actor: Caller, name: Name) -> Json:
    """Delete a group; its members lose the permissions that it granted."""
    await service_of(request).groups.delete(actor, name)
    return no_content()
