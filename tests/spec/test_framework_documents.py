"""FrameworkController's documents become jobs: policies keep their terms, pods become roles, the rest is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.frameworks.runnable_job import load_runnable_job
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworkcontroller"
CONTAINER = {"name": "main", "image": "images/demo:1", "command": ["sh", "-c", "true"]}


def role(name: str = "worker", number: int = 2, *, retries: int = 0, **pod: Any) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "containers": [copy.deepcopy(CONTAINER)], **pod}
    return {
        "name": name,
        "taskNumber": number,
        "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceededTaskCount": -1},
        "task": {"retryPolicy": {"fancyRetryPolicy": False, "maxRetryCount": retries}, "pod": {"spec": spec}},
    }


def framework(*roles: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": "sample"},
        "spec": {
            "executionType": "Start",
            "retryPolicy": {"fancyRetryPolicy": True, "maxRetryCount": 3},
            "taskRoles": list(roles) or [role()],
            **spec,
        },
    }


def with_container(**fields: Any) -> dict[str, Any]:
    return framework(role(containers=[{**CONTAINER, **fields}]))


def refused(data: dict[str, Any] | str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_job(data, filename="framework.yaml")
    return [str(problem) for problem in caught.value.problems]


def template(job: UnifiedJob) -> dict[str, Any]:
    return job.spec.roles[0].kubernetes.pod_template


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_a_job(path: Path) -> None:
    job = load_runnable_job(path.read_bytes(), filename=path.name)
    assert job.total_tasks > 1
    assert UnifiedJob.from_document(job.to_document()) == job


def test_policies_and_numbers_keep_their_meaning() -> None:
    second = role("ps", 3, retries=-2)
    second["frameworkAttemptCompletionPolicy"] = {"minFailedTaskCount": -1, "minSucceededTaskCount": 2}
    job = load_job(framework(role(retries=5), second))
    assert (job.spec.retry_policy.fancy, job.spec.retry_policy.max_retries) == (True, 3)
    worker, ps = job.spec.roles
    assert (worker.retry_policy.fancy, worker.retry_policy.max_retries) == (False, 5)
    assert (worker.completion.min_failed, worker.completion.min_succeeded) == (1, -1)
    assert (ps.retry_policy.max_retries, ps.completion.min_failed, ps.completion.min_succeeded) == (-2, -1, 2)
    assert job.gang_size() == {"worker": 2, "ps": 3}
    assert (job.spec.job_type, job.spec.exit_table) == ("frameworkcontroller", "frameworkcontroller")


def test_what_is_not_written_is_what_gos_zero_values_mean() -> None:
    bare = role()
    del bare["frameworkAttemptCompletionPolicy"], bare["task"]["retryPolicy"]
    data = framework(bare)
    del data["spec"]["retryPolicy"], data["spec"]["executionType"]
    job = load_job(data)
    assert (job.spec.retry_policy.fancy, job.spec.retry_policy.max_retries) == (False, 0)
    assert (job.spec.roles[0].completion.min_failed, job.spec.roles[0].completion.min_succeeded) == (-1, -1)


def test_when_a_pod_is_given_up_is_the_roles() -> None:
    patient, hasty = role(), role("ps")
    hasty["task"]["podGracefulDeletionTimeoutSec"] = 1800
    first, second = load_job(framework(patient, hasty)).spec.roles
    assert (first.kubernetes.force_after_seconds, second.kubernetes.force_after_seconds) == (-1, 1800)


@pytest.mark.parametrize(("restart", "retries"), [("Never", 4), ("OnFailure", -1), ("Always", -2), (None, -2)])
def test_a_pod_that_restarts_is_a_task_that_is_tried_again(restart: str | None, retries: int) -> None:
    policy = load_job(framework(role(retries=4, restartPolicy=restart))).spec.roles[0].retry_policy
    assert (policy.fancy, policy.max_retries) == (False, retries)


def test_the_first_container_is_the_task() -> None:
    job = load_job(
        with_container(
            args=["more"],
            workingDir="/work",
            env=[{"name": "LR", "value": "0.10"}, {"name": "EMPTY"}],
            imagePullPolicy="Always",
            ports=[{"containerPort": 80}, {"containerPort": 81, "name": "probe"}],
        )
    )
    task = job.spec.roles[0]
    assert (task.image, task.command, task.working_dir) == ("images/demo:1", ["sh", "-c", "true", "more"], "/work")
    assert task.env == {"LR": "0.10", "EMPTY": ""}
    assert template(job)["spec"]["containers"] == [
        {"name": "task", "imagePullPolicy": "Always", "ports": [{"containerPort": 81, "name": "probe"}]}
    ]


def test_arguments_without_a_command_are_the_entry_points_own() -> None:
    job = load_job(with_container(command=None, args=["serve", "$(FC_TASK_INDEX)"]))
    assert job.spec.roles[0].command == []
    assert template(job) == {"spec": {"containers": [{"name": "task", "args": ["serve", "$(FC_TASK_INDEX)"]}]}}


def test_a_pod_that_a_job_has_words_for_needs_no_template() -> None:
    assert template(load_job(framework())) == {}


def test_what_only_kubernetes_knows_goes_on_in_the_template() -> None:
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    mount = {"name": "data", "mountPath": "/data"}
    job = load_job(
        framework(
            role(
                containers=[
                    {**CONTAINER, "env": [secret], "volumeMounts": [mount]},
                    {"name": "logs", "image": "images/logs", "resources": {"limits": {"cpu": "250m"}}},
                ],
                initContainers=[{"name": "first", "image": "images/first", "resources": {"limits": {"memory": "2Gi"}}}],
                volumes=[{"name": "data", "emptyDir": {}}],
                hostNetwork=True,
                serviceAccountName="trainer",
            )
        )
    )
    assert template(job) == {
        "spec": {
            "containers": [
                {"name": "task", "env": [secret], "volumeMounts": [mount]},
                {"name": "logs", "image": "images/logs"},
            ],
            "initContainers": [{"name": "first", "image": "images/first"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "hostNetwork": True,
            "serviceAccountName": "trainer",
        }
    }
    resources = job.spec.roles[0].resources
    assert (resources.cpu, resources.memory) == ("250m", "2Gi")


@pytest.mark.parametrize(
    ("asked", "cpu", "memory", "devices", "kind"),
    [
        ({}, 0, 0, 0, ""),
        ({"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 4}}, 2000, 2**30, 4, "gpu"),
        ({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1.5"}}, 1500, 2**26, 0, ""),
        ({"requests": {"cpu": "1e-1", "memory": "1e9", "huawei.com/Ascend910": "2"}}, 100, 10**9, 2, "npu"),
        ({"limits": {"amd.com/gpu": "0", "memory": "1073741824000m"}}, 0, 2**30, 0, ""),
    ],
)
def test_amounts_are_counted_as_kubernetes_counts_them(
    asked: dict[str, Any], cpu: int, memory: int, devices: int, kind: str
) -> None:
    resources = load_job(with_container(resources=asked)).spec.roles[0].resources
    assert (resources.cpu_millis, resources.memory_bytes) == (cpu, memory)
    assert (resources.devices.count, resources.devices.kind) == (devices, kind)


def test_other_resources_and_rdma_are_asked_for() -> None:
    job = load_job(with_container(resources={"limits": {"example.com/licence": 2, "rdma/hca": 1}}))
    assert job.spec.roles[0].resources.other == {"example.com/licence": 2}
    assert job.spec.network.rdma == "required"


def test_rules_about_nodes_are_the_roles() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node7"]}],
                    }
                ]
            }
        }
    }
    taint = {"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}
    found = load_job(framework(role(affinity=affinity, tolerations=[taint], nodeSelector={"disk": "fast"}))).spec.roles[
        0
    ]
    assert found.node_selector == {"disk": "fast"}
    assert found.nodes.include == ["node7"]
    assert [(each.key, each.operator, each.values) for each in found.nodes.expressions] == [("zone", "In", ["a", "b"])]
    assert [(each.key, each.value, each.effect) for each in found.nodes.tolerations] == [
        ("team", "vision", "NoSchedule")
    ]


def test_the_longest_grace_is_the_jobs_and_each_roles_deadline_is_its_pods() -> None:
    data = framework(
        role(terminationGracePeriodSeconds=10, activeDeadlineSeconds=60),
        role("ps", terminationGracePeriodSeconds=90),
        role("chief", activeDeadlineSeconds=None),
    )
    spec = load_job(data).spec
    assert (spec.checkpoint.grace_seconds, spec.max_duration_seconds) == (90, 0)
    assert [each.max_task_seconds for each in spec.roles] == [60, 0, 0]
    assert refused(framework(role(activeDeadlineSeconds=0))) == [
        "framework.yaml: spec.taskRoles[0].task.pod.spec.activeDeadlineSeconds: "
        "expected a whole number from 1 to 2147483647, got 0"
    ]


@pytest.mark.parametrize(
    ("pod", "priority"),
    [
        ({"priorityClassName": "prod-priority"}, 100),
        ({"priorityClassName": "oppo"}, -1),
        ({"priority": 77}, 77),
        ({}, 10),
    ],
)
def test_classes_and_numbers_say_the_priority(pod: dict[str, Any], priority: int) -> None:
    assert load_job(framework(role(**pod))).priority == priority


def test_what_was_asked_of_hived_is_asked_of_corral() -> None:
    job = load_job((EXAMPLES / "hived.yaml").read_text())
    assert (job.spec.queue, job.priority, job.spec.lazy_preemption) == ("vision", 100, False)
    task = job.spec.roles[0]
    assert (task.resources.devices.count, task.resources.devices.model, task.resources.cpu) == (4, "V100", "12")
    assert task.env == {}
    assert template(job) == {"metadata": {"labels": {"team": "vision"}}}


def of_hived(name: str, **said: Any) -> dict[str, Any]:
    """A role whose pods request one device from HiveD."""
    found = role(name)
    asked = json.dumps({"virtualCluster": "vision", "priority": 100, "leafCellNumber": 1, **said})
    found["task"]["pod"]["metadata"] = {"annotations": {"hivedscheduler.microsoft.com/pod-scheduling-spec": asked}}
    return found


def group(name: str) -> dict[str, Any]:
    return {"affinityGroup": {"name": name, "members": [{"podNumber": 2, "leafCellNumber": 1}]}}


def test_roles_have_the_pinned_cells_and_affinity_groups_that_their_pods_ask_hived_for() -> None:
    first, second = of_hived("a", pinnedCellId="one", **group("x")), of_hived("b", reservationId="two", **group("y"))
    spec = load_job(framework(first, second, of_hived("c"), role("d"))).spec
    assert spec.pinned_cell == ""
    assert [each.pinned_cell for each in spec.roles] == ["one", "two", "", ""]
    assert [each.affinity_group for each in spec.roles] == ["x", "y", "", ""]


def test_what_all_pods_ask_of_hived_is_the_jobs_and_one_group() -> None:
    pinned = {"pinnedCellId": "one", **group("all")}
    spec = load_job(framework(of_hived("a", **pinned), of_hived("b", **pinned), role("c"))).spec
    assert spec.pinned_cell == "one"
    assert {(each.pinned_cell, each.affinity_group) for each in spec.roles} == {("", "")}


@pytest.mark.parametrize("said", [{}, {"affinityGroup": None}])
def test_pods_that_ask_hived_and_name_no_group_are_no_gang(said: dict[str, Any]) -> None:
    assert not load_job(framework(of_hived("a", **said), of_hived("b", **said), role("c"))).spec.gang
    assert load_job(framework(of_hived("a", **said), of_hived("b", **group("x")))).spec.gang
    assert load_job(framework(role("a"))).spec.gang
    unnamed = of_hived("a", affinityGroup={"members": []})
    assert any(problem.endswith("affinityGroup.name: missing") for problem in refused(framework(unnamed)))


def with_ask(text: str) -> dict[str, Any]:
    """A Framework whose pods have this text as HiveD's annotation."""
    found = role()
    found["task"]["pod"]["metadata"] = {"annotations": {"hivedscheduler.microsoft.com/pod-scheduling-spec": text}}
    return framework(found)


def test_hiveds_annotation_is_read_in_any_case_and_kubernetes_fields_in_their_own() -> None:
    text = "VirtualCluster: vision\nPRIORITY: 7\nleafcellnumber: 2\nLeafCellType: V100\nlazyPreemptionEnable: null\n"
    text += "AffinityGroup: {Name: x, Members: [{PodNumber: 2, leafcellnumber: 2}]}\npinnedCellId: null\n"
    spec = load_job(with_ask(text)).spec
    devices = spec.roles[0].resources.devices
    assert (spec.queue, spec.priority, spec.gang, spec.pinned_cell, spec.lazy_preemption) == (
        "vision",
        "7",
        True,
        "",
        False,
    )
    assert (devices.count, devices.model) == (2, "V100")
    (twice,) = refused(with_ask("leafCellNumber: 1\nLeafCellNumber: 2\n"))
    assert "repeated; leafCellNumber was already given" in twice
    assert any(
        "leafCells: unknown field" in problem for problem in refused(with_ask("leafCellNumber: 1\nleafCells: 2\n"))
    )
    data = framework()
    data["spec"]["TaskRoles"] = data["spec"].pop("taskRoles")
    assert any("spec.TaskRoles: unknown field" in problem for problem in refused(data))
    pods = framework(role(ActiveDeadlineSeconds=5))
    assert load_job(pods).spec.roles[0].max_task_seconds == 0


def test_null_is_unset_everywhere() -> None:
    said = framework(description=None)
    task = said["spec"]["taskRoles"][0]
    task["task"]["podGracefulDeletionTimeoutSec"] = None
    task["frameworkAttemptCompletionPolicy"] = None
    pod = task["task"]["pod"]
    pod["metadata"] = None
    pod["spec"] |= dict.fromkeys(
        ("affinity", "tolerations", "nodeSelector", "nodeName", "activeDeadlineSeconds", "priority", "hostname", "volumes",
         "securityContext", "priorityClassName", "imagePullSecrets", "initContainers", "terminationGracePeriodSeconds")
    )  # fmt: skip
    container = pod["spec"]["containers"][0]
    container |= dict.fromkeys(
        ("args", "workingDir", "resources", "ports", "volumeMounts", "securityContext", "restartPolicy")
    )
    container["env"] = [{"name": "A", "value": "1", "valueFrom": None}, {"name": "B", "value": None}]
    found = load_job(said).spec.roles[0]
    assert (found.env, found.kubernetes.pod_template) == ({"A": "1", "B": ""}, {})
    pod["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {"medium": None}, "hostPath": None}]
    assert template(load_job(said)) == {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}}


def test_a_cell_that_a_pod_cannot_ask_for_is_refused_at_its_role() -> None:
    asked = {"priority": -1, "pinnedCellId": "one"}
    (problem,) = refused(framework(of_hived("a", **asked), of_hived("b", priority=-1)))
    assert "spec.taskRoles[0].task.pod" in problem and "below 0" in problem


def test_the_barrier_is_corrals_own() -> None:
    job = load_job((EXAMPLES / "barrier.yaml").read_text())
    assert (job.spec.barrier.enabled, job.spec.barrier.timeout_seconds) == (True, 900)
    assert job.spec.roles[0].env == {"FRAMEWORKBARRIER_DIR": "/mnt/frameworkbarrier"}
    assert template(job)["spec"].keys() == {"containers", "volumes"}


WRONG = {
    "a stopped one": (framework(executionType="Stop"), "only a Framework that starts is submitted"),
    "an unknown execution": (framework(executionType="Begin"), "expected one of Create, Start, Stop"),
    "no roles": (framework(taskRoles=[]), "spec.taskRoles: missing; a Framework has at least one role"),
    "a role's name": (framework(role("a-b")), "spec.taskRoles[0].name: expected 1 to 63 lower-case letters and digits"),
    "a role without tasks": (framework(role(number=0)), "taskNumber: a role of a job has at least one task"),
    "two roles of one name": (framework(role(), role()), 'spec.taskRoles[1].name: the role "worker" is already there'),
    "a retry count": (framework(role(retries=-3)), "task.retryPolicy.maxRetryCount: expected a whole number from -2"),
    "no image": (with_container(image=None), "containers[0].image: missing"),
    "an amount": (with_container(resources={"limits": {"cpu": "two"}}), "limits.cpu: expected an amount as Kubernetes"),
    "a broken device": (with_container(resources={"limits": {"x/y": "1.5"}}), "x/y is counted in whole units, got 1.5"),
    "two sorts of devices": (
        with_container(resources={"limits": {"nvidia.com/gpu": 1, "huawei.com/Ascend910": 1}}),
        "one task has devices of one resource, not of huawei.com/Ascend910 and nvidia.com/gpu",
    ),
    "a port of the node": (
        with_container(ports=[{"containerPort": 1, "hostPort": 1}]),
        "ports of the node are Corral's",
    ),
    "a preference": (
        framework(role(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}})),
        "Corral weighs no preferences between nodes",
    ),
    "pods that keep apart": (
        framework(role(affinity={"podAntiAffinity": {"a": 1}})),
        "say how far apart the tasks are",
    ),
    "alternatives": (
        framework(
            role(
                affinity={
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}, {}]}}
                }
            )
        ),
        "several terms are alternatives, and a job has none",
    ),
    "a name for the pod": (framework(role(hostname="a")), "spec.hostname: Corral names the task"),
    "a class": (framework(role(priorityClassName="gold")), "Corral's classes are crit, prod, test, oppo"),
    "two priorities": (
        framework(role(priority=1), role("ps", priority=2)),
        "a job has one priority; another role says",
    ),
    "a container of our name": (
        framework(role(containers=[CONTAINER, {"name": "task", "image": "a"}])),
        "Corral calls the container of the task's command task",
    ),
    "an unknown field": (framework(taskRole=[]), 'spec.taskRole: unknown field; did you mean "taskRoles"?'),
    "a barrier that waits too long": (
        framework(
            role(
                initContainers=[
                    {
                        "name": "b",
                        "image": "frameworkcontroller/frameworkbarrier:v1",
                        "env": [{"name": "BARRIER_CHECK_TIMEOUT_SEC", "value": "9000"}],
                    }
                ]
            )
        ),
        "initContainers[0].env[0].value: expected seconds from 60 to 1200",
    ),
    "a barrier's patience in digits that are no number": (
        framework(
            role(
                initContainers=[
                    {
                        "name": "b",
                        "image": "frameworkcontroller/frameworkbarrier:v1",
                        "env": [{"name": "BARRIER_CHECK_TIMEOUT_SEC", "value": "\u00b2"}],
                    }
                ]
            )
        ),
        "initContainers[0].env[0].value: expected seconds from 60 to 1200",
    ),
    "a variable whose value only Kubernetes knows": (
        with_container(
            env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}], command=["a", "$(IP)"]
        ),
        "the value of IP is known only in the pod",
    ),
}


@pytest.mark.parametrize(("data", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_refused_with_one_sentence(data: dict[str, Any], sentence: str) -> None:
    found = refused(data)
    assert len(found) == 1, found
    assert sentence in found[0]


def test_a_problem_is_told_at_the_line_where_it_was_written() -> None:
    text = (EXAMPLES / "batch.yaml").read_text().replace("taskNumber: 2", "taskNumber: 20000")
    line = text[: text.index("taskNumber: 20000")].count("\n") + 1
    assert refused(text)[0].startswith(
        f"framework.yaml:{line}:17: spec.taskRoles[1].taskNumber: expected a whole number"
    )


NAMES = st.sampled_from(
    ["name", "taskNumber", "task", "pod", "spec", "containers", "image", "command", "env", "resources", "limits", "cpu",
     "retryPolicy", "maxRetryCount", "initContainers", "affinity", "tolerations", "restartPolicy", "metadata"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12_000) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4), VALUES)
def test_whatever_is_written_is_a_job_or_is_refused(pod: dict[str, Any], first: dict[str, Any], more: Any) -> None:
    broken = role(**pod)
    broken |= first
    data = framework(role("ps"), broken)
    data["spec"]["taskRoles"].append(more)
    try:
        job = load_job(data)
    except SpecError as error:
        assert all(str(problem) for problem in error.problems)
    else:
        assert UnifiedJob.from_document(job.to_document()) == job
