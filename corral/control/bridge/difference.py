"""Find the fields in which an object differs from its job, to name those that cannot be changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from corral.model.store_writes import JobRecord
from corral.spec.job import UnifiedJob

_FREE: Final = frozenset(
    {
        "metadata",
        "status",
        "spec.replicaSpec.replicas",
        "spec.replicaSpec.targetReplicas",
        "spec.dependsOn",
        "spec.code",
    }
)
"""Fields that may differ: counts, and fields that a submit resolves (ids of jobs, the location of code)."""
_BOUNDS: Final = ("minReplicas", "maxReplicas")


def differences(job: UnifiedJob, record: JobRecord) -> list[str]:
    """The paths in which an object's job, as read now, differs from the stored job, in order."""
    now, then = job.to_document(), msgspec.json.decode(record.doc)
    for document in (now, then):
        counts = document["spec"]["replicaSpec"]
        if counts["minReplicas"] == counts["maxReplicas"]:
            counts |= dict.fromkeys(_BOUNDS, 0)  # of fixed size, so bounded by `replicas`
    return list(_differing(now, then, ""))


def _differing(now: Any, then: Any, path: str) -> Iterator[str]:
    if path in _FREE or now == then:
        return
    if isinstance(now, dict) and isinstance(then, dict):
        for key in dict.fromkeys((*then, *now)):
            yield from _differing(now.get(key), then.get(key), f"{path}.{key}" if path else key)
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for index, (one, other) in enumerate(zip(now, then, strict=True)):
            yield from _differing(one, other, f"{path}[{index}]")
    else:
        yield path
