"""Mount the storage places (node folders, NFS exports, volume claims) from which an administrator lets jobs move data.

A job that could name any path of a node could read other tenants' data. So an administrator lists the places. A URI
below one of them is reached by mounting that whole place into the container that moves data. A place is written like
the URIs below it: `file:///mnt/data`, `nfs://filer/exports/data`, `pvc://scratch`; `pvc://*` is every claim of the
namespace.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from corral.kernel.errors import InvalidInput

SCHEMES: Final = ("file", "nfs", "pvc")
"""Schemes that are mounted. Libraries move the others."""
ANY_CLAIM: Final = "pvc://*"
_MOUNTED: Final = "/run/corral/places"


class Mount(NamedTuple):
    """A place as a pod mounts it."""

    name: str
    """The volume's name."""
    path: str
    source: dict[str, Any]
    writable: bool


class Reached(NamedTuple):
    """The location of data as seen by the container that moves it."""

    uri: str
    mount: Mount | None
    """None if a library reaches the data."""


def check_place(place: str) -> None:
    """Raise InvalidInput for an invalid place."""
    scheme, mark, rest = place.partition("://")
    good = mark and scheme in SCHEMES and rest and ".." not in rest.split("/")
    if scheme == "file":
        good = good and rest.startswith("/")
    if scheme == "nfs":
        good = good and "/" in rest.strip("/")
    if not good:
        forms = "file:///FOLDER, nfs://HOST/EXPORT, pvc://CLAIM or pvc://*"
        message = f"storage_places names {place[:200]!r}; a place reads {forms}."
        raise InvalidInput("bad-setting", message)


def reach(uri: str, places: Iterable[str], *, writable: bool) -> Reached:
    """Resolve a URI to its location in the container. Raises InvalidInput if it is in no allowed place."""
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return reach(f"file://{uri}", places, writable=writable)
    if scheme not in SCHEMES:
        return Reached(uri, None)
    plain = f"{scheme}://{posixpath.normpath(rest).lstrip('/') if scheme != 'file' else posixpath.normpath(rest)}"
    allowed = list(places)
    for place in sorted(allowed, key=len, reverse=True):
        whole = _whole(place, plain)
        if whole and (plain == whole or plain.startswith(whole.rstrip("/") + "/")):
            mount = _mount(whole, writable)
            return Reached(f"file://{mount.path}{plain[len(whole.rstrip('/')) :]}", mount)
    shown = ", ".join(allowed) or "none"
    message = f"{uri} is in no place that jobs may use on this cluster ({shown}); storage_places can allow it."
    raise InvalidInput("place-not-allowed", message)


def _whole(place: str, uri: str) -> str:
    """Return the place to mount for a URI, provided that the URI is below it."""
    if place != ANY_CLAIM:
        return place.rstrip("/") or place
    scheme, _, rest = uri.partition("://")
    return f"pvc://{rest.partition('/')[0]}" if scheme == "pvc" else ""


def _mount(place: str, writable: bool) -> Mount:
    scheme, _, rest = place.partition("://")
    source: dict[str, Any]
    if scheme == "file":
        source = {"hostPath": {"path": rest, "type": "Directory"}}
    elif scheme == "nfs":
        server, _, export = rest.partition("/")
        source = {"nfs": {"server": server, "path": f"/{export}"} | ({} if writable else {"readOnly": True})}
    else:
        source = {"persistentVolumeClaim": {"claimName": rest}}
    return Mount("", f"{_MOUNTED}/{scheme}/{rest.strip('/')}", source, writable)


def gathered(reached: Iterable[Reached]) -> list[Mount]:
    """Return each place once, with a volume name; writable if anything is written there."""
    mounts: dict[str, Mount] = {}
    for mount in (found.mount for found in reached if found.mount is not None):
        before = mounts.get(mount.path)
        if before is None or mount.writable:
            mounts[mount.path] = mount._replace(name=before.name if before else f"corral-place-{len(mounts)}")
    return list(mounts.values())
