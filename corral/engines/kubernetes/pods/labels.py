"""The names, labels and annotations by which a pod records its attempt, server, devices and ports.

The pod's name holds the attempt id (`pods.pod_name`), so the API server refuses a second pod of one attempt. A label
holds the server's UID. A restarted server recovers everything from the pods alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from corral.engines.kubernetes.pods.manifest import SERVER_LABEL, pod_name
from corral.engines.kubernetes.watch.pod_structs import Pod, seconds
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.launch import PortRequest, TaskLaunch

DEVICES: Final = "corral.dev/devices"
"""The pod's devices: `x` and a hexadecimal mask with one bit per index."""
PORTS: Final = "ports.corral.dev/"
"""The prefix of a label per port name, with the value `FIRST-COUNT`."""
KILL_AT: Final = "corral.dev/kill-at"
"""When to delete the pod, in whole seconds since 1970, after its task was sent the job's own stop signal."""
FORCE_AFTER: Final = "corral.dev/force-after"
"""Seconds from the request to end until the pod's deletion is forced, if its job sets them."""
EXIT_PATTERNS: Final = "corral.dev/exit-patterns"
"""On pods whose log's end is searched for faults: `true`, or another value if a failure is reported as a block too."""
MANAGED: Final = "corral.dev/managed"
"""The label and taint of nodes that only Corral's pods use."""
_DEVICES: Final = re.compile("x[0-9a-f]{1,62}")
MOST_DEVICES: Final = 4 * 62
"""Devices of one node: the number of bits that a label holds."""
_PORTS: Final = re.compile(r"(\d{1,5})-(\d{1,4})", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,12}", re.ASCII)
_PREFIX: Final = pod_name(AttemptId(""))


def labels_of(launch: TaskLaunch, ports: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Return the labels with the attempt's devices, ports and options."""
    labels = {f"{PORTS}{name}": f"{numbers[0]}-{len(numbers)}" for name, numbers in ports.items() if numbers}
    if launch.runtime is not None and launch.runtime.exit_patterns:
        labels[EXIT_PATTERNS] = "block" if launch.runtime.error_block else "true"
    if launch.force_after_seconds >= 0:
        labels[FORCE_AFTER] = str(launch.force_after_seconds)
    if launch.devices:
        labels[DEVICES] = f"x{sum(1 << device.index for device in launch.devices):x}"
    return labels


def attempt_of(pod: Pod, server: str) -> AttemptId | None:
    """Return the attempt of a pod of this server, None for any other pod."""
    meta = pod.metadata
    return attempt_named(meta.name) if meta.labels.get(SERVER_LABEL) == server else None


def attempt_named(name: str) -> AttemptId | None:
    """Return the attempt whose pod or Secret has this name, None if there is none."""
    if not name.startswith(_PREFIX):
        return None
    name = name.removeprefix(_PREFIX)
    try:
        parse_attempt_id(name)
    except ValueError:
        return None
    return AttemptId(name)


def ports_for(requests: Iterable[PortRequest], first: int) -> dict[str, tuple[int, ...]]:
    """Assign consecutive ports to every name, around those that request a number of their own."""
    asked = tuple(requests)
    taken = {number for request in asked if request.start for number in _numbers(request.start, request)}
    ports: dict[str, tuple[int, ...]] = {}
    for request in asked:
        while not request.start and not taken.isdisjoint(_numbers(first, request)):
            first += 1
        ports[request.name] = _numbers(request.start or first, request)
        first += 0 if request.start else request.count
    return ports


def _numbers(first: int, request: PortRequest) -> tuple[int, ...]:
    return tuple(range(first, first + request.count))


def ports_of(pod: Pod) -> dict[str, tuple[int, ...]]:
    """Return the ports in a pod's labels."""
    ports = {}
    for label, value in pod.metadata.labels.items():
        if label.startswith(PORTS) and (found := _PORTS.fullmatch(value)):
            first, count = int(found[1]), int(found[2])
            ports[label.removeprefix(PORTS)] = tuple(range(first, first + count))
    return ports


def devices_of(pod: Pod) -> frozenset[int]:
    """Return the device indexes in a pod's labels."""
    word = pod.metadata.labels.get(DEVICES, "")
    if not _DEVICES.fullmatch(word):
        return frozenset()
    mask = int(word[1:], 16)
    return frozenset(index for index in range(mask.bit_length()) if mask >> index & 1)


def kill_at_of(pod: Pod) -> float | None:
    """Return when to delete the pod in seconds since 1970, None if unset."""
    word = pod.metadata.labels.get(KILL_AT, "")
    return float(word) if _SECONDS.fullmatch(word) else None


def forced_at_of(pod: Pod) -> float | None:
    """Return when to force the pod's deletion, in seconds since 1970.

    None if nobody requested its deletion, or its job sets no limit.
    """
    meta = pod.metadata
    asked, word = seconds(meta.deletion_timestamp), meta.labels.get(FORCE_AFTER, "")
    if asked is None or not _SECONDS.fullmatch(word):
        return None
    return asked - (meta.deletion_grace_period_seconds or 0) + float(word)


def device_id(resource: str, index: int) -> str:
    """Return the id of a counted device: the plugin's resource, and a number without meaning to the plugin."""
    return f"{resource}#{index}"


def resource_of(device_id: str) -> str:
    """Return the device plugin's resource of a counted device, "" for a device with its own id."""
    resource, mark, _ = device_id.rpartition("#")
    return resource if mark else ""
