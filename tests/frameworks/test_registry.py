"""Frameworks are found by the document's `jobType`; the error for an unknown one suggests the nearest name."""

from __future__ import annotations

import pytest

from corral.frameworks import framework, job_types, one_group
from corral.frameworks.runnable_job import load_runnable_job
from corral.kernel.errors import InvalidInput
from corral.spec.errors import SpecError
from tests.frameworks.gangs import job


def test_every_known_type_answers_to_its_own_name() -> None:
    for name in job_types():
        assert framework(name).job_type == name


def test_an_unknown_type_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInput, match='no framework is called "pytroch"; did you mean "pytorch"') as refusal:
        framework("pytroch")
    assert refusal.value.code == "unknown-job-type"


@pytest.mark.parametrize(
    ("job_type", "sizes", "together"),
    [
        ("pytorch", [2], True),
        ("pytorch", [1, 1], True),
        ("pytorch", [1], False),
        ("horovod", [2], True),
        ("mpi", [2], True),
        ("jax", [2], True),
        ("tensorflow", [2], True),
        ("tensorflow", [2, 1], False),
        ("shell", [2], False),
        ("notebook", [2], False),
        ("of-nobody", [2], False),
    ],
)
def test_tasks_that_are_one_group_of_a_fixed_size_fail_together(
    job_type: str, sizes: list[int], together: bool
) -> None:
    roles = [{"name": f"r{place}", "replicas": size} for place, size in enumerate(sizes)]
    assert one_group(job(job_type, roles)) is together


@pytest.mark.parametrize("job_type", ["pytorch", "horovod", "shell"])
def test_tasks_of_an_elastic_job_come_again_alone(job_type: str) -> None:
    bounds = {"replicas": 2, "minReplicas": 2, "maxReplicas": 4}
    assert not one_group(job(job_type, [{"name": "worker"}], replicaSpec=bounds))


SHORT = "{name: a, framework: FRAMEWORK, roles: {w: {replicas: {min: 1, max: 2}, command: ./a}}}"


def test_what_a_framework_cannot_run_is_refused_before_it_is_stored() -> None:
    assert load_runnable_job(SHORT.replace("FRAMEWORK", "pytorch")).is_elastic
    with pytest.raises(SpecError, match=r"replicaSpec\.maxReplicas: a jax job cannot change its size while it runs"):
        load_runnable_job(SHORT.replace("FRAMEWORK", "jax"))
