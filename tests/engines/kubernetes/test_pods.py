"""Each task's launch becomes one pod, and a template never overrides Corral's own fields."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.engines.kubernetes.pods.manifest import add_claims, pod_manifest, pod_name, secret_keys
from corral.engines.kubernetes.pods.manifest_inputs import ClaimedDevice, Owner, PodParts, PodSettings, Toleration
from corral.engines.kubernetes.pods.sidecar import WORK, Sidecar
from corral.engines.kubernetes.pods.template import check_template, merged
from corral.engines.kubernetes.volumes.reachability import claims_of
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.inventory import Device
from corral.model.launch import RuntimePlan, SecretDelivery, TaskLaunch

ATTEMPT = AttemptId("0mabcdefgh123.0.worker.3.1")
SETTINGS = PodSettings(server="server-uid", namespace="x", default_image="base:1")


def launch(**fields: Any) -> TaskLaunch:
    values: dict[str, Any] = {"user": "ada", "node": "kubernetes/n1", "command": ("sh", "-c", "true"), "env": {}}
    return TaskLaunch(attempt=ATTEMPT, **(values | fields))


def task(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]
    assert found["name"] == "task"
    return found


def test_the_smallest_task_is_a_pod_that_says_whose_it_is_and_where() -> None:
    assert pod_manifest(launch(), SETTINGS, PodParts(node="n1")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "corral-0mabcdefgh123.0.worker.3.1",
            "namespace": "x",
            "labels": {
                "app.kubernetes.io/managed-by": "corral",
                "corral.dev/server": "server-uid",
                "corral.dev/job": "0mabcdefgh123",
                "corral.dev/role": "worker",
                "corral.dev/task-index": "3",
            },
            "annotations": {"corral.dev/attempt": ATTEMPT},
        },
        "spec": {
            "nodeName": "n1",
            "restartPolicy": "Never",
            "hostname": "worker-3",
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "tolerations": [{"key": "corral.dev/managed", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "task",
                    "image": "base:1",
                    "command": ["sh", "-c", "true"],
                    "env": [{"name": "CORRAL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                }
            ],
        },
    }


def full() -> tuple[TaskLaunch, PodSettings, PodParts]:
    """A launch that uses every field."""
    asked = launch(
        image="train:1",
        command=("sh", "-c", "echo $$ $(HOME)"),
        env={"A": "$(B)", "B": "1"},
        devices=(Device(0, "nvidia.com/gpu#0"), Device(1, "nvidia.com/gpu#1")),
        cpu_millis=1500,
        memory_bytes=2**30,
        shm_bytes=2**28,
        working_dir="/work",
        secrets=(SecretDelivery("hidden-one", env="TOKEN"), SecretDelivery("hidden-two", file="key.pem")),
    )
    settings = PodSettings(
        server="server-uid",
        namespace="x",
        image_pull_secrets=("registry",),
        service_account="trainer",
        storage_limit_bytes=2**38,
        tolerations=(Toleration("corral.dev/managed", effect="NoSchedule"), Toleration("gpu", "Equal", "yes")),
    )
    parts = PodParts(
        node="n1",
        owner=Owner("corral.dev/v1alpha1", "UnifiedJob", "digits", "uid-1"),
        secret="job-secret",
        env={"CORRAL_NODE": "n1", "A": "corral's"},
        ports={"http": (20001, 20002)},
        host_ports=True,
        device_resource="nvidia.com/gpu",
        template={"spec": {"containers": [{"name": "side", "image": "side:1"}]}},
    )
    return asked, settings, parts


def test_everything_a_task_asks_for_is_in_its_pod() -> None:
    pod = pod_manifest(*full())
    add_claims(pod, [ClaimedDevice("gang-claim", ("r0",))])
    spec, container = pod["spec"], task(pod)
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "corral.dev/v1alpha1",
            "kind": "UnifiedJob",
            "name": "digits",
            "uid": "uid-1",
            "controller": True,
        }
    ]
    assert container["image"] == "train:1" and container["workingDir"] == "/work"
    amounts = {"cpu": "1500m", "memory": str(2**30), "nvidia.com/gpu": "2"}
    claims = [{"name": "devices-0", "request": "r0"}]
    assert container["resources"] == {
        "requests": amounts | {"ephemeral-storage": "0"},
        "limits": amounts | {"ephemeral-storage": str(2**38)},
        "claims": claims,
    }
    assert spec["resourceClaims"] == [{"name": "devices-0", "resourceClaimName": "gang-claim"}]
    assert [port["hostPort"] for port in container["ports"]] == [20001, 20002]
    assert spec["imagePullSecrets"] == [{"name": "registry"}] and spec["serviceAccountName"] == "trainer"
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(2**28)}} in spec["volumes"]
    assert [container["name"] for container in spec["containers"]] == ["task", "side"]


@pytest.mark.parametrize(
    ("bound", "reserved", "limit"), [(0, 0, None), (0, 50, None), (40, 0, "40"), (40, 30, "40"), (40, 50, "50")]
)
def test_what_a_pod_writes_to_its_node_is_bounded_and_what_is_reserved_is_requested(
    bound: int, reserved: int, limit: str | None
) -> None:
    settings = msgspec.structs.replace(SETTINGS, storage_limit_bytes=bound)
    resources = task(pod_manifest(launch(amounts={"disk": reserved}), settings, PodParts(node="n1"))).get("resources")
    expected: dict[str, object] = {"limits": {"ephemeral-storage": limit}} if limit else {}
    if limit or reserved:
        expected["requests"] = {"ephemeral-storage": str(reserved)}
    assert (resources or {}) == expected


def test_secrets_are_named_and_never_written_out() -> None:
    asked, settings, parts = full()
    pod = pod_manifest(asked, settings, parts)
    assert "hidden" not in repr(pod)
    env = {entry["name"]: entry for entry in task(pod)["env"]}
    assert env["TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "job-secret", "key": "worker.env.TOKEN"}}
    mounts = {mount["mountPath"]: mount for mount in task(pod)["volumeMounts"]}
    assert mounts["/run/corral/secrets/key.pem"]["subPath"] == "worker.file.1"
    assert secret_keys(asked)["worker.file.1"].value == "hidden-two"


def test_corrals_own_variables_stand_over_the_jobs() -> None:
    env = [(entry["name"], entry.get("value")) for entry in task(pod_manifest(*full()))["env"]]
    assert ("A", "corral's") in env and [name for name, _ in env].count("A") == 1


def expanded(text: str, variables: dict[str, str]) -> str:
    """The kubelet's expansion of a command or value (third_party/forked/golang/expansion)."""

    def one(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", one, text)


@given(st.text(alphabet="$()AB ", max_size=20))
def test_commands_and_values_reach_the_program_as_they_were_written(text: str) -> None:
    pod = pod_manifest(launch(command=("echo", text), env={"X": text}), SETTINGS, PodParts(node="n1"))
    variables = {"A": "wrong", "B": "wrong", "": "wrong"}
    assert expanded(task(pod)["command"][1], variables) == text
    assert expanded(task(pod)["env"][0]["value"], variables) == text


def test_a_task_without_an_image_is_refused_naming_the_setting() -> None:
    with pytest.raises(InvalidInput, match="defaultImage"):
        pod_manifest(launch(), PodSettings(server="s", namespace="x"), PodParts(node="n1"))


def test_the_longest_role_still_makes_a_name_and_a_host_name() -> None:
    attempt = AttemptId(f"0mabcdefgh123.12.{'r' * 63}.1234.99")
    pod = pod_manifest(TaskLaunch(attempt, "ada", "k/n", ("true",), {}), SETTINGS, PodParts(node="n"))
    assert len(pod_name(attempt)) <= 253
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", pod["spec"]["hostname"])
    assert pod["spec"]["hostname"].endswith("-1234")


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ({"spec": {"nodeName": "n2"}}, "spec.nodeName cannot be set: the scheduler decides the node"),
        ({"spec": {"restartPolicy": "Always"}}, "spec.restartPolicy cannot be set: use retryPolicy"),
        ({"spec": {"affinity": {}}}, "spec.affinity cannot be set: use roles[].topology or roles[].nodeSelector"),
        ({"status": {}}, "status cannot be set: a template has metadata and spec only"),
        ({"metadata": {"name": "a"}}, "metadata.name cannot be set: only labels and annotations can be"),
        (
            {"metadata": {"labels": {"corral.dev/job": "a"}}},
            "metadata.labels[corral.dev/job] cannot be set: the prefix is Corral's",
        ),
        *(
            (
                {"metadata": {"labels": {"app": "a", f"app.kubernetes.io/{name}": "corral"}}},
                f"metadata.labels[app.kubernetes.io/{name}] cannot be set: Corral's own pods are found by this label",
            )
            for name in ("name", "instance", "component", "managed-by")
        ),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": "task", "image": "b"}]}},
            "spec.containers[1].image cannot be set: use roles[].image",
        ),
        ({"spec": {"containers": [{"image": "b"}]}}, "spec.containers[0] cannot be set: a container must have a name"),
        ({"spec": {"containers": "b"}}, "spec.containers cannot be set: it must be a list"),
        (
            {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "9"}}}]}},
            "spec.containers[0].resources cannot be set: only roles[].resources are counted, and all containers share them",
        ),
        (
            {"spec": {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}},
            "spec.containers[0].ports cannot be set: use roles[].ports for ports of the node",
        ),
        ({"spec": []}, "spec cannot be set: it must be a mapping"),
        ({"spec": {"volumes": "v"}}, "spec.volumes cannot be set: it must be a list"),
        ({"spec": {"volumes": ["v"]}}, "spec.volumes[0] cannot be set: it must have a name"),
        ({"spec": {"volumes": [{"name": "v", "nfs": 1}]}}, "spec.volumes[0].nfs cannot be set: it must be a mapping"),
        (
            {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": []}}]}},
            "spec.volumes[0].persistentVolumeClaim.claimName cannot be set: it must be a name",
        ),
        ({"spec": {"securityContext": "root"}}, "spec.securityContext cannot be set: it must be a mapping"),
        (
            {"spec": {"containers": [{"name": "task", "env": [{"value": "x"}]}]}},
            "spec.containers[0].env[0] cannot be set: it must have a name",
        ),
        (
            {"spec": {"containers": [{"name": "task", "volumeMounts": {}}]}},
            "spec.containers[0].volumeMounts cannot be set: it must be a list",
        ),
        (
            {"spec": {"containers": [{"name": "task", "resources": []}]}},
            "spec.containers[0].resources cannot be set: it must be a mapping",
        ),
    ],
)
def test_a_template_that_sets_what_corral_decides_is_refused_naming_the_field(
    template: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_template(template, "roles[0].kubernetes.podTemplate")
    assert caught.value.message == f"roles[0].kubernetes.podTemplate.{sentence}."


def test_a_template_is_merged_by_names_under_what_corral_says() -> None:
    template = {
        "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "hi"}},
        "spec": {
            "securityContext": {"runAsUser": 1000},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [
                {
                    "name": "task",
                    "env": [{"name": "MINE", "value": "1"}, {"name": "CORRAL_HOST", "value": "liar"}],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "securityContext": {"capabilities": {"drop": ["ALL"]}},
                }
            ],
            "initContainers": [{"name": "warm", "image": "w"}],
        },
    }
    before = repr(template)
    asked, settings, _ = full()
    pod = pod_manifest(asked, settings, PodParts(node="n1", secret="s", template=template))
    assert repr(template) == before
    assert pod["metadata"]["labels"]["team"] == "vision" and pod["metadata"]["labels"]["corral.dev/role"] == "worker"
    spec, container = pod["spec"], task(pod)
    assert spec["securityContext"] == {"runAsUser": 1000} and spec["initContainers"] == [{"name": "warm", "image": "w"}]
    assert {entry["key"] for entry in spec["tolerations"]} == {"corral.dev/managed", "gpu", "spot"}
    assert {volume["name"] for volume in spec["volumes"]} == {"data", "shm", "secrets"}
    assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/data", "/dev/shm"}
    env = {entry["name"]: entry for entry in container["env"]}
    assert env["MINE"]["value"] == "1"
    assert env["CORRAL_HOST"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert container["command"][0] == "sh"


KEYS = st.sampled_from(
    ["name", "env", "ports", "labels", "hostPort", "image", "resources", "corral.dev/x", "claimName"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["task", "a", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
CONTAINER = JSON | st.fixed_dictionaries(
    {"name": st.sampled_from(["task", "a"])},
    optional={"env": JSON, "ports": JSON, "volumeMounts": JSON, "resources": JSON, "persistentVolumeClaim": JSON},
)
SPEC = st.dictionaries(
    st.sampled_from(["containers", "initContainers", "tolerations", "volumes", "securityContext"]),
    st.lists(CONTAINER) | JSON,
)
METADATA = st.dictionaries(st.sampled_from(["labels", "annotations", "name"]), JSON)


@given(st.fixed_dictionaries({}, optional={"spec": SPEC | JSON, "metadata": METADATA | JSON}))
def test_any_template_is_refused_in_a_sentence_or_leaves_corrals_fields_as_they_are(template: dict[str, Any]) -> None:
    ours = pod_manifest(launch(), SETTINGS, PodParts(node="n1"))
    try:
        pod = pod_manifest(launch(), SETTINGS, PodParts(node="n1", template=template))
    except InvalidInput as error:
        assert error.message.startswith("kubernetes.podTemplate.")
        return
    for field in ("nodeName", "restartPolicy", "hostname"):
        assert pod["spec"][field] == ours["spec"][field]
    assert task(pod)["command"] == ["sh", "-c", "true"] and task(pod)["image"] == "base:1"
    assert pod["metadata"]["labels"].items() >= ours["metadata"]["labels"].items()
    assert all(isinstance(name, str) for name in claims_of(pod))
    plan = RuntimePlan(outputs=(("out", "s3://b/out"),))
    Sidecar(launch(runtime=plan), "corral:1", ()).wrap(pod, given="g", runtime="r", work=WORK)
    add_claims(pod, (ClaimedDevice("c"),))
    assert task(pod)["resources"]["claims"] == [{"name": "devices-0"}]


def test_a_template_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"spec": deep}
    with pytest.raises(InvalidInput, match="nested too deeply"):
        check_template(deep)
    assert merged({}, {"a": [1]}) == {"a": [1]}


def test_registries_are_opened_with_what_the_job_names_and_then_the_cluster() -> None:
    settings = PodSettings(server="s", namespace="x", default_image="base:1", image_pull_secrets=("ours", "both"))
    pod = pod_manifest(launch(image_pull_secrets=("theirs", "both")), settings, PodParts(node="n1"))
    assert pod["spec"]["imagePullSecrets"] == [{"name": name} for name in ("theirs", "both", "ours")]


def test_a_network_with_rdma_and_other_amounts_are_asked_of_their_plugins() -> None:
    asked = launch(resources={"example.com/fpga": 2, "licences": 1})
    pod = pod_manifest(asked, SETTINGS, PodParts(node="n1", rdma=("rdma/hca_a", "rdma/hca_b")))
    assert task(pod)["resources"]["limits"] == {"example.com/fpga": "2", "rdma/hca_a": "1", "rdma/hca_b": "1"}
