"""Nudges, which change a pod so that its kubelet tries again, go to pods with stuck claims, less and less often."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.pods.nudge import FIRST_SECONDS, LONGEST_SECONDS, Nudges, Stuck
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod

TAKEN = {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}
READY = {"type": "PodReadyToStartContainers", "status": "True"}


def pod(*, claims: tuple[str, ...] = ("c",), status: dict[str, Any] | None = None, **meta: Any) -> Pod:
    uses = [{"name": "devices-0", "resourceClaimName": each} for each in claims]
    made = {"metadata": {"name": "p", "uid": "u", **meta}, "spec": {"resourceClaims": uses}, "status": status or TAKEN}
    return msgspec.convert(made, Pod)


def nothing(_: Stuck) -> bool:
    return False


def times(nudges: Nudges, until: float) -> list[float]:
    """The times of nudges of the pod, with a check four times a second."""
    return [step / 4 for step in range(int(until * 4)) for _ in nudges.due(step / 4, nothing)]


@pytest.mark.parametrize(
    ("changed", "nudged"),
    [
        (pod(), True),
        (pod(claims=()), False),
        (pod(status={"phase": "Pending"}), False),
        (pod(status={**TAKEN, "conditions": [READY]}), False),
        (pod(status={**TAKEN, "conditions": [{**READY, "status": "False"}]}), True),
        (pod(status={**TAKEN, "containerStatuses": [{"name": "task", "state": {"running": {}}}]}), False),
        (pod(status={**TAKEN, "phase": "Failed"}), False),
    ],
)
def test_only_a_pod_that_its_kubelet_took_and_that_waits_for_its_devices_is_nudged(changed: Pod, nudged: bool) -> None:
    nudges = Nudges()
    nudges.fold(Change(changed), 0)
    assert bool(times(nudges, 60)) is nudged


def test_nudges_come_later_and_later() -> None:
    nudges = Nudges()
    nudges.fold(Change(pod()), 0)
    found = times(nudges, 200)
    assert found[0] == FIRST_SECONDS
    gaps = [after - before for before, after in itertools.pairwise(found)]
    assert gaps == sorted(gaps) and gaps[-1] == LONGEST_SECONDS


def test_a_failure_that_is_heard_of_nudges_at_once_and_only_once() -> None:
    nudges = Nudges()
    nudges.fold(Change(pod()), 0)
    nudges.failed("u", 0.5)
    nudges.failed("another", 0.5)
    assert times(nudges, 1)[:1] == [0.5]
    nudges.failed("u", 1)
    assert times(nudges, 1) == []


def test_a_pod_whose_claim_is_about_to_be_written_waits_for_that() -> None:
    nudges = Nudges()
    nudges.fold(Change(pod()), 0)
    assert list(nudges.due(100, lambda stuck: stuck.claims == ("c",))) == []
    ((uid, stuck),) = nudges.due(100, nothing)
    assert (uid, stuck.times) == ("u", 1)


def test_a_pod_that_moved_or_went_is_left_alone() -> None:
    for change in (Change(pod(status={"phase": "Running", "conditions": [READY]})), Change(pod(), gone=True)):
        nudges = Nudges()
        nudges.fold(Change(pod()), 0)
        nudges.fold(change, 1)
        assert times(nudges, 60) == []


def test_a_deleted_pod_is_nudged_when_its_grace_is_over() -> None:
    nudges = Nudges()
    going = pod(deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
    nudges.fold(Change(pod()), 0)
    nudges.fold(Change(going), 1)
    assert times(nudges, 60)[0] == 33
