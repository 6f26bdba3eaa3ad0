"""Why: Frameworks of OpenPAI's clusters ask HiveD for their devices in an annotation of the pod; a job asks in its fields.

Source: HiveD, pkg/api (`pod-scheduling-spec`, with the names of its older versions). Members of an affinity group need no
word: they are the tasks of the roles that name it. HiveD reads the annotation's keys in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from corral.spec.dialects.fields import Fields
from corral.spec.errors import SpecError
from corral.spec.go_json import Shape, as_go_reads
from corral.spec.source import parse_source

SCHEDULING_SPEC: Final = "hivedscheduler.microsoft.com/pod-scheduling-spec"
PREFIX: Final = "hivedscheduler.microsoft.com/"
_ASK: Final[Shape] = {
    **dict.fromkeys(
        (
            "virtualCluster", "priority", "pinnedCellId", "reservationId", "leafCellType", "gpuType", "leafCellNumber",
            "gpuNumber", "gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes",
        )
    ),
    "affinityGroup": {"name": None, "members": dict.fromkeys(("podNumber", "leafCellNumber", "gpuNumber"))},
}  # fmt: skip


@dataclass
class HivedAsk:
    """What a pod asks of HiveD."""

    devices: dict[str, Any]
    job: dict[str, Any]
    """Fields of the job's spec; all of its pods have to say the same."""
    cells: dict[str, str]
    """Fields of the role: which cell, and together with which pods ("" is an affinity group of its own for each)."""


def hived_ask(annotations: Fields) -> HivedAsk | None:
    """What the annotations of a pod ask of HiveD; None where they ask nothing."""
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
    return HivedAsk({"count": count, "model": model}, job, cells)
