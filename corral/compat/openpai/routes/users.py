"""OpenPAI's routes for accounts, including the legacy ones that change a single field."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import msgspec
from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.api.password_attempts import counted_attempt
from corral.compat.openpai.records.accounts import UserChanges
from corral.compat.openpai.routes.callers import AnyCaller, SignedInAdministrator, SignedInCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import body_of, read
from corral.compat.openpai.service.errors import bad_parameters
from corral.service.actor import Actor

router = late_router()
"""The routes below `/users` of version 2."""
legacy = late_router()
"""The routes below `/user` of version 1."""

UserName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]+$", max_length=126)]
_Password = Annotated[str, msgspec.Meta(min_length=6, max_length=1024)]
_Email = Annotated[str, msgspec.Meta(pattern=r"^([^@\s]+@[^@\s]+)?$", max_length=320)]
_Name = Annotated[str, msgspec.Meta(max_length=255)]
_Names = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=1000)]


class _Private(msgspec.Struct, frozen=True, rename="camel"):
    """A body with a password, hidden from `repr`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class NewUser(_Private, frozen=True):
    """An account to create."""

    username: UserName
    password: _Password
    email: _Email = ""
    admin: bool = False
    virtual_cluster: _Names = ()
    extension: dict[str, Any] = {}


class UserUpdate(_Private, frozen=True):
    """A change of an account."""

    username: UserName
    email: _Email | None = None
    virtual_cluster: _Names | None = None
    admin: bool | None = None
    password: _Password | None = None
    extension: dict[str, Any] | None = None


class SelfUpdate(_Private, frozen=True):
    """A change of the caller's own account."""

    username: UserName
    email: _Email | None = None
    old_password: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    new_password: _Password | None = None
    extension: dict[str, Any] | None = None


class Update(msgspec.Struct, frozen=True):
    """A change of some fields (`patch`), or of all fields."""

    data: dict[str, Any]
    patch: bool = False


class GroupName(msgspec.Struct, frozen=True):
    """The name of one group."""

    groupname: _Name


class GroupList(msgspec.Struct, frozen=True):
    """The names of several groups."""

    grouplist: _Names


class Extension(msgspec.Struct, frozen=True):
    """Data that clients store with an account."""

    extension: dict[str, Any]


class VirtualClusters(msgspec.Struct, frozen=True, rename="camel"):
    """The virtual clusters that an account may use."""

    virtual_cluster: _Names


class NewPassword(_Private, frozen=True):
    """A new password, and the old one as proof of identity."""

    new_password: _Password
    old_password: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class Email(msgspec.Struct, frozen=True):
    """An e-mail address."""

    email: _Email


class Admin(msgspec.Struct, frozen=True):
    """Whether an account is an administrator."""

    admin: bool


class Registration(_Private, frozen=True):
    """An account to create, or (with `modify`) to change, in the format of version 1."""

    username: UserName
    password: _Password | None = None
    admin: bool | None = None
    modify: bool = False


class Removal(msgspec.Struct, frozen=True):
    """An account to delete, in the format of version 1."""

    username: _Name


class NamedClusters(msgspec.Struct, frozen=True, rename="camel"):
    """Virtual clusters in the format of version 1: comma-separated names."""

    virtual_clusters: Annotated[str, msgspec.Meta(max_length=100_000)]


@router.get("")
async def get_all_users(request: Request, actor: AnyCaller) -> Json:
    """List all accounts."""
    return Json(await openpai_of(request).accounts.users(actor))


@router.post("")
async def create_user(request: Request, actor: SignedInAdministrator) -> Json:
    """Create an account."""
    asked = await body_of(request, NewUser)
    told = UserChanges(
        email=asked.email,
        virtual_cluster=asked.virtual_cluster,
        admin=asked.admin,
        password=asked.password,
        extension=asked.extension,
    )
    await openpai_of(request).accounts.create_user(actor, asked.username, told)
    return _done("User is created successfully")


@router.put("")
async def update_user(request: Request, actor: SignedInAdministrator) -> Json:
    """Change an account."""
    update = await body_of(request, Update)
    asked = read(update.data, UserUpdate)
    told = UserChanges(
        email=asked.email,
        virtual_cluster=asked.virtual_cluster,
        admin=asked.admin,
        password=asked.password,
        extension=asked.extension,
    )
    if not update.patch:
        _complete(told)
    notice = await openpai_of(request).accounts.update_user(actor, asked.username, told, merge=update.patch)
    return _done(f"update user {asked.username} successfully.", notice)


@router.put("/me")
async def update_self(request: Request, actor: SignedInCaller) -> Json:
    """Change the caller's own account."""
    update = await body_of(request, Update)
    asked = read(update.data, SelfUpdate)
    told = UserChanges(email=asked.email, password=asked.new_password, extension=asked.extension)
    if not update.patch:
        _complete(told, ("email", "password"))
    async with _old_password(request, actor, told):
        notice = await openpai_of(request).accounts.update_self(
            actor, told, old_password=asked.old_password, merge=update.patch, name=asked.username
        )
    return _done(f"update user {asked.username} successfully.", notice)


@router.get("/{user}")
async def get_user(request: Request, actor: AnyCaller, user: str) -> Json:
    """Return one account."""
    return Json(await openpai_of(request).accounts.user(actor, user))


@router.delete("/{user}")
async def delete_user(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Delete an account."""
    await openpai_of(request).accounts.delete_user(actor, user)
    return Json({"message": "user is removed successfully"})


@router.put("/{user}/extension")
async def update_extension(request: Request, actor: SignedInCaller, user: str) -> Json:
    """Update the data that clients store with an account, such as SSH keys."""
    asked = await body_of(request, Extension)
    await openpai_of(request).accounts.change_profile(actor, user, UserChanges(extension=asked.extension))
    return _done("Update user extension data successfully.")


@router.put("/{user}/grouplist")
async def update_user_grouplist(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Set the groups of an account."""
    asked = await body_of(request, GroupList)
    await openpai_of(request).accounts.set_groups(actor, user, asked.grouplist)
    return _done("update user grouplist successfully.")


@router.put("/{user}/group")
async def update_user_group(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Add an account to a group."""
    asked = await body_of(request, GroupName)
    await openpai_of(request).accounts.join_group(actor, user, asked.groupname)
    return _done(f"User {user} is added into group {asked.groupname}")


@router.delete("/{user}/group")
async def delete_user_group(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Remove an account from a group."""
    asked = await body_of(request, GroupName)
    await openpai_of(request).accounts.leave_group(actor, user, asked.groupname)
    return _done(f"User {user} is removed from group {asked.groupname}")


@router.put("/{user}/virtualcluster")
async def update_virtual_cluster(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Set the virtual clusters that an account may use."""
    asked = await body_of(request, VirtualClusters)
    await openpai_of(request).accounts.set_clusters(actor, user, asked.virtual_cluster)
    return _done("Update user virtualCluster data successfully.")


@router.put("/{user}/password")
async def update_password(request: Request, actor: SignedInCaller, user: str) -> Json:
    """Set the password of an account."""
    asked = await body_of(request, NewPassword)
    told = UserChanges(password=asked.new_password)
    async with _old_password(request, actor, told):
        notice = await openpai_of(request).accounts.change_profile(actor, user, told, asked.old_password)
    return _done("update user password successfully.", notice)


@router.put("/{user}/email")
async def update_email(request: Request, actor: SignedInCaller, user: str) -> Json:
    """Set the e-mail address of an account."""
    asked = await body_of(request, Email)
    await openpai_of(request).accounts.change_profile(actor, user, UserChanges(email=asked.email))
    return _done("Update user email data successfully.")


@router.put("/{user}/admin")
async def update_admin(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Make an account an administrator, or revoke that."""
    asked = await body_of(request, Admin)
    await openpai_of(request).accounts.update_user(actor, user, UserChanges(admin=asked.admin), merge=True)
    return _done("Update user admin permission successfully.")


@legacy.get("/{user}")
async def get_user_of_v1(request: Request, actor: AnyCaller, user: str) -> Json:
    """Return one account."""
    return Json(await openpai_of(request).accounts.user(actor, user))


@legacy.put("")
async def register_user(request: Request, actor: SignedInAdministrator) -> Json:
    """Create or change an account."""
    asked = await body_of(request, Registration)
    told = UserChanges(admin=asked.admin, password=asked.password)
    notice = ""
    if asked.modify:
        notice = await openpai_of(request).accounts.update_user(actor, asked.username, told, merge=True)
    elif asked.password is None:
        raise bad_parameters("A new account needs a password.")
    else:
        await openpai_of(request).accounts.create_user(actor, asked.username, told)
    return _done("update successfully", notice)


@legacy.delete("")
async def remove_user(request: Request, actor: SignedInAdministrator) -> Json:
    """Delete an account."""
    asked = await body_of(request, Removal)
    await openpai_of(request).accounts.delete_user(actor, asked.username)
    return Json({"message": "remove successfully"})


@legacy.put("/{user}/virtualClusters")
async def update_virtual_clusters(request: Request, actor: SignedInAdministrator, user: str) -> Json:
    """Set the virtual clusters that an account may use."""
    asked = await body_of(request, NamedClusters)
    names = tuple(name.strip() for name in asked.virtual_clusters.split(",") if name.strip())
    await openpai_of(request).accounts.update_user(actor, user, UserChanges(virtual_cluster=names), merge=True)
    return _done("update user virtual clusters successfully")


def _old_password(request: Request, actor: Actor, told: UserChanges) -> contextlib.AbstractAsyncContextManager[None]:
    """Count a change of password as a sign-in, so that a stolen session cannot be used to guess the old password."""
    return (
        contextlib.nullcontext()
        if told.password is None
        else counted_attempt(request, actor.user, "ForbiddenUserError")
    )


def _done(message: str, notice: str = "") -> Json:
    """Return OpenPAI's answer; `notice` says which tokens stay valid after a new password."""
    return Json({"message": message} | ({"notice": notice} if notice else {}), 201)


def _complete(told: UserChanges, fields: tuple[str, ...] = UserChanges.__struct_fields__) -> None:
    """Raise OpenPaiRefusal for a full update that lacks fields."""
    missing = [name for name in fields if getattr(told, name) is None]
    if missing:
        names = {"virtual_cluster": "virtualCluster", "password": "newPassword" if len(fields) == 2 else "password"}
        shown = ", ".join(names.get(name, name) for name in missing)
        raise bad_parameters(f"Without patch all fields are needed; these are missing: {shown}.")
