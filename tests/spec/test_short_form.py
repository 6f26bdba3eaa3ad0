"""The short form of a job file becomes the canonical document, field by field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

ISSUE = """\
name: digits
framework: pytorch
roles:
  worker:
    replicas: 2               # or {min: 2, max: 8}: elastic
    resources: {cpu: 1, memory: 2Gi, devices: 1}
    command: python train.py --epochs 5
topology: {required: rack, preferred: pcie-switch}
"""


def _worker(line: str) -> Any:
    text = f"name: a\nroles:\n  w:\n    {line}\n" + ("" if "command" in line else "    command: [x]\n")
    return load_job(text).role("w")


def _job(line: str) -> Any:
    return load_job(f"name: a\n{line}\nroles: {{w: {{command: [x]}}}}\n").spec


def test_the_first_example_people_see_means_what_it_says() -> None:
    job = load_job(ISSUE)
    assert job.to_document(complete=False) == {
        "apiVersion": "corral.dev/v1alpha1",
        "kind": "UnifiedJob",
        "metadata": {"name": "digits"},
        "spec": {
            "jobType": "pytorch",
            "topology": {"required": "rack", "preferred": "pcie-switch"},
            "roles": [
                {
                    "name": "worker",
                    "resources": {"memory": "2Gi", "devices": {"count": 1}},
                    "command": ["sh", "-c", "python train.py --epochs 5"],
                }
            ],
            "replicaSpec": {"role": "worker", "replicas": 2, "minReplicas": 2, "maxReplicas": 2},
        },
    }
    assert (job.total_tasks, job.total_devices, job.is_elastic, job.priority) == (2, 2, False, 10)


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("command: [python, -c, 'print(1)', 3.10, yes]", "command", ["python", "-c", "print(1)", "3.10", "yes"]),
        ("command: on", "command", ["sh", "-c", "on"]),
        (
            "env: {A: 3.10, B: yes, C: True, D: 0755, E: ''}",
            "env",
            {"A": "3.10", "B": "yes", "C": "True", "D": "0755", "E": ""},
        ),
        ("ports: [http, rpc]", "ports", [("http", 1, 0), ("rpc", 1, 0)]),
        ("ports: {http: 2}", "ports", [("http", 2, 0)]),
        ("ports: [{name: http, count: 3}]", "ports", [("http", 3, 0)]),
        ("ports: [{name: http, start: 8080}]", "ports", [("http", 1, 8080)]),
        ("secrets: {TOKEN: hub}", "secrets", [("hub", "TOKEN", "")]),
        ("secrets: [{name: hub, file: token}]", "secrets", [("hub", "", "token")]),
        ("resources: {devices: 4}", "resources.devices.count", 4),
        ("resources: {devices: {count: 2, ids: ['0', '1']}}", "resources.devices.ids", ["0", "1"]),
        ("resources: {cpu: 500m}", "resources.cpu_millis", 500),
        ("resources: {cpu: 0.25}", "resources.cpu_millis", 250),
        ("resources: {memory: 1536Mi}", "resources.memory_bytes", 1536 * 2**20),
        ("shm: 1Gi", "shm_bytes", 2**30),
        ("retry: 3", "retry_policy.max_retries", 3),
        ("retryPolicy: {fancy: false, maxRetries: -1}", "retry_policy.fancy", False),
        ("topology: node", "topology.required", "node"),
        ("topology: {group: {size: 8, required: node}}", "topology.group.size", 8),
        ("completion: {minSucceeded: 1}", "completion.min_succeeded", 1),
        ("image: 3.10", "image", "3.10"),
        ("processesPerReplica: 3", "processes", 3),
        ("resources: {devices: 8}", "processes", 8),
        ("nodeSelector: {zone: yes}", "node_selector", {"zone": "yes"}),
    ],
)
def test_a_role_may_be_abbreviated(line: str, field: str, expected: object) -> None:
    value = _worker(line)
    for part in field.split("."):
        value = getattr(value, part)
    if field in ("ports", "secrets"):
        value = [tuple(each.model_dump().values()) for each in value]
    assert value == expected


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("virtualCluster: team-a", "queue", "team-a"),
        ("priority: crit", "priority", "crit"),
        ("priority: -5", "priority", "-5"),
        ("priority: 007", "priority", "7"),
        ("network: rdma", "network.rdma", "required"),
        ("network: preferred", "network.rdma", "preferred"),
        ("network: {rdma: preferred}", "network.rdma", "preferred"),
        ("code: .", "code.uri", "."),
        ("code: {path: src, target: app}", "code.target", "app"),
        ("maxDuration: 2h", "max_duration_seconds", 7200),
        ("maxDuration: 1h30m", "max_duration_seconds", 5400),
        ("maxDuration: 90", "max_duration_seconds", 90),
        ("checkpoint: {signal: usr1, grace: 5m}", "checkpoint.grace_seconds", 300),
        ("checkpoint: {signal: usr1, grace: 5m}", "checkpoint.signal", "SIGUSR1"),
        ("report: true", "report.enabled", True),
        ("report: {steps: 5}", "report.enabled", True),
        ("report: {pattern: 'at (?P<step>.)'}", "report.pattern", "at (?P<step>.)"),
        ("checkpoint: {graceSeconds: 7}", "checkpoint.grace_seconds", 7),
        ("barrier: true", "barrier.enabled", True),
        ("barrier: {timeoutSeconds: 5}", "barrier.enabled", True),
        ("array: 100", "array.size", 100),
        ("array: {size: 9, maxParallel: 3}", "array.max_parallel", 3),
        ("topology: rack", "topology.required", "rack"),
        ("retry: -2", "retry_policy.max_retries", -2),
        ("tags: [a, 1.10]", "tags", ["a", "1.10"]),
    ],
)
def test_a_job_may_be_abbreviated(line: str, field: str, expected: object) -> None:
    value = _job(line)
    for part in field.split("."):
        value = getattr(value, part)
    assert value == expected


def test_dependencies_are_names_or_conditions() -> None:
    spec = _job("after: [prepare, {job: clean, condition: ended}]")
    assert [(each.job, each.condition) for each in spec.depends_on] == [("prepare", "succeeded"), ("clean", "ended")]
    assert [each.job for each in _job("dependsOn: prepare").depends_on] == ["prepare"]


def test_what_the_job_says_holds_for_roles_that_do_not_say_otherwise() -> None:
    job = load_job(
        "name: a\nimage: base\nworkingDir: /w\nenv: {A: 1, B: 2}\nsecrets: {T: t}\nnodeSelector: {z: a}\n"
        "roles:\n  p: {command: [x]}\n  q: {command: [x], image: own, env: {B: 3}, secrets: {U: u}}\n"
    )
    p, q = job.role("p"), job.role("q")
    assert (p.image, q.image, p.working_dir, q.node_selector) == ("base", "own", "/w", {"z": "a"})
    assert (p.env, q.env) == ({"A": "1", "B": "2"}, {"A": "1", "B": "3"})
    assert [each.name for each in q.secrets] == ["u", "t"]


def test_the_elastic_role_is_counted_else_the_first() -> None:
    text = "name: a\nroles:\n  ps: {command: [x], replicas: 3}\n  w: {command: [x], replicas: %s}\n"
    fixed, elastic = load_job(text % "2"), load_job(text % "{min: 2, max: 8}")
    assert (fixed.counted_role.name, elastic.counted_role.name) == ("ps", "w")
    assert (elastic.replicas_of("ps"), elastic.replicas_of("w"), elastic.is_elastic) == (3, 8, True)
    assert elastic.gang_size() == {"ps": 3, "w": 2}
    assert load_job(text % "2" + "countedRole: w\n").counted_role.name == "w"
    assert load_job(text % "{min: 2, max: 8, replicas: 4}").replicas_of("w") == 4


def test_the_canonical_document_reads_back_as_the_same_job() -> None:
    job = load_job(ISSUE)
    assert UnifiedJob.from_document(job.to_document()) == job
    assert UnifiedJob.from_document(job.to_document(complete=False)) == job
    assert load_job(job.to_json()) == job
    assert load_job(job.to_json()).to_json() == job.to_json()


def test_a_part_that_documents_leave_out_is_one_instance_for_all_of_them() -> None:
    left_out, again, written = load_job(ISSUE), load_job(ISSUE), load_job(ISSUE + "retry: 3\n")
    assert left_out.spec.retry_policy is again.spec.retry_policy
    assert left_out.spec.retry_policy != written.spec.retry_policy == load_job(written.to_json()).spec.retry_policy
    assert load_job(ISSUE).spec.retry_policy is left_out.spec.retry_policy
    with pytest.raises(ValidationError, match="frozen"):
        left_out.spec.retry_policy.max_retries = 3
