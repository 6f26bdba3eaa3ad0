"""Translate the annotation by which a pod asks HiveD for devices to fields of the job and its role.

The members of an affinity group are not read: they are the tasks of the roles that name it. HiveD reads the
annotation's keys in any case. Source: HiveD, pkg/api (`pod-scheduling-spec`, with the names of its older versions).
"""

from __future__ import annotations

from typing import Any, Final

from corral.spec.dialects.field_reader import Fields
from corral.spec.dialects.pod_annotations import PodRequest
from corral.spec.errors import SpecError
from corral.spec.go_json import Shape, as_go_reads
from corral.spec.yaml_source import parse_source

SCHEDULING_SPEC: Final = "hivedscheduler.microsoft.com/pod-scheduling-spec"
_ASK: Final[Shape] = {
    **dict.fromkeys(
        (
            "virtualCluster", "priority", "pinnedCellId", "reservationId", "leafCellType", "gpuType", "leafCellNumber",
            "gpuNumber", "gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes",
        )
    ),
    "affinityGroup": {"name": None, "members": dict.fromkeys(("podNumber", "leafCellNumber", "gpuNumber"))},
}  # fmt: skip


class HivedAnnotations:
    """HiveD's annotations of pods."""

    key = SCHEDULING_SPEC
    prefix = "hivedscheduler.microsoft.com/"
    resource = "hivedscheduler.microsoft.com/pod-scheduling-enable"

    def read(self, annotations: Fields) -> PodRequest | None:
        """The request in a pod's annotations; None when there is none."""
        text = annotations.text(SCHEDULING_SPEC)
        if not text:
            return None
        try:
            data = as_go_reads(parse_source(text, SCHEDULING_SPEC), _ASK).data
        except SpecError as error:
            annotations.problem((SCHEDULING_SPEC,), error.problems[0].message)
            return None
        given = Fields(annotations.source, data, (*annotations.path, SCHEDULING_SPEC), annotations.problems)
        count = given.whole("leafCellNumber" if "leafCellNumber" in given else "gpuNumber", least=1, most=1024)
        model = given.text("leafCellType") or given.text("gpuType")
        job: dict[str, Any] = {"queue": given.text("virtualCluster", None)}
        job["priority"] = str(given.whole("priority", 0, least=-1, most=1000))
        job["lazyPreemption"] = given.flag("lazyPreemptionEnable", False)
        cells = {"pinnedCell": given.text("pinnedCellId") or given.text("reservationId")}
        cells["affinityGroup"] = given.inner("affinityGroup").text("name", None) if "affinityGroup" in given else ""
        given.ignore(("reservationId", "gangReleaseEnable", "ignoreK8sSuggestedNodes", "gpuNumber", "leafCellNumber"))
        given.done()
        return PodRequest({"count": count, "model": model}, job, cells)
