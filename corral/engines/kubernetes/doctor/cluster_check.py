"""Examine a cluster before the first job: report each missing thing by name, with what to do.

Everything is only read or tried as a dry run. Checks that need a pod are in `probing`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from corral.engines.kind import Finding
from corral.engines.kubernetes.api.permissions import FOR_DEVICES, NEEDED, Permission
from corral.engines.kubernetes.api.resources import NAMESPACES, Call, Resource
from corral.engines.kubernetes.api.server_version import path_call, server_version
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.doctor.node_check import OLDEST, Raw, clocks, machines, numbers
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.volumes.storage_places import ANY_CLAIM
from corral.kernel.errors import CorralError, Forbidden, NotFound

WITH_DRA: Final = (1, 34)
"""The first Kubernetes version that serves DRA as `resource.k8s.io/v1`."""
_REVIEWS: Final = Resource("selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False)
_CLASSES: Final = Resource("storageclasses", "storage.k8s.io", namespaced=False)
_VOLUME_CLAIMS: Final = Resource("persistentvolumeclaims")
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


async def examine(transport: Transport, settings: KubernetesSettings, now: Callable[[], float]) -> list[Finding]:
    """Run all checks that need no pod. `now` returns this machine's seconds since 1970."""
    found: list[Finding] = []
    try:
        await transport.open()
        version = await server_version(transport)
    except CorralError as error:
        return [Finding("cluster", "bad", error.message)]
    found += _versions(version)
    with_dra = await _serves(transport, "resource.k8s.io", "v1")
    dra = "served: drivers' devices can be given by their names" if with_dra else "not served: devices are counts only"
    found.append(Finding("DRA", "good" if with_dra else "note", f"resource.k8s.io/v1 is {dra}"))
    wanted = NEEDED + (FOR_DEVICES if with_dra else ())
    for part in (
        _namespace(transport, settings),
        _permissions(transport, settings, wanted),
        machines(transport, settings, with_dra=with_dra),
        clocks(transport, settings, now),
        _storage(transport, settings),
    ):
        found += [finding async for finding in part]
    return found


def _versions(version: str) -> Iterator[Finding]:
    read = numbers(version)
    if read is None:
        yield Finding("version", "bad", f"the server reports {version!r}, which is not a version")
    elif read < OLDEST:
        yield Finding("version", "bad", f"Kubernetes {version} is too old; {'.'.join(map(str, OLDEST))} is needed")
    elif read < WITH_DRA:
        least = ".".join(map(str, WITH_DRA))
        yield Finding("version", "note", f"Kubernetes {version} works; devices by their names need {least}")
    else:
        yield Finding("version", "good", f"Kubernetes {version}")


async def _serves(transport: Transport, group: str, version: str) -> bool:
    try:
        await transport.ask(path_call(f"/apis/{group}/{version}"))
    except NotFound:
        return False
    return True


async def _namespace(transport: Transport, settings: KubernetesSettings) -> AsyncIterator[Finding]:
    try:
        await transport.ask(Call("get", NAMESPACES, name=settings.namespace))
        yield Finding("namespace", "good", f"{settings.namespace} is there")
    except NotFound:
        command = f"kubectl create namespace {settings.namespace}"
        yield Finding("namespace", "bad", f"there is no namespace {settings.namespace}; {command}")
    except Forbidden:
        yield Finding("namespace", "note", f"whether {settings.namespace} is there may not be asked")


async def _permissions(
    transport: Transport, settings: KubernetesSettings, wanted: Iterable[Permission]
) -> AsyncIterator[Finding]:
    complete = True
    async for finding in missing(transport, settings, wanted):
        complete = False
        yield finding
    if complete:
        yield Finding("permissions", "good", "all that Corral needs is allowed")


async def missing(
    transport: Transport, settings: KubernetesSettings, wanted: Iterable[Permission]
) -> AsyncIterator[Finding]:
    """Yield the permissions that Corral lacks."""
    for permission in wanted:
        for verb in permission.verbs:
            if not await _allowed(transport, settings.namespace, permission, verb):
                where = "in all namespaces" if permission.everywhere else f"in namespace {settings.namespace}"
                what = f"{verb} {permission.title} {where}, for {permission.purpose}"
                yield Finding("permission", "bad", f"missing: {what}")


async def _allowed(transport: Transport, namespace: str, permission: Permission, verb: str) -> bool:
    resource = permission.resource
    attributes = {
        "verb": verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": permission.subresource,
        "namespace": "" if permission.everywhere else namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    answer = await transport.ask(Call("create", _REVIEWS), body=msgspec.json.encode(review), repeatable=True)
    return bool(msgspec.json.decode(answer, type=dict[str, Any])["status"].get("allowed"))


async def _storage(transport: Transport, settings: KubernetesSettings) -> AsyncIterator[Finding]:
    try:
        items = msgspec.json.decode(await transport.ask(Call("list", _CLASSES)), type=Raw).items
        classes = [item["metadata"] for item in items]
        default = [each["name"] for each in classes if (each.get("annotations") or {}).get(_DEFAULT_CLASS) == "true"]
        names = ", ".join(each["name"] for each in classes) or "none"
        said = f"{default[0]} is the default" if default else f"no default (there are: {names}); name one for claims"
        yield Finding("storage class", "good" if default else "note", said)
    except CorralError as error:
        yield Finding("storage class", "note", error.message)
    for place in settings.storage_places:
        scheme, _, name = place.partition("://")
        if scheme == "pvc" and place != ANY_CLAIM:
            try:
                await transport.ask(Call("get", _VOLUME_CLAIMS, settings.namespace, name))
                yield Finding("volume claim", "good", f"{name} is there")
            except CorralError as error:
                yield Finding("volume claim", "bad", error.message)
