"""Sum the resource requests of a pod's containers into the resources of one task.

A job file has one amount where Kubernetes has a request and a limit: it is both reserved and the upper bound. So the
limit is used where there is one. A resource that no container requests is `0`: neither reserved nor limited.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from corral.kernel.amounts import names_for
from corral.spec.dialects.accelerators import kind_of
from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.pod_annotations import marks_pods
from corral.spec.dialects.quantities import document_amount, quantity, whole
from corral.spec.yaml_scalars import written

_RDMA: Final = ("rdma/", "openib.org/", "smarter-devices/rdma")

Amounts = dict[str, Decimal]


def asked(container: Fields) -> Amounts:
    """The amounts that one container requests, by resource name."""
    given = container.inner("resources")
    given.refuse("claims", "Corral claims devices itself; ask for them by count, such as nvidia.com/gpu: 1")
    amounts: Amounts = {}
    for field in ("requests", "limits"):  # the limit overrides the request
        inner = given.inner(field)
        for name in inner.data:
            text = written(inner.take(name))
            try:
                amounts[name] = quantity(text if isinstance(text, str) else "")
            except ValueError as error:
                inner.problem((name,), str(error))
    given.done()
    return amounts


def together(work: Iterable[Amounts], before: Iterable[Amounts]) -> Amounts:
    """The amounts that a pod needs: containers run at once, init containers one after the other."""
    total: Amounts = {}
    for each in work:
        for name, amount in each.items():
            total[name] = total.get(name, Decimal(0)) + amount
    for each in before:
        for name, amount in each.items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    return total


def resources(amounts: Amounts, place: Fields) -> tuple[dict[str, Any], bool]:
    """The resources of a task, and whether it needs a node with RDMA."""
    said: dict[str, Any] = {}
    for resource, amount in names_for("kubernetes").items():
        size = amounts.pop(resource, Decimal(0))
        if size or amount.column:  # a job file's own default for processors is not 0
            said[amount.name] = document_amount(amount.unit, size)
    rdma, devices, other = False, {}, {}
    for name, size in amounts.items():
        if not size or marks_pods(name):
            continue
        if name.startswith(_RDMA):
            rdma = True
        elif kind_of(name):
            devices[name] = whole(size)
        elif size != whole(size):
            place.problem(("resources",), f"{name} is counted in whole units, got {size}")
        else:
            other[name] = whole(size)
    if len(devices) > 1:
        place.problem(("resources",), f"one task has devices of one resource, not of {' and '.join(sorted(devices))}")
    for name, count in devices.items():
        said["devices"] = {"count": count, "kind": kind_of(name)}
    if other:
        said["other"] = other
    return said, rdma
