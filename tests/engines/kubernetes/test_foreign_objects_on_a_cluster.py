"""Alnair's UnifiedJobs and FrameworkController's Frameworks as objects of a cluster, run by a real server."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.spec import test_alnair_documents as alnair
from tests.spec.test_framework_documents import framework, role
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.kwok import PLAYED, Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
PODS, TEAM = "foreign-pods", "foreign-team"
MERGE = "application/merge-patch+json"
UJOBS = "ai.centauruscloud.io/v1alpha1", "unifiedjobs"
FRAMEWORKS = "frameworkcontroller.microsoft.com/v1", "frameworks"
Object = dict[str, Any]


class WithForeignObjects(OnKubernetes):
    """A server that takes foreign objects of a namespace as jobs of the account that started it."""

    team = TEAM

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        kinds = (f"{plural}.{group.partition('/')[0]}" for group, plural in (UJOBS, FRAMEWORKS))
        self.env |= {
            "CORRAL_OBJECT_KINDS": ",".join(kinds),
            "CORRAL_OBJECT_ACCOUNTS": f"{self.team}={getpass.getuser()}",
        }

    def apply(self, document: Object) -> None:
        self.plane.kubectl("apply", "-n", self.team, "-f", "-", given=json.dumps(document))

    def end(self, code: str, *, role: str = "", index: int = -1) -> None:
        """Make kwok end the pods of a role, or one of them, with this exit code."""

        def chosen(labels: dict[str, str]) -> bool:
            return role in ("", labels["corral.dev/role"]) and index in (-1, int(labels["corral.dev/task-index"]))

        self.end_pods(code, chosen=chosen)

    def define(self) -> None:
        """Create the CRDs, and wait until the cluster serves them."""
        for kind in ("alnair", "framework"):
            self.plane.kubectl("apply", "--server-side", "-f", "-", given=self.corral("crd", "--kind", kind))

        def served() -> bool | None:
            try:
                for version, plural in (UJOBS, FRAMEWORKS):
                    self.plane.request("GET", f"/apis/{version}/{plural}")
            except Refused as refused:
                assert refused.status in (404, 429)
                return None
            return True

        until(served, "objects served")

    def clear(self) -> None:
        """Delete every foreign object, and wait until the jobs have ended."""
        for group, plural in (UJOBS, FRAMEWORKS):
            sort = f"{plural}.{group.partition('/')[0]}"
            self.plane.kubectl("delete", sort, "-n", self.team, "--all", "--timeout=120s")


@dataclass
class Objects:
    """The objects of one kind."""

    server: WithForeignObjects
    sort: tuple[str, str]

    def path(self, name: str) -> str:
        version, plural = self.sort
        return f"/apis/{version}/namespaces/{self.server.team}/{plural}/{name}"

    def seen(self, name: str, holds: Callable[[Object], Any]) -> Object:
        """The object once `holds` is true of it."""

        def look() -> Object | None:
            found: Object = self.server.plane.request("GET", self.path(name))
            return found if holds(found) else None

        return until(look, f"{self.sort[1]} {name} as wanted", seconds=120)

    def stands(self, name: str, word: str) -> Object:
        """The object once its status has this word."""
        field = "jobStatus" if self.sort is UJOBS else "state"
        return self.seen(name, lambda found: (found.get("status") or {}).get(field) == word)

    def change(self, name: str, **spec: Any) -> None:
        self.server.plane.request("PATCH", self.path(name), {"spec": spec}, content=MERGE)

    def remove(self, name: str) -> None:
        version, plural = self.sort
        sort = f"{plural}.{version.partition('/')[0]}"
        self.server.plane.kubectl("delete", sort, "-n", self.server.team, name, "--timeout=120s")


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, kwok: Kwok, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WithForeignObjects]:
    nodes = kwok.add_nodes(2, prefix="foreign", devices=4)
    for namespace in (PODS, TEAM):
        control_plane.add_namespace(namespace)
    made = WithForeignObjects(tmp_path_factory.mktemp("server"), namespace=PODS)
    made.plane = control_plane
    made.up()
    made.define()
    yield made
    made.clear()
    made.down()
    for node in nodes:
        control_plane.request("DELETE", f"/api/v1/nodes/{node}")
    for namespace in (PODS, TEAM):
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def ujobs(server: WithForeignObjects) -> Objects:
    return Objects(server, UJOBS)


@pytest.fixture
def frameworks(server: WithForeignObjects) -> Objects:
    return Objects(server, FRAMEWORKS)


def named(document: Object, name: str) -> Object:
    """The document under this name; a Framework's pods are simulated, unless they name a node."""
    document = json.loads(json.dumps(document))
    for each in document["spec"].get("taskRoles", ()):
        each["task"]["pod"]["spec"].setdefault("nodeSelector", {PLAYED: ""})
    document["metadata"]["name"] = name
    return document


def targets(found: Object) -> dict[str, int]:
    return dict(found["spec"]["replicaSpec"].get("targetReplicas", {}))


def condition(found: Object, kind: str) -> Object:
    conditions = (found.get("status") or {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def attempts(found: Object, at: int = 0) -> list[Object]:
    """The attempts of a role's tasks."""
    roles = found["status"]["attemptStatus"]["taskRoleStatuses"]
    return [task["attemptStatus"] for task in roles[at]["taskStatuses"]]


def met(found: Object) -> bool:
    """Whether every task of two roles has its address."""
    running = (found.get("status") or {}).get("state") == "AttemptRunning"
    return running and all(each["podIP"] for at in (0, 1) for each in attempts(found, at))


@pytest.mark.parametrize(
    ("kind", "least", "most", "held"), [("BaseJob", 2, 5, 2), ("EHJob", 2, 5, 5), ("EPJob", 2, 5, 5), ("HJob", 3, 3, 3)]
)
def test_every_type_of_alnairs_runs_to_its_end(
    server: WithForeignObjects, ujobs: Objects, kind: str, least: int, most: int, held: int
) -> None:
    name = kind.lower()
    server.apply(named(alnair.document(kind, least, most), name))
    running = ujobs.seen(name, lambda found: found.get("status", {}).get("jobStatus") == "Running" and targets(found))
    assert sum(targets(running).values()) == held
    assert all(node.startswith("foreign") for node in targets(running))
    pods = 1 if kind == "BaseJob" else held  # a BaseJob is one pod with all its devices
    until(lambda: sum(pod["status"]["phase"] == "Running" for pod in server.pods()) == pods or None, "all pods")
    server.end("0")
    ended = ujobs.stands(name, "Complete")
    assert condition(ended, "Complete")["status"] == "True"
    assert (ended["status"]["itersCompleted"], ended["status"]["itersTotal"]) == (0, 0)
    shown = server.plane.kubectl("get", "ujob", "-n", TEAM, name).stdout
    assert "Complete" in shown
    ujobs.remove(name)
    assert server.client.job(ended["status"]["jobId"])["state"] == "succeeded"


def test_an_elastic_one_gives_up_devices_for_another_and_grows_back(server: WithForeignObjects, ujobs: Objects) -> None:
    server.apply(named(alnair.document("EHJob", 2, 8), "first"))
    ujobs.seen("first", lambda found: sum(targets(found).values()) == 8)
    server.apply(named(alnair.document("BaseJob", 4, 4), "second"))
    second = ujobs.seen("second", lambda found: sum(targets(found).values()) == 4)
    shrunk = ujobs.seen("first", lambda found: sum(targets(found).values()) == 4)
    assert shrunk["status"]["jobId"] != second["status"]["jobId"]
    ujobs.remove("second")
    ujobs.seen("first", lambda found: sum(targets(found).values()) == 8)
    server.client.scale(shrunk["status"]["jobId"], 3)
    asked = ujobs.seen("first", lambda found: sum(targets(found).values()) == 3)
    assert asked["metadata"]["annotations"]["corral.dev/replicas"] == "3"
    assert asked["status"]["jobId"] == shrunk["status"]["jobId"]
    ujobs.remove("first")
    assert server.client.job(shrunk["status"]["jobId"])["state"] == "stopped"


def test_a_document_that_cannot_be_is_told_so_in_the_object(server: WithForeignObjects, ujobs: Objects) -> None:
    server.apply(named(alnair.document("HJob", 2, 4), "ranged"))
    told = ujobs.stands("ranged", "Failed")
    assert "for a range write EHJob" in condition(told, "Accepted")["message"]
    server.apply(named(alnair.document("HJob", 2, 2), "ranged"))
    ujobs.stands("ranged", "Running")
    ujobs.remove("ranged")


def test_a_framework_ends_as_its_policies_say_and_shows_every_attempt(
    server: WithForeignObjects, frameworks: Objects
) -> None:
    ps, worker = role("ps", 1), role("worker", 2, retries=1)
    worker["frameworkAttemptCompletionPolicy"] = {"minFailedTaskCount": 1, "minSucceededTaskCount": 2}
    server.apply(named(framework(ps, worker), "batch"))
    running = frameworks.seen("batch", met)
    job = {"id": running["status"]["jobId"]}
    (first,) = [pod for pod in server.pods(job) if pod["metadata"]["labels"]["FC_TASKROLE_NAME"] == "ps"]
    assert first["metadata"]["labels"]["FC_FRAMEWORK_NAME"] == "batch"
    assert first["metadata"]["annotations"]["FC_POD_NAME"] == "batch-ps-0"
    assert attempts(running)[0]["podName"] == first["metadata"]["name"]
    server.end("1", role="worker", index=1)
    again = frameworks.seen("batch", lambda found: attempts(found, 1)[1]["id"] == 1)
    assert [each["id"] for each in attempts(again, 1)] == [0, 1]
    until(lambda: sum(pod["status"]["phase"] == "Running" for pod in server.pods()) == 3 or None, "the retried pod")
    server.end("0", role="worker")
    ended = frameworks.stands("batch", "Completed")
    completion = ended["status"]["attemptStatus"]["completionStatus"]
    assert (completion["code"], completion["type"]["name"]) == (0, "Succeeded")
    assert completion["trigger"]["taskRoleName"] == "worker"
    assert attempts(ended)[0]["completionStatus"]["code"] == -220
    assert ended["status"]["completionTime"]
    frameworks.remove("batch")


def test_exit_codes_are_read_by_frameworkcontrollers_table(server: WithForeignObjects, frameworks: Objects) -> None:
    server.apply(
        named(framework(role("worker", 1), retryPolicy={"fancyRetryPolicy": True, "maxRetryCount": 5}), "codes")
    )
    frameworks.seen("codes", lambda found: found.get("status", {}).get("state") == "AttemptRunning")
    server.end("201")
    waiting = frameworks.stands("codes", "AttemptCompleted")
    status = waiting["status"]["attemptStatus"]["completionStatus"]
    assert status["type"]["attributes"] == ["Transient", "Conflict"]
    assert 60 <= waiting["status"]["retryPolicyStatus"]["retryDelaySec"] <= 900
    assert waiting["status"]["retryPolicyStatus"]["accountableRetriedCount"] == 0
    frameworks.remove("codes")
    server.apply(named(framework(role("worker", 1)), "fatal"))
    frameworks.stands("fatal", "AttemptRunning")
    server.end("139")
    ended = frameworks.stands("fatal", "Completed")
    completion = ended["status"]["attemptStatus"]["completionStatus"]
    assert (completion["code"], completion["phrase"]) == (139, "ContainerSigSegvReceived")
    assert completion["type"] == {"name": "Failed", "attributes": ["Permanent"]}
    frameworks.remove("fatal")


def test_a_framework_is_held_begun_and_stopped_by_its_execution_type(
    server: WithForeignObjects, frameworks: Objects
) -> None:
    server.apply(named(framework(executionType="Create"), "held"))
    frameworks.stands("held", "AttemptCreationPending")
    until(lambda: server.pods() == [] or None, "end of earlier pods, and none made")
    frameworks.change("held", executionType="Start")
    running = frameworks.stands("held", "AttemptRunning")
    frameworks.change("held", executionType="Stop")
    ended = frameworks.stands("held", "Completed")
    completion = ended["status"]["attemptStatus"]["completionStatus"]
    assert (completion["code"], completion["phrase"]) == (-210, "StopFrameworkRequested")
    assert ended["status"]["jobId"] == running["status"]["jobId"]
    frameworks.remove("held")


def test_the_first_role_of_a_framework_may_have_another_size_while_it_runs(
    server: WithForeignObjects, frameworks: Objects
) -> None:
    server.apply(named(framework(role("worker", 2)), "sized"))
    first = frameworks.stands("sized", "AttemptRunning")
    server.apply(named(framework(role("worker", 4)), "sized"))
    grown = frameworks.seen("sized", lambda found: [bool(each["podIP"]) for each in attempts(found)] == [True] * 4)
    assert grown["status"]["jobId"] == first["status"]["jobId"]
    assert condition(grown, "Applied")["status"] == "True"
    server.apply(named(framework(role("worker", 1)), "sized"))
    frameworks.seen("sized", lambda found: len(attempts(found)) == 1)
    until(lambda: len(server.pods()) == 1 or None, "one pod")
    server.apply(named(framework(role("worker", 1, retries=7)), "sized"))
    refused = frameworks.seen("sized", lambda found: condition(found, "Applied").get("status") == "False")
    assert "spec.roles[0].retryPolicy.maxRetries" in condition(refused, "Applied")["message"]
    server.end("0")
    ended = frameworks.stands("sized", "Completed")
    assert ended["status"]["attemptStatus"]["id"] == 0
    frameworks.remove("sized")


def test_a_pod_that_does_not_end_in_its_time_is_given_up_if_the_framework_says_so(
    server: WithForeignObjects, frameworks: Objects, kwok: Kwok
) -> None:
    patient, hasty = role("patient", 1, terminationGracePeriodSeconds=1), role("hasty", 1)
    hasty["task"]["podGracefulDeletionTimeoutSec"] = 2
    server.apply(named(framework(patient, hasty), "lost"))
    job = {"id": frameworks.stands("lost", "AttemptRunning")["status"]["jobId"]}
    until(lambda: sum(pod["status"]["phase"] == "Running" for pod in server.pods(job)) == 2 or None, "both pods")
    kwok.kill()  # no kubelet answers any more
    try:
        frameworks.change("lost", executionType="Stop")

        def roles() -> list[str]:
            return [pod["metadata"]["labels"]["FC_TASKROLE_NAME"] for pod in server.pods(job)]

        until(lambda: roles() == ["patient"] or None, "only the pod that is waited for")
        assert frameworks.seen("lost", lambda found: True)["status"]["state"].startswith("AttemptDelet")
    finally:
        kwok.start()
    frameworks.stands("lost", "Completed")
    frameworks.remove("lost")
