"""One bad pod does not hide the others from the readers of the view."""

from __future__ import annotations

import logging

import pytest

from corral.engines.kubernetes.pods.manifest import SERVER_LABEL, pod_name
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.cluster_state import ClusterView
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Meta, Pod
from corral.kernel.ids import AttemptId
from tests.engines.kubernetes.model_server import ModelServer
from tests.engines.kubernetes.virtual_time import virtually

ATTEMPTS = [AttemptId(f"0mabcdefgh123.0.worker.{index}.0") for index in range(3)]


def test_a_pod_that_cannot_be_understood_costs_itself_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[AttemptId] = []

    def ours(attempt: AttemptId, change: Change[Pod]) -> None:
        seen.append(attempt)
        if attempt == ATTEMPTS[1]:
            raise ZeroDivisionError("a mistake")

    async def work() -> None:
        view = ClusterView(
            ModelServer(),
            KubernetesSettings(server="me", namespace="x"),
            ours=ours,
            devices_on=lambda node: frozenset(),
            tell=lambda event: None,
        )
        for attempt in ATTEMPTS:
            meta = Meta(pod_name(attempt), "x", f"uid-{attempt}", labels={SERVER_LABEL: "me"})
            view.pod_changed(Change(Pod(meta)))

    with caplog.at_level(logging.ERROR):
        virtually(work())
    assert seen == ATTEMPTS
    (record,) = caplog.records
    assert pod_name(ATTEMPTS[1]) in record.getMessage() and record.exc_info is not None
