"""Annotations by which a pod asks another scheduler for devices, found by entry point.

A dialect whose documents contain pods asks each of them, and so places the pod as the other scheduler would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

from corral.kernel.plug_ins import load, plug_ins
from corral.spec.dialects.field_reader import Fields

GROUP: Final = "corral.pod_annotations"
"""The entry-point group; an object is a `PodAnnotations`."""


@dataclass
class PodRequest:
    """What a pod asks another scheduler for, as fields of the job and its role."""

    devices: dict[str, Any]
    job: dict[str, Any]
    """Fields of the job's spec; all its pods must agree on them."""
    cells: dict[str, str]
    """Fields of the role: pinned cell and affinity group; group "" places each pod on its own."""


class PodAnnotations(Protocol):
    """The annotations of one scheduler."""

    key: str
    """The annotation with the request."""
    prefix: str
    """The beginning of all its annotations; Corral does not pass them on to pods."""
    resource: str
    """A resource that marks the scheduler's pods and that no node has; "" for none."""

    def read(self, annotations: Fields) -> PodRequest | None:
        """The request in a pod's annotations; None when there is none. Problems are noted in `annotations`."""
        ...


@cache
def pod_annotations() -> tuple[PodAnnotations, ...]:
    """The annotations of all schedulers, in the order of their names.

    Raises InvalidInput `broken-plug-in` if one cannot be loaded.
    """
    return tuple(load(point, "pod annotations") for _, point in sorted(plug_ins(GROUP).items()))


def request_of(annotations: Fields) -> PodRequest | None:
    """The first request that a pod's annotations have; None when there is none."""
    found = (each.read(annotations) for each in pod_annotations())
    return next((each for each in found if each is not None), None)


def request_keys() -> Iterator[str]:
    """The annotations that may have a request."""
    return (each.key for each in pod_annotations())


def is_of_a_scheduler(annotation: str) -> bool:
    """Whether an annotation is one of another scheduler's."""
    return any(annotation.startswith(each.prefix) for each in pod_annotations())


def marks_pods(resource: str) -> bool:
    """Whether a resource only marks the pods of another scheduler."""
    return any(resource == each.resource for each in pod_annotations())
