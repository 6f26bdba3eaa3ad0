"""Check `roles[].kubernetes.podTemplate` and merge it below Corral's own pod.

A template may set fields that Corral has no setting for. In the strategic merge it is the lower layer and Corral's pod
the upper one. Maps are merged, lists of named elements are merged by name, other lists are joined. A template that sets
a field reserved for Corral is refused with the field's name, because dropping it silently would confuse its author.
Privileges and host paths are checked in `templatepolicy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corral.kernel.errors import InvalidInput

TASK: Final = "task"
"""The container that runs the task's command. A template's container of this name is merged into it."""

_PORT: Final = "containerPort"
_MERGE_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "claims": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": _PORT,
    "hostAliases": "ip",
}
"""The merge key of each list field (`x-kubernetes-patch-merge-key` of Kubernetes' OpenAPI document)."""

_POD_FIELDS: Final = {
    "nodeName": "the scheduler decides the node",
    "nodeSelector": "use roles[].nodeSelector",
    "affinity": "use roles[].topology or roles[].nodeSelector",
    "topologySpreadConstraints": "use roles[].topology",
    "schedulerName": "Corral is the scheduler",
    "schedulingGates": "Corral is the scheduler",
    "restartPolicy": "use retryPolicy",
    "activeDeadlineSeconds": "use roles[].maxTaskSeconds",
    "terminationGracePeriodSeconds": "use checkpoint.graceSeconds",
    "priority": "use priority",
    "priorityClassName": "use priority",
    "preemptionPolicy": "use priority",
    "resources": "use roles[].resources",
    "resourceClaims": "use roles[].resources.devices",
    "hostname": "Corral names the task",
    "subdomain": "Corral names the task",
    "ephemeralContainers": "they cannot be part of a template",
}
_TASK_FIELDS: Final = {
    "command": "use roles[].command",
    "args": "use roles[].command",
    "image": "use roles[].image",
    "restartPolicy": "use retryPolicy",
}
_META_FIELDS: Final = frozenset({"labels", "annotations"})
_OURS: Final = "corral.dev/"
_POSING: Final = frozenset(f"app.kubernetes.io/{name}" for name in ("name", "instance", "component", "managed-by"))
"""Labels by which Services, and Prometheus of the chart, find Corral's own pods in the namespace of jobs."""
MOST_DEPTH: Final = 40


def check_template(template: Mapping[str, Any], path: str = "kubernetes.podTemplate", *, entry: bool = False) -> None:
    """Raise InvalidInput for the first field of the template that Corral sets, saying what to use instead.

    `entry`: the task runs its image's entry point, which may be given arguments.
    """
    for found, why in _problems(template):
        if entry and found.endswith(".args"):
            continue
        raise InvalidInput("pod-template-field", f"{path}.{found} cannot be set: {why}.")


def merged(template: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `pod` over the template and return the result. Neither argument is changed."""
    return _merge_maps(template, pod)


def _problems(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if _depth(template) > MOST_DEPTH:
        yield "", "it is nested too deeply"
        return
    yield from ((key, "a template has metadata and spec only") for key in template if key not in {"metadata", "spec"})
    metadata, spec = template.get("metadata", {}), template.get("spec", {})
    for name, value in (("metadata", metadata), ("spec", spec)):
        if not isinstance(value, Mapping):
            yield name, "it must be a mapping"
            return
    for key, value in metadata.items():
        if key not in _META_FIELDS:
            yield f"metadata.{key}", "only labels and annotations can be"
        elif not isinstance(value, Mapping):
            yield f"metadata.{key}", "it must be a mapping"
        else:
            yield from (
                (f"metadata.{key}[{name}]", "the prefix is Corral's") for name in value if name.startswith(_OURS)
            )
            if key == "labels":
                why = "Corral's own pods are found by this label"
                yield from ((f"metadata.{key}[{name}]", why) for name in value if name in _POSING)
    yield from ((f"spec.{key}", _POD_FIELDS[key]) for key in spec if key in _POD_FIELDS)
    for field in ("containers", "initContainers"):
        yield from _container_problems(field, spec.get(field, []))
    yield from _misshapen("spec", spec)


def _container_problems(field: str, containers: object) -> Iterator[tuple[str, str]]:
    if not isinstance(containers, list):
        yield f"spec.{field}", "it must be a list"
        return
    for at, container in enumerate(containers):
        where = f"spec.{field}[{at}]"
        if not isinstance(container, Mapping) or not isinstance(container.get("name"), str):
            yield where, "a container must have a name"
            continue
        ports = container.get("ports")
        if isinstance(ports, list) and any(isinstance(entry, Mapping) and entry.get("hostPort") for entry in ports):
            yield f"{where}.ports", "use roles[].ports for ports of the node"
        if container.get("resources"):
            yield f"{where}.resources", "only roles[].resources are counted, and all containers share them"
        yield from _misshapen(where, container)
        if container["name"] != TASK:
            continue
        if field == "initContainers":
            yield f"{where}.name", f"{TASK} is the container of the task's command"
        yield from ((f"{where}.{key}", _TASK_FIELDS[key]) for key in container if key in _TASK_FIELDS)


def _misshapen(where: str, owner: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield fields of a pod's spec or container whose type does not allow merging. Null counts as absent."""
    for field in ("securityContext", "resources"):
        if not isinstance(owner.get(field), Mapping | None):
            yield f"{where}.{field}", "it must be a mapping"
    for field, key in _MERGE_KEYS.items():
        entries = owner.get(field)
        if entries is not None and not isinstance(entries, list):
            yield f"{where}.{field}", "it must be a list"
            continue
        for at, entry in enumerate(entries or ()):
            if not isinstance(entry, Mapping) or not isinstance(entry.get(key), int if key == _PORT else str):
                yield f"{where}.{field}[{at}]", f"it must have a {key}"
            elif field == "volumes":
                yield from _odd_sources(f"{where}.{field}[{at}]", entry)


def _odd_sources(where: str, volume: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for source, said in volume.items():
        if source != "name" and said is not None and not isinstance(said, Mapping):
            yield f"{where}.{source}", "it must be a mapping"
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    if not isinstance(claim, str):
        yield f"{where}.persistentVolumeClaim.claimName", "it must be a name"


def _merge_maps(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    out = {key: _copy(value) for key, value in lower.items() if value is not None}
    for key, value in upper.items():
        below = out.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            out[key] = _merge_maps(below, value)
        elif isinstance(value, list) and isinstance(below, list):
            out[key] = _merge_lists(below, value, _MERGE_KEYS.get(key, ""))
        else:
            out[key] = _copy(value)
    return out


def _merge_lists(lower: list[Any], upper: list[Any], key: str) -> list[Any]:
    """Merge two lists. Corral's elements come first, so that `kubectl logs` shows its container."""
    if not key:
        return [*upper, *(_copy(item) for item in lower if item not in upper)]
    below = {str(item[key]): item for item in lower if isinstance(item, Mapping) and key in item}
    names = {str(item.get(key)) for item in upper}
    out = [_merge_maps(below.get(str(item.get(key)), {}), item) for item in upper]
    return out + [_copy(item) for item in lower if not (isinstance(item, Mapping) and str(item.get(key)) in names)]


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _depth(value: object) -> int:
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        level = [
            inner
            for outer in level
            if isinstance(outer, Mapping | list)
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
        depth += 1
    return depth
