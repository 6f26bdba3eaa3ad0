"""OpenPAI's routes for storages: those that a user may mount, and their settings without credentials.

The two deprecated routes return the same in the format of OpenPAI's first storages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi import Request

from corral.api.authentication import service_of
from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.callers import Administrator, AnyCaller
from corral.compat.openpai.service.errors import OpenPaiRefusal
from corral.kernel.errors import Forbidden, NotFound
from corral.service.actor import Actor
from corral.service.storages.grants import Granted
from corral.spec.storage import StorageDocument

router = late_router()
_USER_NAME: Final = "${PAI_USER_NAME}"
"""The placeholder that OpenPAI's clients replace with the user's name."""
_CHANGES: Final = ["POST", "PUT", "DELETE"]
_OPENPAIS: Final = ("nfs", "samba", "azureFile", "azureBlob", "dshuttle", "other")
_UNKNOWN: Final = "unknown"
"""OpenPAI's type for a volume that it has no type for: a folder, a URI or a claim."""


@router.get("/storages")
async def list_storages(request: Request, actor: AnyCaller) -> Json:
    """List the storages that the caller may use; with `default=true`, those that jobs mount by default."""
    found = await service_of(request).storages.all(actor)
    if request.query_params.get("default") == "true":
        found = [each for each in found if each.default]
    return Json({"storages": [_summary(each) for each in found]})


@router.get("/storages/{name}")
async def get_storage(request: Request, actor: AnyCaller, name: str) -> Json:
    """Return one storage."""
    return Json(_detail(await _granted(request, actor, name)))


@router.get("/storage/config")
async def list_configs(request: Request, actor: AnyCaller) -> Json:
    """List the storages in the format of OpenPAI's first storage configurations."""
    found = _named(await service_of(request).storages.all(actor), request)
    return Json([_config(each, actor.user) for each in found])


@router.get("/storage/config/{name}")
async def get_config(request: Request, actor: AnyCaller, name: str) -> Json:
    """Return one storage configuration."""
    return Json(_config(_one(await service_of(request).storages.all(actor), name, "Config"), actor.user))


@router.get("/storage/server")
async def list_servers(request: Request, actor: AnyCaller) -> Json:
    """List the servers of the storages."""
    found = _named(await service_of(request).storages.all(actor), request)
    return Json([_server(each.storage) for each in found])


@router.get("/storage/server/{name}")
async def get_server(request: Request, actor: AnyCaller, name: str) -> Json:
    """Return one server."""
    return Json(_server(_one(await service_of(request).storages.all(actor), name, "Server").storage))


@router.api_route("/storage/config", methods=_CHANGES)
@router.api_route("/storage/config/{name}", methods=_CHANGES)
@router.api_route("/storage/server", methods=_CHANGES)
@router.api_route("/storage/server/{name}", methods=_CHANGES)
async def change_storage(actor: Administrator) -> Json:
    """Refuse a change: OpenPAI changed its first storages here, but Corral's are documents with more fields."""
    why = "Storages are documents here: apply one of kind Storage (corral apply FILE), or remove it."
    raise OpenPaiRefusal("NotImplementedError", why)


async def _granted(request: Request, actor: Actor, name: str) -> Granted:
    try:
        return await service_of(request).storages.get(actor, name)
    except NotFound as error:
        raise OpenPaiRefusal("NoStorageError", error.message) from None
    except Forbidden:
        message = f"User {actor.user} is not allowed to access {name[:200]}."
        raise OpenPaiRefusal("ForbiddenUserError", message) from None


def _named(found: Iterable[Granted], request: Request) -> list[Granted]:
    """Return the storages that `names` in the query lists; all without it."""
    names = request.query_params.getlist("names")
    return [each for each in found if not names or each.storage.name in names]


def _one(found: Iterable[Granted], name: str, what: str) -> Granted:
    for each in found:
        if each.storage.name == name:
            return each
    raise OpenPaiRefusal("NoStorageError", f"{what} not found.")


def _summary(granted: Granted) -> dict[str, Any]:
    storage = granted.storage
    return {"name": storage.name, "share": storage.share, "volumeName": storage.name, "default": granted.default}


def _detail(granted: Granted) -> dict[str, Any]:
    storage = granted.storage
    told = _summary(granted) | {
        "type": storage.type if storage.type in _OPENPAIS else _UNKNOWN,
        "data": _data(storage),
        "readOnly": storage.read_only,
    }
    if storage.mount_options:
        told["mountOptions"] = storage.mount_options
    if storage.secret_name:
        told["secretName"] = storage.secret_name
    return told


def _data(storage: StorageDocument) -> dict[str, Any]:
    match storage.type:
        case "nfs":
            return {"server": storage.server, "path": storage.path}
        case "samba":
            return {"address": storage.address}
        case "azureFile":
            return {"shareName": storage.share_name} | _account(storage)
        case "azureBlob":
            return {"containerName": storage.container_name} | _account(storage)
        case "dshuttle":
            return dict(storage.attributes)
        case "folder":
            return {"path": storage.path}
        case "uri":
            return {"uri": storage.uri}
        case "pvc":
            return {"claim": storage.claim or storage.name}
    return {}


def _account(storage: StorageDocument) -> dict[str, str]:
    return {"accountName": storage.account_name} if storage.account_name else {}


def _config(granted: Granted, user: str) -> dict[str, Any]:
    storage = granted.storage
    mount = {
        "mountPoint": f"/mnt/{storage.name}",
        "path": _USER_NAME if granted.folder == user else granted.folder,
        "server": storage.name,
        "permission": "ro" if storage.read_only else "rw",
    }
    return {"name": storage.name, "default": granted.default, "servers": [storage.name], "mountInfos": [mount]}


def _server(storage: StorageDocument) -> dict[str, Any]:
    kind = storage.type.lower() if storage.type in _OPENPAIS else _UNKNOWN
    data: dict[str, str] = {}
    match storage.type:
        case "nfs":
            data = {"address": storage.server, "rootPath": storage.path}
        case "samba":
            host, _, share = storage.address.removeprefix("//").partition("/")
            data = {"address": host, "rootPath": share, "domain": ""}
        case "azureFile":
            host = f"{storage.account_name}.file.core.windows.net"
            data = {"dataStore": host, "fileShare": storage.share_name, "accountName": storage.account_name}
        case "azureBlob":
            data = {"dataStore": "", "containerName": storage.container_name, "accountName": storage.account_name}
    return {"spn": storage.name, "type": kind, "data": data, "extension": {}}
