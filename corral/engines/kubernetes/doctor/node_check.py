"""Check a cluster's nodes: versions, taints, device plugins, DRA drivers and clocks.

One bad node of a hundred causes trouble that looks like the whole cluster's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from corral.engines.kind import Finding
from corral.engines.kubernetes.api.resources import CONFIG_MAPS, NODES, SLICES, Call, Resource
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.devices.managed_nodes import is_managed
from corral.engines.kubernetes.devices.structs import ResourceSlice
from corral.engines.kubernetes.pods.labels import MANAGED
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch import node_structs as kubernetes
from corral.engines.kubernetes.watch.pod_structs import Object, Slim, seconds
from corral.kernel.errors import CorralError
from corral.spec.dialects.accelerators import kind_of

OLDEST: Final = (1, 29)
"""The first Kubernetes version with native sidecars."""
SKEWED_SECONDS: Final = 5.0
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_LEASES: Final = Resource("leases", "coordination.k8s.io")
_SHOWN: Final = 5


class Raw(Slim, frozen=True):
    """A list of which only the items are read."""

    items: tuple[Any, ...] = ()


def numbers(version: str) -> tuple[int, int] | None:
    """Return the major and minor number of a version, or None for invalid text."""
    found = _VERSION.match(version)
    return (int(found[1]), int(found[2])) if found else None


async def machines(transport: Transport, settings: KubernetesSettings, *, with_dra: bool) -> AsyncIterator[Finding]:
    """Check the nodes: their readiness, versions, management and devices."""
    try:
        found = [
            msgspec.convert(item, kubernetes.Node)
            for item in msgspec.json.decode(await transport.ask(Call("list", NODES)), type=Raw).items
        ]
    except CorralError as error:
        yield Finding("nodes", "bad", error.message)
        return
    ready = [node for node in found if any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)]
    state = "good" if ready else "bad"
    yield Finding("nodes", state, f"{len(ready)} of {len(found)} are ready")
    old = [node for node in found if (numbers(node.status.node_info.kubelet_version) or OLDEST) < OLDEST]
    if old:
        yield Finding("kubelets", "bad", f"too old for containers beside tasks: {_named(old)}")
    mine = [node for node in found if is_managed(node)]
    half = [node for node in found if MANAGED in node.metadata.labels and node not in mine]
    shared = len(found) - len(mine) - len(half)
    yield Finding("managed nodes", "good" if mine else "note", f"{_named(mine)}: devices are given by their names")
    yield Finding("shared nodes", "note", f"{shared} nodes: the device plugins choose, Corral counts")
    if half:
        taint = f"{MANAGED}:NoSchedule"
        yield Finding("half managed", "bad", f"labelled, but without the taint {taint}: {_named(half)}")
    for finding in _plugins(found, settings):
        yield finding
    if with_dra:
        yield await _drivers(transport)


def _plugins(machines: Iterable[kubernetes.Node], settings: KubernetesSettings) -> Iterator[Finding]:
    plugins: Counter[str] = Counter()
    for node in machines:
        for resource, amount in node.status.allocatable.items():
            if kind_of(resource, settings.devices) and amount.isdigit():
                plugins[resource] += int(amount)
    said = ", ".join(f"{resource} ({count})" for resource, count in sorted(plugins.items()))
    yield Finding(
        "device plugins", "good" if said else "note", said or "none of those that Corral knows has any device"
    )


async def _drivers(transport: Transport) -> Finding:
    try:
        items = msgspec.json.decode(await transport.ask(Call("list", SLICES)), type=Raw).items
    except CorralError as error:
        return Finding("DRA drivers", "bad", error.message)
    slices = [msgspec.convert(item, ResourceSlice) for item in items]
    drivers: Counter[str] = Counter()
    for found in slices:
        drivers[found.spec.driver] += len(found.spec.devices)
    said = ", ".join(f"{driver} ({count} devices)" for driver, count in sorted(drivers.items()))
    return Finding("DRA drivers", "good" if said else "note", said or "none publishes a device")


def _named(machines: list[kubernetes.Node]) -> str:
    names = [node.metadata.name for node in machines]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN]) or 'no node'}{rest}"


class _Managed(Slim, frozen=True):
    time: str | None = None


class _LeaseMeta(Slim, frozen=True):
    name: str = ""
    managed_fields: tuple[_Managed, ...] = ()


class _LeaseSpec(Slim, frozen=True):
    renew_time: str | None = None


class _Lease(Slim, frozen=True):
    """A node's heartbeat. `renew_time` is by its own clock, the managed fields' time by the server's."""

    metadata: _LeaseMeta = _LeaseMeta()
    spec: _LeaseSpec = _LeaseSpec()


async def clocks(
    transport: Transport, settings: KubernetesSettings, now: Callable[[], float]
) -> AsyncIterator[Finding]:
    """Check clocks against the API server's, to a second."""
    probe = {"metadata": {"generateName": "corral-doctor-"}}
    call, before = Call("create", CONFIG_MAPS, settings.namespace), now()
    try:
        made = await transport.ask(call, params={"dryRun": "All"}, body=msgspec.json.encode(probe), repeatable=True)
        stamp = seconds(msgspec.json.decode(made, type=Object).metadata.creation_timestamp)
        skew = 0.0 if stamp is None or before - 1 <= stamp <= now() + 1 else stamp - now()
        yield _clock("clock", "this machine's", -skew)
    except CorralError as error:
        yield Finding("clock", "note", f"the server's could not be read: {error.message}")
    try:
        answer = await transport.ask(Call("list", _LEASES, "kube-node-lease"))
    except CorralError as error:
        yield Finding("nodes' clocks", "note", f"could not be read: {error.message}")
        return
    leases = [msgspec.convert(item, _Lease) for item in msgspec.json.decode(answer, type=Raw).items]
    skewed = {lease.metadata.name: skew for lease in leases if abs(skew := _skew(lease)) > SKEWED_SECONDS}
    for name, skew in list(skewed.items())[:_SHOWN]:
        yield _clock("nodes' clocks", f"that of {name}", skew)
    if not skewed:
        yield Finding("nodes' clocks", "good", f"{len(leases)} nodes agree with the server")


def _skew(lease: _Lease) -> float:
    """Return the seconds by which the node's clock is ahead."""
    times = [seconds(entry.time) for entry in lease.metadata.managed_fields]
    noted, said = max((time for time in times if time is not None), default=None), seconds(lease.spec.renew_time)
    return 0.0 if noted is None or said is None else said - noted


def _clock(name: str, whose: str, ahead: float) -> Finding:
    if abs(ahead) <= SKEWED_SECONDS:
        return Finding(name, "good", f"{whose} agrees with the server's")
    side = "ahead of" if ahead > 0 else "behind"
    return Finding(name, "bad", f"{whose} is {abs(ahead):.0f} s {side} the server's; run a time service (NTP)")
