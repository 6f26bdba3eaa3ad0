"""A default for compiled code never makes a pod need programs that its image may lack."""

from __future__ import annotations

import pytest

from corral.engines.kubernetes.pods.runtime import needs_runtime
from corral.kernel.ids import JobId, attempt_id
from corral.model.launch import CacheFacts, ReportSource, RuntimePlan, TaskLaunch


@pytest.mark.parametrize(
    ("by_default", "reports", "needs"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_a_pod_gets_the_runtime_for_a_cache_only_if_its_job_asks(by_default: bool, reports: bool, needs: bool) -> None:
    plan = RuntimePlan(
        compile_cache=CacheFacts("python:3.11", by_default=by_default), report=ReportSource() if reports else None
    )
    attempt = attempt_id(JobId("trainer"), 0, "worker", 0, 0)
    assert needs_runtime(TaskLaunch(attempt, "ada", "kubernetes/a", ("true",), {}, runtime=plan)) == needs
