"""Accepted documents are canonical: they read back equal from data, from JSON, and without defaults."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.spec.errors import SpecError
from corral.spec.job import JobSpec, Metadata, ReplicaSpec, UnifiedJob
from corral.spec.job_reader import load_job
from corral.spec.role import Role
from corral.spec.schema import canonical_schema, short_schema
from corral.spec.short_form_writer import short_form
from tests.examples import examples

FEW = settings(max_examples=examples(40))
"""Few examples: the documents are large, and other tests cover each field."""

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12).filter(
    lambda value: "<%" not in value
)
counts = st.integers(1, 100)
fixed_ports = st.lists(
    st.fixed_dictionaries({"name": names, "count": counts, "start": st.integers(0, 65_535)}),
    unique_by=lambda port: str(port["name"]),
    max_size=3,
)
environments = st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}", fullmatch=True), text, max_size=3)
levels = st.sampled_from(["", "node", "rack", "pcie-switch"])
topologies = st.one_of(
    levels,
    st.fixed_dictionaries({}, optional={"required": levels, "preferred": levels}),
    st.fixed_dictionaries({"group": st.fixed_dictionaries({"size": counts, "required": st.just("node")})}),
)
retries = st.one_of(
    st.integers(-2, 10), st.fixed_dictionaries({}, optional={"fancy": st.booleans(), "maxRetries": st.integers(-2, 9)})
)
resources = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["1", "500m", 2, 0.5]),
        "memory": st.sampled_from(["2Gi", "1.5G", "0"]),
        "devices": st.one_of(st.integers(0, 8), st.fixed_dictionaries({"count": st.integers(0, 8), "model": text})),
    },
)


def roles(replicas: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"command": st.one_of(text.filter(bool), st.lists(text, min_size=1, max_size=3)), "replicas": replicas},
        optional={
            "resources": resources,
            "env": environments,
            "image": text,
            "ports": st.one_of(
                st.lists(names, unique=True, max_size=3), st.dictionaries(names, counts, max_size=3), fixed_ports
            ),
            "topology": topologies,
            "retry": retries,
            "shm": st.sampled_from(["", "1Gi"]),
            "completion": st.fixed_dictionaries({}, optional={"minFailed": st.integers(-1, 5)}),
            "workingDir": text,
            "nodeSelector": st.dictionaries(names, names, max_size=2),
            "kubernetes": st.fixed_dictionaries({"podTemplate": st.dictionaries(names, text, max_size=2)}),
        },
    )


elastic = st.tuples(counts, counts).map(lambda pair: {"min": min(pair), "max": max(pair)})


@st.composite
def short_jobs(draw: st.DrawFn) -> dict[str, Any]:
    """Valid short documents with at most one elastic role."""
    written = draw(st.dictionaries(names, roles(counts), min_size=1, max_size=3))
    if draw(st.booleans()):
        written[draw(st.sampled_from(sorted(written)))]["replicas"] = draw(elastic)
    return draw(
        st.fixed_dictionaries(
            {"name": names, "roles": st.just(written)},
            optional={
                "framework": st.sampled_from(["shell", "pytorch", "jax", "mpi"]),
                "queue": names,
                "priority": st.one_of(st.sampled_from(["", "prod", "crit", "-3"]), st.integers(-10, 1000)),
                "topology": topologies,
                "env": environments,
                "tags": st.lists(text.filter(bool), max_size=3),
                "labels": st.dictionaries(names, names, max_size=2),
                "annotations": st.dictionaries(names, text, max_size=2),
                "retry": retries,
                "maxDuration": st.one_of(st.integers(0, 10**6), st.sampled_from(["2h", "1h30m"])),
                "code": st.one_of(st.just("."), st.fixed_dictionaries({"path": text, "target": names})),
                "network": st.sampled_from(["none", "preferred", "rdma"]),
                "checkpoint": st.fixed_dictionaries({}, optional={"signal": st.just("usr1"), "grace": st.just("5m")}),
                "barrier": st.booleans(),
                "array": st.integers(1, 10),
                "parameters": st.dictionaries(st.sampled_from("abc"), text, max_size=2),
                "secrets": st.dictionaries(st.sampled_from(["$TOKEN", "KEY"]).map(lambda n: n.strip("$")), names),
            },
        ).filter(_no_clash)
    )


def _no_clash(job: dict[str, Any]) -> bool:
    taken = {*job.get("env", ()), *(name for role in job["roles"].values() for name in role.get("env", ()))}
    return not taken & job.get("secrets", {}).keys()


@FEW
@given(short_jobs())
def test_what_is_accepted_reads_back_as_itself(document: dict[str, Any]) -> None:
    job = load_job(document)
    assert load_job(json.dumps(document)) == job
    assert UnifiedJob.from_document(job.to_document()) == job
    assert UnifiedJob.from_document(job.to_document(complete=False)) == job
    assert UnifiedJob.from_document(json.loads(job.to_json())) == job
    assert load_job(job.to_json()).to_json() == job.to_json()


@FEW
@given(short_jobs())
def test_any_job_can_be_shown_as_people_write_it(document: dict[str, Any]) -> None:
    job = load_job(document)
    assert load_job(short_form(job)) == job


@FEW
@given(short_jobs())
def test_what_is_accepted_satisfies_the_published_schemas(document: dict[str, Any]) -> None:
    assert jsonschema_rs.is_valid(SHORT_SCHEMA, document)
    assert jsonschema_rs.is_valid(CANONICAL_SCHEMA, load_job(document).to_document())


@FEW
@given(short_jobs())
def test_the_counts_agree(document: dict[str, Any]) -> None:
    job = load_job(document)
    sizes = {role.name: job.replicas_of(role.name) for role in job.spec.roles}
    assert list(sizes) == list(document["roles"])
    assert sum(sizes.values()) == job.total_tasks
    assert all(least <= sizes[name] for name, least in job.gang_size().items())
    assert job.is_elastic == (sum(job.gang_size().values()) < job.total_tasks)
    count = job.spec.replica_spec
    assert job.scaled(count.min_replicas).replicas_of(count.role) == count.min_replicas


SHORT_SCHEMA, CANONICAL_SCHEMA = short_schema(), canonical_schema()


def test_a_job_can_be_made_in_python() -> None:
    job = UnifiedJob(
        metadata=Metadata(name="a"),
        spec=JobSpec(roles=[Role(name="w", command=["x"], working_dir="/w")], replica_spec=ReplicaSpec(replicas=3)),
    )
    assert (job.counted_role.name, job.total_tasks, job.gang_size()) == ("w", 3, {"w": 3})
    assert job == load_job("name: a\nroles: {w: {command: [x], replicas: 3, workingDir: /w}}")


def test_the_short_form_is_short() -> None:
    written = {
        "name": "digits",
        "framework": "pytorch",
        "roles": {
            "ps": {"replicas": 2, "command": "serve", "ports": {"http": 1}},
            "worker": {
                "replicas": {"min": 2, "max": 8, "replicas": 4},
                "resources": {"memory": "2Gi", "devices": 1},
                "command": ["python", "train.py"],
                "retry": 3,
            },
        },
        "topology": "rack",
        "code": {"uri": ".", "target": "app"},
        "network": "preferred",
        "maxDuration": "1h30m",
        "barrier": {"enabled": False, "timeoutSeconds": 5},
        "after": ["prepare", {"job": "clean", "condition": "ended"}],
        "array": 3,
    }
    assert short_form(load_job(written)) == written


@pytest.mark.parametrize(
    ("job_type", "sizes", "refused"),
    [
        ("pytorch", {"w": 4, "x": 1}, ""),
        ("pytorch", {"w": 5}, "expected 2 to 4 replicas of w, got 5"),
        ("pytorch", {"x": 2}, "expected 1 to 1 replicas of x, got 2"),
        ("frameworkcontroller", {"w": 5}, "expected 2 to 4 replicas of w, got 5"),
    ],
)
def test_a_job_may_have_the_sizes_that_its_file_allows(job_type: str, sizes: dict[str, int], refused: str) -> None:
    _check("{min: 2, max: 4}", job_type, sizes, refused)


@pytest.mark.parametrize(
    ("job_type", "sizes", "refused"),
    [
        ("frameworkcontroller", {"w": 10_000}, ""),
        ("frameworkcontroller", {"w": 0}, "expected 1 to 10000 replicas of w, got 0"),
        ("frameworklauncher", {"w": 0, "x": 10_000}, ""),
        ("frameworklauncher", {"x": 10_001}, "expected 0 to 10000 replicas of x, got 10001"),
        ("shell", {"w": 3}, "expected 2 to 2 replicas of w, got 3"),
    ],
)
def test_a_language_without_bounds_allows_any_size(job_type: str, sizes: dict[str, int], refused: str) -> None:
    _check("2", job_type, sizes, refused)


def _check(replicas: str, job_type: str, sizes: dict[str, int], refused: str) -> None:
    job = load_job(f"name: a\nroles: {{w: {{command: [x], replicas: {replicas}}}, x: {{command: [x]}}}}")
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"job_type": job_type})})
    if not refused:
        job.check_sizes(sizes)
        return
    with pytest.raises(SpecError, match=refused):
        job.check_sizes(sizes)


def test_the_former_name_of_the_standard_exit_table_is_read_as_its_present_one() -> None:
    job = load_job("name: a\nexitTable: openpai\nroles: {w: {command: [x]}}")
    assert job == load_job("name: a\nroles: {w: {command: [x]}}")
    assert job.to_document()["spec"]["exitTable"] == "standard"
    stored = json.loads(job.to_json()) | {"spec": job.to_document()["spec"] | {"exitTable": "openpai"}}
    assert UnifiedJob.from_document(stored) == job
