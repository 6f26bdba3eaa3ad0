"""Each field that the launcher reads from a document has the document's value."""

from __future__ import annotations

from typing import Any

from corral.launcher import JobView, RetryView, RoleView, view_of
from corral.spec.job import UnifiedJob


def document(**spec: Any) -> UnifiedJob:
    roles = [
        {
            "name": "worker",
            "command": ["true"],
            "retryPolicy": {"fancy": False, "maxRetries": 3},
            "completion": {"minFailed": 2, "minSucceeded": 1},
        },
        {"name": "ps", "command": ["true"], "replicas": 2},
    ]
    return UnifiedJob.model_validate(
        {
            "apiVersion": "corral.dev/v1alpha1",
            "kind": "UnifiedJob",
            "metadata": {"name": "digits"},
            "spec": {"roles": roles, "replicaSpec": {"role": "worker", "replicas": 4}} | spec,
        }
    )


def test_a_static_job() -> None:
    job = document(
        retryPolicy={"maxRetries": -2},
        maxDurationSeconds=60,
        checkpoint={"signal": "SIGUSR1", "graceSeconds": 7},
    )
    assert view_of(job) == JobView(
        roles={
            "worker": RoleView("worker", 4, None, RetryView(3, False), min_failed=2, min_succeeded=1),
            "ps": RoleView("ps", 2),
        },
        retry=RetryView(-2, True),
        max_duration_seconds=60,
        grace_seconds=7,
        stop_signal="USR1",
    )
    assert list(view_of(job).roles) == ["worker", "ps"]


def test_a_task_that_cannot_come_again_alone_ends_the_attempt_unless_its_role_says_more() -> None:
    view = view_of(document(), one_group=True)
    assert {role.name: role.retry for role in view.roles.values()} == {
        "worker": RetryView(3, False),
        "ps": RetryView(0, False),
    }
    assert view.retry == RetryView(0, True)


def test_only_the_counted_role_of_an_elastic_job_is_elastic() -> None:
    job = document(replicaSpec={"role": "worker", "replicas": 4, "minReplicas": 2, "maxReplicas": 8})
    assert {role.name: role.min_replicas for role in view_of(job).roles.values()} == {"worker": 2, "ps": None}
    assert view_of(job).stop_signal == "TERM"
