"""Why: a pod must tell by itself whose it is and what it was given: Corral finds it again from nothing else.

Its name holds the attempt id (`pods.pod_name`), so the API server refuses a second pod of one attempt; a label holds the
server's UID; what the task was told of its devices and ports stands in labels too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from corral.engines.kubernetes.objects import Pod, seconds
from corral.engines.kubernetes.pods import SERVER_LABEL, pod_name
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.launch import PortRequest, TaskLaunch

DEVICES: Final = "corral.dev/devices"
"""Which devices the pod was given: `x` and a bit for each index, in hexadecimal."""
PORTS: Final = "ports.corral.dev/"
"""The prefix of labels that tell, by the name of a port, `FIRST-COUNT`."""
KILL_AT: Final = "corral.dev/kill-at"
"""When the pod is to be deleted, in whole seconds since 1970: its task was told to end by a signal of its job's choice."""
FORCE_AFTER: Final = "corral.dev/force-after"
"""How many seconds after it was told to end the pod is given up, if its job says so."""
EXIT_PATTERNS: Final = "corral.dev/exit-patterns"
"""On pods whose failure is looked for in the end of their log; `openpai`: and told of as OpenPAI's clients read it."""
OPENPAI: Final = "openpai"
MANAGED: Final = "corral.dev/managed"
"""The label and taint of nodes that only Corral's pods use."""
_DEVICES: Final = re.compile("x[0-9a-f]{1,62}")
MOST_DEVICES: Final = 4 * 62
"""Of one node, by their indexes: as many as a label has bits for."""
_PORTS: Final = re.compile(r"(\d{1,5})-(\d{1,4})", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,12}", re.ASCII)
_PREFIX: Final = pod_name(AttemptId(""))


def labels_of(launch: TaskLaunch, ports: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """The labels that tell what the attempt was given."""
    labels = {f"{PORTS}{name}": f"{numbers[0]}-{len(numbers)}" for name, numbers in ports.items() if numbers}
    if launch.runtime is not None and launch.runtime.exit_patterns:
        labels[EXIT_PATTERNS] = OPENPAI if launch.runtime.openpai else "true"
    if launch.force_after_seconds >= 0:
        labels[FORCE_AFTER] = str(launch.force_after_seconds)
    if launch.devices:
        labels[DEVICES] = f"x{sum(1 << device.index for device in launch.devices):x}"
    return labels


def attempt_of(pod: Pod, server: str) -> AttemptId | None:
    """The attempt that a pod of this server runs; None for every other pod."""
    meta = pod.metadata
    return attempt_named(meta.name) if meta.labels.get(SERVER_LABEL) == server else None


def attempt_named(name: str) -> AttemptId | None:
    """The attempt whose pod, and what goes with that, has this name; None when it is nobody's."""
    if not name.startswith(_PREFIX):
        return None
    name = name.removeprefix(_PREFIX)
    try:
        parse_attempt_id(name)
    except ValueError:
        return None
    return AttemptId(name)


def ports_for(requests: Iterable[PortRequest], first: int) -> dict[str, tuple[int, ...]]:
    """Ports for every name, one after the other, but for those that begin at a number of their own."""
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
    """The ports that a pod's labels tell."""
    ports = {}
    for label, value in pod.metadata.labels.items():
        if label.startswith(PORTS) and (found := _PORTS.fullmatch(value)):
            first, count = int(found[1]), int(found[2])
            ports[label.removeprefix(PORTS)] = tuple(range(first, first + count))
    return ports


def devices_of(pod: Pod) -> frozenset[int]:
    """The indexes of the devices that a pod's labels tell."""
    word = pod.metadata.labels.get(DEVICES, "")
    if not _DEVICES.fullmatch(word):
        return frozenset()
    mask = int(word[1:], 16)
    return frozenset(index for index in range(mask.bit_length()) if mask >> index & 1)


def kill_at_of(pod: Pod) -> float | None:
    """When the pod is to be deleted; None when nobody said."""
    word = pod.metadata.labels.get(KILL_AT, "")
    return float(word) if _SECONDS.fullmatch(word) else None


def forced_at_of(pod: Pod) -> float | None:
    """When the pod is given up, in seconds since 1970; None while nobody asked for its end, and where its job waits."""
    meta = pod.metadata
    asked, word = seconds(meta.deletion_timestamp), meta.labels.get(FORCE_AFTER, "")
    if asked is None or not _SECONDS.fullmatch(word):
        return None
    return asked - (meta.deletion_grace_period_seconds or 0) + float(word)


def device_id(resource: str, index: int) -> str:
    """The id of a device that is only counted: the plugin's resource, and a number that means nothing to it."""
    return f"{resource}#{index}"


def resource_of(device_id: str) -> str:
    """The device plugin's resource that a counted device is one of; "" for a device with an id of its own."""
    resource, mark, _ = device_id.rpartition("#")
    return resource if mark else ""
