"""Every remedy proposed to a waiting job can be written into its job file, which then requests exactly that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.change_proposals import as_said, changed
from corral.model.request_builder import gang_terms
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change
from corral.scheduler.explain.relaxation import Relaxation, amounts, relaxations
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job
from corral.spec.short_form_writer import short_form
from tests.examples import examples

LEVELS = ("engine", "block", "rack", "node", "pcie-switch", "device")
levels = st.sampled_from(LEVELS[1:])
labels = st.dictionaries(st.sampled_from(["disk", "example.com/zone", "a.b"]), st.sampled_from(["x", "y"]), max_size=2)
rules = st.fixed_dictionaries(
    {},
    optional={
        "include": st.just(["n1", "n2"]),
        "exclude": st.just(["n3"]),
        "expressions": st.just([{"key": "zone", "operator": "Exists"}]),
        "tolerations": st.just([{"key": "team", "operator": "Exists"}]),
    },
)
topologies = st.one_of(
    st.fixed_dictionaries({}, optional={"required": levels, "preferred": levels, "sameModel": st.booleans()}),
    levels,
    st.fixed_dictionaries({"group": st.fixed_dictionaries({"size": st.just(2), "required": levels})}),
    st.fixed_dictionaries({"spread": st.fixed_dictionaries({"level": levels, "maxSkew": st.integers(0, 2)})}),
)
devices = st.one_of(
    st.integers(0, 8),
    st.just(0.5),
    st.fixed_dictionaries({"count": st.integers(1, 8), "model": st.just("A100")}, optional={"kind": st.just("gpu")}),
    st.fixed_dictionaries({"ids": st.just(["0", "1"])}, optional={"model": st.just("A100")}),
    st.fixed_dictionaries({"bitmap": st.just("0x3")}),
    st.fixed_dictionaries({"share": st.fixed_dictionaries({"computePercent": st.integers(1, 100)})}),
    st.fixed_dictionaries({"share": st.fixed_dictionaries({"memoryPercent": st.integers(1, 100)})}),
)
memories = st.one_of(st.integers(2**20, 2**40).map(str), st.sampled_from(["0", "3Gi", "500Mi", "1.5G"]))
replicas = st.one_of(
    st.integers(1, 6), st.just({"min": 2, "max": 6}), st.just({"min": 3, "max": 6, "replicas": 4}), st.just(8)
)
roles = st.fixed_dictionaries(
    {"command": st.just("true"), "resources": st.fixed_dictionaries(
        {"devices": devices},
        optional={
            "cpu": st.integers(1, 200_000).map(lambda millis: f"{millis}m"),
            "memory": memories,
            "disk": memories,
            "other": st.dictionaries(st.sampled_from(["licences", "example.com/dongle"]), st.integers(1, 50), max_size=2),
        },
    )},
    optional={"shm": memories, "nodeSelector": labels, "ports": st.just(["http"])},
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Job files with many constraints, each set for the whole job or for its first role."""
    names = draw(st.sampled_from([["w"], ["w", "ps"], ["w", "ps", "eval"]]))
    found = {name: draw(roles) | {"replicas": draw(st.integers(1, 4))} for name in names}
    found["w"]["replicas"] = draw(replicas)
    file: dict[str, Any] = {
        "name": "j",
        "queue": draw(st.sampled_from(["default", "lab"])),
        "priority": draw(st.sampled_from(["prod", 7, ""])),
        "maxDuration": draw(st.sampled_from([0, "2h"])),
        "network": draw(st.sampled_from(["none", "rdma"])),
        "sharing": draw(
            st.sampled_from(["exclusive", {}, {"oneTaskPerNode": True, "antiAffinity": "loud"}])
            | st.just({"antiAffinity": {"tags": ["loud", "late"], "level": "rack"}})
        ),
        "roles": found,
    }
    for field, values in (("nodes", rules), ("topology", topologies), ("pinnedCell", st.sampled_from(["", "P"]))):
        home = draw(st.sampled_from([file, found["w"]]))
        home[field] = draw(values)
    if draw(st.booleans()):
        file["nodeSelector"] = draw(labels)
    if draw(st.booleans()):
        file["storages"] = ["data"]
    return file


def asked(job: UnifiedJob) -> GangRequest:
    tasks = [TaskKey(role.name, at) for role in job.spec.roles for at in range(job.replicas_of(role.name))]
    return gang_terms(job).request(JobId("j"), 1, tasks, user="ann", created_at=0.0)


def relaxations_of(request: GangRequest) -> list[Relaxation]:
    """The first, the last and one middle step of every ladder."""
    every = [list(series) for series in (*relaxations(request, LEVELS), *amounts(request)) if series]
    return [series[at] for series in every for at in sorted({0, len(series) // 2, len(series) - 1})]


@settings(max_examples=examples(150), deadline=None)
@given(files())
def test_what_is_proposed_can_be_written_into_the_file_which_then_asks_for_it(file: dict[str, Any]) -> None:
    job = load_job(file)
    request = asked(job)
    for relaxation in relaxations_of(request):
        said = as_said(job, request, relaxation.change, relaxation.request)
        if said is None and relaxation.change.path.endswith("spread.maxSkew") and len(request.roles) > 1:
            continue  # the file may bound the whole job and the role; the request has one of them
        assert said is not None, relaxation.change
        again = load_job(changed(hoisted(job), said.path, said.after))
        made = asked(again)
        assert bare(made) == bare(relaxation.request), said
        for role in relaxation.request.roles:
            assert again.gang_size()[role.role] == role.minimum, said


def hoisted(job: UnifiedJob) -> dict[str, Any]:
    """The file with labels that all roles require written once at the top."""
    file = short_form(job)
    every = [role.setdefault("nodeSelector", {}) for role in file["roles"].values()]
    common = dict(item for item in every[0].items() if all(item in each.items() for each in every))
    for each in every:
        for key in common:
            del each[key]
    return file | {"nodeSelector": common}


def bare(request: GangRequest) -> GangRequest:
    """The request's constraints on places; numbers of tasks are compared in the file."""
    parts = [structs.replace(role, indexes=(), minimum=0, affinity="") for role in request.roles]
    return structs.replace(request, roles=tuple(parts))


CHANGES = (
    ({"resources": {"devices": 4}}, {}, "roles.w.resources.devices", 2, {"resources": {"devices": 2}}),
    (
        {"resources": {"devices": {"count": 4, "model": "A100"}}},
        {},
        "roles.w.resources.devices.count",
        2,
        {"resources": {"devices": {"count": 2, "model": "A100"}}},
    ),
    ({"shm": "4Gi"}, {}, "roles.w.shm", "1Gi", {"shm": "1Gi"}),
    ({"nodeSelector": {"a.b/c": "x", "d": "y"}}, {}, "roles.w.nodeSelector.a.b/c", "", {"nodeSelector": {"d": "y"}}),
    ({"topology": "rack"}, {}, "roles.w.topology.required", "", {}),
    ({}, {"maxDuration": "2h"}, "maxDuration", "1h", {}),
)


@pytest.mark.parametrize(("role", "top", "path", "after", "left"), CHANGES, ids=[case[2] for case in CHANGES])
def test_a_change_touches_one_field(
    role: dict[str, Any], top: dict[str, Any], path: str, after: str | int, left: dict[str, Any]
) -> None:
    file = {"name": "j", "roles": {"w": {"command": "true"} | role}} | top
    expected = {"name": "j", "roles": {"w": {"command": "true"} | left}} | ({path: after} if top else {})
    assert changed(file, path, after) == expected


def proposed(file: dict[str, Any], path: str) -> Change | None:
    job = load_job({"name": "j"} | file)
    request = asked(job)
    relaxation = next(relaxation for relaxation in relaxations_of(request) if relaxation.change.path == path)
    return as_said(job, request, relaxation.change, relaxation.request)


def test_rules_of_the_whole_job_are_named_at_the_top_of_the_file() -> None:
    one = {"roles": {"w": {"command": "true"}}, "nodes": ["n1"], "pinnedCell": "P"}
    said = proposed(one, "roles.w.nodes.include")
    assert said is not None
    assert said.path == "nodes.include"


def test_what_no_single_field_says_is_not_proposed() -> None:
    twice = {"roles": {"w": {"command": "true", "nodes": ["n1"]}}, "nodes": ["n1", "n2"]}
    assert proposed(twice, "roles.w.nodes.include") is None


def test_a_bound_on_the_skew_of_the_whole_job_is_lifted_for_all_roles() -> None:
    roles = {name: {"command": "true", "replicas": 2} for name in ("w", "ps")}
    bounded = {"roles": roles, "topology": {"spread": {"level": "rack", "maxSkew": 1}}}
    assert proposed(bounded, "topology.spread.maxSkew") is not None
    assert proposed(bounded, "roles.w.topology.spread.maxSkew") is None


def test_a_job_that_was_scaled_since_keeps_what_is_proposed() -> None:
    job = load_job({"name": "j", "roles": {"w": {"command": "true", "replicas": {"min": 1, "max": 4}}}})
    request = structs.replace(asked(job), queue="elsewhere")
    change = Change("priority", 10, 11, "…")
    assert as_said(job, request, change, structs.replace(request, priority=11)) == change


def test_a_level_without_tags_does_not_hide_that_other_jobs_could_be_let_in() -> None:
    level = {"roles": {"w": {"command": "true"}}, "sharing": {"exclusive": True, "antiAffinity": {"level": "rack"}}}
    said = proposed(level, "sharing.exclusive")
    assert said is not None
    assert said.path == "sharing.exclusive"
