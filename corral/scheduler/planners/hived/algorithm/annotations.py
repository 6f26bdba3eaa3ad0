"""Read and write HiveD's pod annotations, as its pods carry them.

`hivedscheduler.microsoft.com/pod-scheduling-spec` is the request of a pod, `.../pod-bind-info` the placement of the pod
and its group; HiveD keeps nothing else. Older field names (`gpuType`, `gpuNumber`, ...) are read too. Source: HiveD,
pkg/api.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm.groups import Bind, Member, PodPlacement, PodRequest
from corral.spec.go_json import field_of

SCHEDULING_SPEC: Final = "hivedscheduler.microsoft.com/pod-scheduling-spec"
BIND_INFO: Final = "hivedscheduler.microsoft.com/pod-bind-info"
_MOST: Final = 100_000
"""The longest list accepted in an annotation."""


def read_request(data: object, pod: str) -> PodRequest:
    """Read a parsed scheduling spec; a pod that names no group forms a group of one under its own name.

    Raises InvalidInput naming the wrong field.
    """
    spec = _Fields(data, SCHEDULING_SPEC)
    leaves = spec.number("leafCellNumber", "gpuNumber")
    group = spec.get("affinityGroup")
    name, members = pod, [Member(1, leaves)]
    if group is not None:
        fields = _Fields(group, f"{SCHEDULING_SPEC}: affinityGroup")
        name = fields.text("name")
        each = [_Fields(member, fields.where) for member in fields.items("members")]
        members = [Member(one.number("podNumber"), one.number("leafCellNumber", "gpuNumber")) for one in each]
    request = PodRequest(
        pod=pod,
        vc=spec.text("virtualCluster"),
        priority=spec.number("priority", default=0),
        leaves=leaves,
        group=name,
        members=tuple(members),
        leaf_type=spec.text("leafCellType", "gpuType", default=""),
        pinned_cell=spec.text("pinnedCellId", "reservationId", default=""),
        lazy_preemption=spec.flag("lazyPreemptionEnable", default=False),
        ignore_suggested=spec.flag("ignoreK8sSuggestedNodes", default=True),
    )
    request.check()
    return request


def bind_document(bound: Bind) -> dict[str, Any]:
    """Return the bind info of a pod in HiveD's format, with the members of its group by size."""
    by_size: dict[int, list[dict[str, Any]]] = {}
    for place in bound.group:
        by_size.setdefault(len(place.devices), []).append(
            {
                "physicalNode": place.node,
                "physicalLeafCellIndices": list(place.devices),
                "preassignedCellTypes": list(place.owned_types),
            }
        )
    return {
        "node": bound.node,
        "leafCellIsolation": list(bound.devices),
        "cellChain": bound.chain,
        "affinityGroupBindInfo": [{"podPlacements": places} for places in by_size.values()],
    }


def read_bind(data: object) -> Bind:
    """Read the binding in a parsed bind info; raises InvalidInput naming the wrong field."""
    info = _Fields(data, BIND_INFO)
    places = []
    for member in info.items("affinityGroupBindInfo"):
        for one in _Fields(member, BIND_INFO).items("podPlacements"):
            place = _Fields(one, f"{BIND_INFO}: podPlacements")
            devices = place.numbers("physicalLeafCellIndices", "physicalGpuIndices")
            types = tuple(str(each) for each in place.items("preassignedCellTypes", default=()))
            places.append(PodPlacement(place.text("physicalNode"), devices, types))
    devices = info.numbers("leafCellIsolation", "gpuIsolation")
    if not devices or any(not place.devices for place in places):
        raise InvalidInput("bad-annotation", f"{BIND_INFO}: a pod is bound to no device.")
    return Bind(info.text("node"), devices, info.text("cellChain", default=""), tuple(places))


class _Fields:
    """A mapping whose typed accessors all report wrong fields in the same form."""

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput("bad-annotation", f"{where}: expected a mapping, got {type(data).__name__}.")
        self.data = data
        self.where = where

    def get(self, *names: str) -> object:
        """Return the first of these fields that is present, matching keys in any case as Go does; None if none is."""
        said = (value for name in names for key, value in self.data.items() if field_of(str(key), (name,)) is not None)
        return next((value for value in said if value is not None), None)

    def number(self, *names: str, default: int | None = None) -> int:
        value = self.get(*names)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(names, "a whole number")
        return value

    def text(self, *names: str, default: str | None = None) -> str:
        value = self.get(*names)
        value = default if value is None else value
        if not isinstance(value, str) or len(value) > 1000:
            raise self._wrong(names, "text")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self._wrong((name,), "true or false")
        return value

    def items(self, *names: str, default: tuple[object, ...] | None = None) -> list[object]:
        value = self.get(*names)
        value = list(default) if value is None and default is not None else value
        if not isinstance(value, list) or len(value) > _MOST:
            raise self._wrong(names, f"a list of at most {_MOST}")
        return value

    def numbers(self, *names: str) -> tuple[int, ...]:
        values = self.items(*names)
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise self._wrong(names, "a list of whole numbers")
        return tuple(value for value in values if isinstance(value, int))

    def _wrong(self, names: tuple[str, ...], expected: str) -> InvalidInput:
        return InvalidInput("bad-annotation", f"{self.where}: {names[0]} is not {expected}.")
