"""A job keeps the priority of its PriorityClass; one that the object's author wrote is capped at the ceiling."""

from __future__ import annotations

from typing import Any

import pytest

from corral.spec.dialects.translation import PRIORITY_ANNOTATION
from corral.spec.job_objects import Document, ObjectKind, UnifiedJobKind
from tests.control.bridged import Bridged, spec


class Foreign(UnifiedJobKind):
    """An object of another controller, whose priority comes from its PriorityClass."""

    def granted(self, document: Document) -> bool:
        return ObjectKind.granted(
            self, {"metadata": document["metadata"], "pod": {"priorityClassName": "crit-priority"}}
        )


async def begun(bridged: Bridged, kind: ObjectKind, annotations: dict[str, str]) -> dict[str, Any]:
    """The Accepted condition, or else the status with a job, of an object with priority `crit`."""
    await bridged.abandon()
    bridged.kinds = (kind,)
    uid = bridged.objects.create("urgent", spec(priority="crit"))
    bridged.objects.objects[uid]["metadata"]["annotations"] = annotations
    await bridged.begin()

    def answer() -> dict[str, Any]:
        accepted = bridged.condition(uid, "Accepted")
        return bridged.status(uid) if bridged.status(uid).get("jobId") else accepted if _refused(accepted) else {}

    return dict(await bridged.until(answer))


def _refused(condition: dict[str, Any]) -> bool:
    return condition.get("status") == "False"


async def test_a_priority_class_keeps_its_priority(bridged: Bridged) -> None:
    status = await begun(bridged, Foreign(), {"team": "vision"})
    record = await bridged.house.store.find_job(status["jobId"])
    assert record is not None and record.priority == 120


@pytest.mark.parametrize("kind", [Foreign(), UnifiedJobKind()])
async def test_the_annotation_does_not_pass_the_ceiling(bridged: Bridged, kind: ObjectKind) -> None:
    refused = await begun(bridged, kind, {PRIORITY_ANNOTATION: "crit"})
    assert refused["reason"] == "PriorityTooHigh"
    assert refused["message"].startswith("Priority 120 is too high for ada in queue default: 100 is the most")
    assert not bridged.house.control.world.jobs


async def test_the_document_of_a_unified_job_does_not_pass_it_either(bridged: Bridged) -> None:
    assert (await begun(bridged, UnifiedJobKind(), {}))["reason"] == "PriorityTooHigh"
