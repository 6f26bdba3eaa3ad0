"""Frameworks are found by the document's `jobType`; an unknown one is refused with the nearest name."""

from __future__ import annotations

import pytest

from corral.frameworks import framework, job_types
from corral.frameworks.reading import load_runnable_job
from corral.kernel.errors import InvalidInput
from corral.spec.errors import SpecError


def test_every_known_type_answers_to_its_own_name() -> None:
    for name in job_types():
        assert framework(name).job_type == name


def test_an_unknown_type_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInput, match='no framework is called "pytroch"; did you mean "pytorch"') as refusal:
        framework("pytroch")
    assert refusal.value.code == "unknown-job-type"


SHORT = "{name: a, framework: FRAMEWORK, roles: {w: {replicas: {min: 1, max: 2}, command: ./a}}}"


def test_what_a_framework_cannot_run_is_refused_before_it_is_stored() -> None:
    assert load_runnable_job(SHORT.replace("FRAMEWORK", "pytorch")).is_elastic
    with pytest.raises(SpecError, match=r"replicaSpec\.maxReplicas: a jax job cannot change its size while it runs"):
        load_runnable_job(SHORT.replace("FRAMEWORK", "jax"))
