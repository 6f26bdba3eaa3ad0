"""The ports that a framework needs on a node are counted before the placement, and never too few."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.frameworks import Framework, port_counts
from corral.model.placement import TaskPlacement
from corral.spec.job import UnifiedJob
from tests.examples import examples
from tests.frameworks.gangs import gang, job, render

RUNNABLE = ("pytorch", "tensorflow", "jax", "mpi", "horovod", "cntk", "notebook", "shell")


@pytest.mark.parametrize(
    ("job_type", "counts"),
    [
        ("pytorch", {"chief": 1}),
        ("tensorflow", {"chief": 1, "worker": 1}),
        ("jax", {"chief": 1}),
        ("mpi", {"chief": 1}),
        ("horovod", {"chief": 1}),
        ("cntk", {"chief": 1}),
        ("notebook", {"chief": 1, "worker": 1}),
        ("shell", {}),
        ("external", {}),
        ("gone", {}),
    ],
)
def test_the_role_of_the_rendezvous_or_every_role(job_type: str, counts: dict[str, int]) -> None:
    assert port_counts(job(job_type, [{"name": "chief"}, {"name": "worker", "replicas": 3}])) == counts


def test_a_port_that_the_role_asks_for_itself_counts_once() -> None:
    assert port_counts(job("pytorch", [{"name": "w", "ports": [{"name": "rendezvous", "count": 1}]}])) == {}


@settings(max_examples=examples(60))
@given(st.sampled_from(RUNNABLE), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans())
def test_no_task_is_ever_launched_with_more(job_type: str, sizes: list[int], own: bool) -> None:
    names = ("chief", "worker", "ps")
    roles: list[dict[str, Any]] = [{"name": name, "replicas": size} for name, size in zip(names, sizes, strict=False)]
    if own:
        roles[0]["ports"] = [{"name": "rendezvous", "count": 1}]
    document = job(job_type, roles)
    counted = port_counts(document)
    tasks = [f"{role['name']}-{at}" for role in document_roles(document) for at in range(role["replicas"])]
    most: dict[str, int] = {}
    for key, command in render(gang(document, *tasks)).items():
        role = key.rpartition("-")[0]
        most[role] = max(most.get(role, 0), sum(port.count for port in command.ports))
    assert {role: count for role, count in most.items() if count} == counted


def document_roles(document: UnifiedJob) -> list[dict[str, Any]]:
    return [{"name": role.name, "replicas": document.replicas_of(role.name)} for role in document.spec.roles]


def test_a_plug_in_says_only_which_ports_a_task_needs() -> None:
    class Two(Framework):
        job_type = "two"

        def ports(self, gang: object, task: TaskPlacement) -> tuple[str, ...]:
            return ("a", "b") if task.role == "worker" and task.index else ()

    document = job("shell", [{"name": "chief"}, {"name": "worker", "replicas": 2}])
    assert Two().port_counts(document) == {"worker": 2}
