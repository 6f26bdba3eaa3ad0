"""A job's constraints on nodes, devices and affinity: every form means the same, and bad input is refused."""

from __future__ import annotations

import pytest

from corral.kernel.ids import JobId, TaskKey
from corral.model.request_builder import gang_terms
from corral.model.requests import Expression, FractionRequest, GangRequest, NodeRules, NodeSharing, Toleration
from corral.spec.cluster import load_cluster
from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job
from corral.spec.short_form_writer import short_form


def asked(text: str) -> GangRequest:
    """The scheduler's request for a job of one role `w` with these fields."""
    job = load_job(text)
    tasks = [TaskKey(role.name, 0) for role in job.spec.roles]
    assert load_job(short_form(job)).to_json() == job.to_json()
    assert type(job).from_document(job.to_document()).to_json() == job.to_json()
    return gang_terms(job).request(JobId("job"), 0, tasks, user="ada", created_at=0.0)


def role(fields: str, job: str = "") -> str:
    """A job file with these fields of the role and of the job."""
    return f"name: j\n{job}\nroles: {{w: {{command: x, {fields}}}}}\n"


def refused(text: str) -> str:
    """The problems of a job file, one a line."""
    with pytest.raises(SpecError) as caught:
        load_job(text)
    return "\n".join(str(problem) for problem in caught.value.problems)


def test_every_other_resource_is_asked_for_by_name() -> None:
    request = asked(role("ports: {http: 2, admin: 1}, resources: {disk: 1Gi, other: {licences: 3, zero: 0}}"))
    assert request.roles[0].resources == {"ports": 3, "disk": 2**30, "licences": 3}


def test_a_bitmap_names_devices_and_counts_them() -> None:
    for written in ('{bitmap: "0x33"}', "{bitmap: 0x33}", "{bitmap: 51, count: 4}", "{ids: [0, 1, 4, 5]}"):
        ask = asked(role(f"resources: {{devices: {written}}}")).roles[0].devices
        assert (ask.count, ask.ids) == (4, ("0", "1", "4", "5"))
    by_count = asked(role('resources: {devices: {bitmap: "0x0", count: 2}}')).roles[0].devices
    assert (by_count.count, by_count.ids) == (2, ())


@pytest.mark.parametrize(
    ("devices", "path", "message"),
    [
        ("{bitmap: 0x33, count: 3}", "roles.w.resources.devices.bitmap", "0x33 has 4 bits set, and count is 3"),
        ("{bitmap: 0x1ffffffffffffffff}", "roles.w.resources.devices.bitmap", "at most 64 bits"),
        ("{bitmap: x33}", "roles.w.resources.devices.bitmap", "at most 64 bits"),
        ("{bitmap: 1, ids: [0]}", "roles.w.resources.devices.bitmap", "ids name devices already"),
        ("0.333", "roles.w.resources.devices", "whole percents"),
        ("1.5", "roles.w.resources.devices", "whole percents"),
        ("{count: 2, share: {computePercent: 50}}", "roles.w.resources.devices.share", "count is 2"),
        ("{share: {computePercent: 101}}", "roles.w.resources.devices.share.computePercent", "100"),
        ("{share: {memory: 1Gi, memoryPercent: 5}}", "roles.w.resources.devices.share.memory", "one of the two"),
        ("{share: {policy: spread}}", "roles.w.resources.devices.share.policy", "no part is asked for"),
        ("{share: {policy: best, computePercent: 5}}", "roles.w.resources.devices.share.policy", "pack"),
    ],
)
def test_devices_that_do_not_agree_are_refused_with_path_and_numbers(devices: str, path: str, message: str) -> None:
    problems = refused(role(f"resources: {{devices: {devices}}}"))
    assert path in problems
    assert message in problems


def test_a_fraction_is_so_much_of_one_device() -> None:
    half = asked(role("resources: {devices: 0.5}")).roles[0].devices
    assert (half.count, half.share) == (1, FractionRequest(500_000, 500_000))
    part = "{share: {computePercent: 30, memory: 10Gi, policy: spread}}"
    assert asked(role(f"resources: {{devices: {part}}}")).roles[0].devices.share == FractionRequest(
        300_000, 0, 10 * 2**30, True
    )
    assert asked(role("resources: {devices: 2.0}")).roles[0].devices.share is None


@pytest.mark.parametrize("zero", ["0", "0Mi", "0.0Gi", "0GB"])
def test_an_amount_of_memory_that_is_nothing_asks_for_no_part(zero: str) -> None:
    """A fraction of zero once caused a division by zero in the scheduler, which ended control."""
    whole = asked(role(f"resources: {{devices: {{count: 2, share: {{memory: {zero}}}}}}}")).roles[0].devices
    assert (whole.count, whole.share) == (2, None)
    part = asked(role(f"resources: {{devices: {{share: {{memory: {zero}, memoryPercent: 5}}}}}}")).roles[0].devices
    assert part.share == FractionRequest(0, 50_000)


def test_nodes_are_chosen_by_name_label_and_taint() -> None:
    request = asked(
        role(
            "nodes: {exclude: [n3], tolerations: [{key: team, value: a}]}",
            "nodes: {include: [n1, n2, n3], expressions: [{key: zone, operator: NotIn, values: [b]}]}",
        )
    )
    assert request.roles[0].nodes == NodeRules(
        (Expression("zone", "NotIn", ("b",)),), (Toleration("team", "Equal", "a"),), ("n1", "n2", "n3"), ("n3",)
    )
    both = asked(role("nodes: [local/n2, n9]", "nodes: [n1, n2]"))
    assert both.roles[0].nodes == NodeRules(include=("local/n2",))
    assert asked(role("replicas: 1")).roles[0].nodes is None


@pytest.mark.parametrize(
    ("fields", "job", "path", "message"),
    [
        ("nodes: [a]", "nodes: [b]", "roles.w.nodes", "none of them is among"),
        ("nodes: {include: [a], exclude: [a]}", "", "roles.w.nodes.include[0]", "in exclude too"),
        (
            "nodes: {expressions: [{key: a, operator: Gt, values: [x]}]}",
            "",
            "roles.w.nodes.expressions[0]",
            "whole number",
        ),
        (
            "nodes: {expressions: [{key: a, operator: Gt, values: ['--5']}]}",
            "",
            "roles.w.nodes.expressions[0]",
            "whole number",
        ),
        (
            "nodes: {expressions: [{key: a, operator: Lt, values: ['\N{SUPERSCRIPT TWO}']}]}",
            "",
            "roles.w.nodes.expressions[0]",
            "whole number",
        ),
        ("nodes: {expressions: [{key: a}]}", "", "roles.w.nodes.expressions[0]", "needs values"),
        ("nodes: {tolerations: [{value: x}]}", "", "roles.w.nodes.tolerations[0]", "needs a key"),
        (
            "nodes: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]}",
            "",
            "roles.w.nodes.tolerations[0]",
            "NoExecute",
        ),
        ("topology: {spread: rack, group: {size: 2, required: node}}", "", "roles.w.topology.spread", "not both"),
        ("topology: {spread: {maxSkew: 2}}", "", "roles.w.topology.spread.level", "missing"),
        ("resources: {other: {cpu: 2}}", "", "roles.w.resources.other.cpu", "a field of its own"),
        ("resources: {other: {x: -1}}", "", "roles.w.resources.other.x", "0"),
        ("replicas: 1", "sharing: sometimes", "sharing", "sharing"),
        ("replicas: 1", "pinnedCell: fast\npriority: oppo", "pinnedCell", "below 0"),
        ("pinnedCell: fast", "priority: oppo", "roles.w.pinnedCell", "below 0"),
    ],
)
def test_what_cannot_be_is_refused_with_its_path(fields: str, job: str, path: str, message: str) -> None:
    problems = refused(role(fields, job))
    assert path in problems
    assert message in problems


@pytest.mark.parametrize(
    ("group", "fields", "message"),
    [
        ("g", "resources: {devices: 1}", ""),
        ("h", "pinnedCell: fast, resources: {devices: 1}", ""),
        ("g", "pinnedCell: fast", ""),
        ("g", "pinnedCell: fast, resources: {devices: 1}", "one pinned cell"),
        ("g", "resources: {devices: {count: 1, model: big}}", "one device model"),
    ],
)
def test_roles_of_one_affinity_group_ask_for_the_same_cells(group: str, fields: str, message: str) -> None:
    first = "a: {command: x, affinityGroup: g, resources: {devices: 1}}"
    text = f"name: j\nroles:\n  {first}\n  b: {{command: x, affinityGroup: {group}, {fields}}}\n"
    if message:
        problems = refused(text)
        assert "roles.b.affinityGroup" in problems and message in problems
    else:
        assert [role.affinity_group for role in load_job(text).spec.roles] == ["g", group]


def test_company_and_closeness_are_said_once_for_the_job() -> None:
    assert asked(role("replicas: 1", "sharing: exclusive")).company == NodeSharing(exclusive=True)
    request = asked(
        role(
            "topology: {sameModel: true}",
            "tags: [b, a, b]\ntopology: {spread: rack}\n"
            "sharing: {oneTaskPerNode: true, antiAffinity: {tags: [noisy], level: rack}}",
        )
    )
    assert request.company == NodeSharing(False, True, ("noisy",), "rack")
    assert request.tags == ("a", "b")
    topology = request.roles[0].topology
    assert (topology.spread_level, topology.max_skew, topology.same_model) == ("rack", 0, True)
    assert asked(role("replicas: 1")).company is None


def test_a_cluster_says_what_else_its_nodes_have() -> None:
    (node,) = load_cluster(
        "nodes: {n1: {devices: {count: 2, model: big, memory: 80Gi, slices: {count: 2, model: small}}, ports: 10, "
        "disk: 1Ti, other: {licences: 4}, taints: [{key: team, value: a}]}}"
    ).nodes
    assert node.resources == {"ports": 10, "disk": 2**40, "licences": 4}
    assert node.taints == (("team", "a", "NoSchedule"),)
    assert [(device.index, device.model, device.parent) for device in node.devices] == [
        (0, "big", -1),
        (1, "big", -1),
        (2, "small", 0),
        (3, "small", 0),
        (4, "small", 1),
        (5, "small", 1),
    ]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("{other: {cpu: 3}}", "a field of its own"),
        ("{taints: [{key: a, effect: Never}]}", "NoSchedule"),
        ("{devices: {count: 1, model: a, slices: {count: 2, model: a}}}", "name the slices apart"),
        ("{ports: 70000}", "65535"),
    ],
)
def test_a_node_that_cannot_be_is_refused(shape: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_cluster(f"nodes: {{n1: {shape}}}")
    assert message in str(caught.value)
