"""A server on a cluster that refuses, loses and forgets: jobs name the cause, and go on when they can."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engines.kubernetes.permitted import Permitted
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes, gang
from tests.engines.kubernetes.test_testbed import until as until_given
from tests.engines.kubernetes.webhook import Webhook
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.kwok import Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
NAMESPACE, RACK = "faulty", "topology.kubernetes.io/rack"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
STRATEGIC = "application/strategic-merge-patch+json"
DELAYS = {"CORRAL_CONFLICT_DELAY_MINIMUM": "1", "CORRAL_CONFLICT_DELAY_MAXIMUM": "1", "CORRAL_NOT_READY_SECONDS": "1"}


@pytest.fixture(scope="module")
def nodes(kwok: Kwok, control_plane: ControlPlane) -> Iterator[list[str]]:
    made = kwok.add_nodes(2, prefix="faulty", levels={RACK: 1})
    yield made
    for name in made:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane) -> Iterator[Permitted]:
    """The server's account, with exactly the permissions that docs/kubernetes.md lists."""
    made = Permitted(control_plane, "corral-of-faulty")
    yield made
    made.remove()


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, account: Permitted, nodes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnKubernetes]:
    control_plane.add_namespace(NAMESPACE)
    made = OnKubernetes(tmp_path_factory.mktemp("server"), namespace=NAMESPACE)
    made.kubeconfig = account.kubeconfig
    made.plane, made.env = control_plane, made.env | DELAYS
    made.up()
    yield made
    made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def until(holds: Callable[[], bool], what: str) -> None:
    until_given(lambda: True if holds() else None, what)


def here(nodes: list[str]) -> dict[str, Any]:
    """Only this module's nodes: other tests have nodes on the same control plane."""
    return {"nodes": {"include": [f"kubernetes/{name}" for name in nodes]}}


def said(server: OnKubernetes, job: Any) -> str:
    """The messages of the ended attempts of the job's tasks."""
    return json.dumps([server.attempts(job, task) for task in server.tasks(job)])


def pods_of(server: OnKubernetes, job: Any) -> list[dict[str, Any]]:
    """The pods of this job alone: the server validates nodes that were not Ready by jobs of its own."""
    return [pod for pod in server.pods() if pod["metadata"]["labels"]["corral.dev/job"] == job["id"]]


def alive(server: OnKubernetes, job: Any) -> list[dict[str, Any]]:
    return [pod for pod in pods_of(server, job) if pod["status"]["phase"] not in ("Failed", "Succeeded")]


@pytest.fixture(autouse=True)
def _no_job_is_left(server: OnKubernetes) -> Iterator[None]:
    """What a failed test leaves running would hold the nodes of the tests after it."""
    yield
    mine = server.client.me()["user"]
    for job in server.client.jobs(user=[mine], limit=500)["items"]:
        if job["state"] not in ("succeeded", "failed", "stopped"):
            server.client.stop(job["id"])
            server.ended(job["id"])


@pytest.mark.parametrize("reason", ["OutOfnvidia.com/gpu", "UnexpectedAdmissionError"])
def test_a_kubelet_that_refuses_frees_the_devices_and_the_task_is_tried_again(
    server: OnKubernetes, nodes: list[str], reason: str
) -> None:
    job = server.submit(gang("refused", **here(nodes)))
    server.until(job, lambda now: now["state"] == "running")
    refused = pods_of(server, job)[0]
    path = f"{PODS}/{refused['metadata']['name']}/status"
    status = {"status": {"phase": "Failed", "reason": reason, "message": "no devices", "containerStatuses": None}}
    server.plane.request("PATCH", path, status, content=STRATEGIC)
    uid = refused["metadata"]["uid"]
    until(lambda: uid not in {pod["metadata"]["uid"] for pod in pods_of(server, job)}, "it is gone")
    until(lambda: len(alive(server, job)) == 2, "both tasks have a pod again")
    until(lambda: server.client.job(job["id"])["tasks"]["running"] == 2, "both tasks run")
    assert reason in said(server, job)
    assert len({pod["spec"]["nodeName"] for pod in alive(server, job)}) == 2
    server.client.stop(job["id"])
    server.ended(job)


def test_a_quota_holds_a_job_until_there_is_room_and_it_says_whose(server: OnKubernetes, nodes: list[str]) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
    server.plane.request("POST", path, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
    until(lambda: "hard" in server.plane.request("GET", f"{path}/small").get("status", {}), "the quota counts")
    job = server.submit(gang("limited", **here(nodes)))
    until(lambda: "exceeded quota: small" in said(server, job), "the job says whose quota it is")
    server.plane.request("DELETE", f"{path}/small")
    until(lambda: server.client.job(job["id"])["tasks"]["running"] == 2, "both tasks run")
    server.client.stop(job["id"])
    server.ended(job)


def test_an_admission_rule_that_refuses_is_named(server: OnKubernetes, nodes: list[str]) -> None:
    rules, base = "/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolic"
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    matched = {"resourceRules": [pods]}
    policy = {
        "metadata": {"name": "no-pods-here"},
        "spec": {"matchConstraints": matched, "validations": [{"expression": "false", "message": "not on my watch"}]},
    }
    only = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    binding = {
        "metadata": {"name": "no-pods-here"},
        "spec": {"policyName": "no-pods-here", "validationActions": ["Deny"], "matchResources": only},
    }
    server.plane.request("POST", f"{rules}/{base}ies", policy)
    server.plane.request("POST", f"{rules}/{base}ybindings", binding)
    try:
        until(lambda: _denies(server), "the API server follows its own rule")
        job = server.ended(server.submit(gang("forbidden", replicas=1, **here(nodes))))
    finally:
        server.plane.request("DELETE", f"{rules}/{base}ybindings/no-pods-here")
        server.plane.request("DELETE", f"{rules}/{base}ies/no-pods-here")
        until(lambda: not _denies(server), "the API server forgets the rule")
    assert job["state"] == "failed"
    assert "no-pods-here" in job["exit"]["message"] and "not on my watch" in job["exit"]["message"]


def _denies(server: OnKubernetes) -> bool:
    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    try:
        server.plane.request("POST", f"{PODS}?dryRun=All", pod)
    except Refused as refused:
        return "no-pods-here" in refused.body
    return False


@pytest.mark.parametrize("code", [403, 400, 404, 409])
def test_a_webhook_that_refuses_is_named_with_its_reason_and_not_asked_again(
    server: OnKubernetes, nodes: list[str], code: int
) -> None:
    why = {"metadata": {"annotations": {Webhook.WHY: "no cat pictures, User"}}}
    with Webhook(server.plane, "pictures.example.com", NAMESPACE, code=code):
        refused = gang("forbidden", replicas=1, **here(nodes))
        refused["roles"]["worker"]["kubernetes"] = {"podTemplate": why}
        others = server.submit(gang("admitted", replicas=1, **here(nodes)))
        job = server.ended(server.submit(refused))
        server.until(others, lambda now: now["state"] == "running")
    assert (job["state"], job["exit"]["code"]) == ("failed", -200)
    assert 'webhook "pictures.example.com" denied' in job["exit"]["message"]
    assert "no cat pictures" in job["exit"]["message"]
    assert len(server.attempts(job, "worker-0")) == 1
    server.client.stop(others["id"])
    server.ended(others)


def test_a_field_of_a_template_that_the_cluster_does_not_know_is_named(server: OnKubernetes, nodes: list[str]) -> None:
    misspelt = gang("misspelt", replicas=1, **here(nodes))
    template = {"spec": {"containers": [{"name": "beside", "image": "i", "comand": ["true"]}]}}
    misspelt["roles"]["worker"]["kubernetes"] = {"podTemplate": template}
    job = server.ended(server.submit(misspelt))
    assert (job["state"], job["exit"]["code"]) == ("failed", -200)
    assert re.search(r'unknown field .*"spec\.containers\[\d\]\.comand"', job["exit"]["message"])
    assert len(server.attempts(job, "worker-0")) == 1


@pytest.mark.parametrize("silence", [Webhook.vanish, Webhook.hang])
def test_a_webhook_that_does_not_answer_is_named_and_the_job_runs_when_it_does(
    server: OnKubernetes, nodes: list[str], silence: Callable[[Webhook], None]
) -> None:
    with Webhook(server.plane, "away.example.com", NAMESPACE, seconds=1) as webhook:
        silence(webhook)
        job = server.submit(gang("patient", replicas=1, **here(nodes)))
        until(lambda: len(server.attempts(job, "worker-0")) > 1, "it is tried again")
        assert 'webhook \\"away.example.com\\" of the cluster could not be asked' in said(server, job)
        first = server.attempts(job, "worker-0")[0]
        assert first["exit"]["code"] == 251
        webhook.answer()
        until(lambda: server.client.job(job["id"])["tasks"]["running"] == 1, "it runs")
    server.client.stop(job["id"])
    server.ended(job)


def test_a_verb_that_goes_missing_is_named_and_the_job_runs_when_it_is_given_back(
    server: OnKubernetes, account: Permitted, nodes: list[str]
) -> None:
    with account.without("pods", "create"):
        job = server.submit(gang("unable", **here(nodes)))
        grant = f"allow its account ({account.user}) the verb create on pods"
        until(
            lambda: f"Corral may not create pods in namespace {NAMESPACE}: {grant}." in said(server, job),
            "the job names the verb",
        )
        until(lambda: not pods_of(server, job), "end of earlier pods, and none made")
    until(lambda: server.client.job(job["id"])["tasks"]["running"] == 2, "both tasks run")
    server.client.stop(job["id"])
    server.ended(job)


def test_a_gang_whose_node_vanishes_moves_when_it_can_and_never_runs_twice(
    server: OnKubernetes, nodes: list[str]
) -> None:
    job = server.submit(gang("moved", **here(nodes)))
    until(lambda: server.client.job(job["id"])["tasks"]["running"] == 2, "both tasks run")
    lost = server.plane.request("GET", f"/api/v1/nodes/{nodes[1]}")
    server.plane.request("DELETE", f"/api/v1/nodes/{nodes[1]}")
    until(lambda: server.client.job(job["id"])["state"] == "stopping", "the gang is ended")
    until(
        lambda: [pod["spec"]["nodeName"] for pod in pods_of(server, job)] == [nodes[1]],
        "only what nobody can end is left",
    )
    (stuck,) = pods_of(server, job)
    server.plane.request(
        "DELETE", f"{PODS}/{stuck['metadata']['name']}?gracePeriodSeconds=0"
    )  # as the pod garbage collector does
    again = {key: lost["metadata"][key] for key in ("name", "labels")}
    amounts = {key: lost["status"][key] for key in ("capacity", "allocatable")}
    server.plane.request("POST", "/api/v1/nodes", {"metadata": again, "status": amounts})
    until(lambda: {pod["spec"]["nodeName"] for pod in alive(server, job)} == set(nodes), "the gang is whole again")
    until(lambda: server.client.job(job["id"])["tasks"]["running"] == 2, "both tasks run")
    assert len(alive(server, job)) == 2
    server.client.stop(job["id"])
    server.ended(job)
