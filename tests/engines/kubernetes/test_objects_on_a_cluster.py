"""Jobs as objects of a real cluster with a real server: kubectl applies, scales and deletes; the status follows."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.kernel.errors import InvalidInput, Unavailable
from tests.endtoend.platform import Job, one
from tests.engines.kubernetes.external_controller import control
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.testbeds.kubernetes.controlplane import ControlPlane, Refused
from tests.testbeds.kubernetes.kwok import ENDS_AFTER, EXIT_CODE, Kwok

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
PODS, TEAM, NOBODY = "objects-pods", "objects-team", "objects-nobody"
MERGE = "application/merge-patch+json"
Object = dict[str, Any]


class WithObjects(OnKubernetes):
    """A server that takes the objects of a namespace as jobs of the account that started it."""

    def options(self, port: str = "") -> list[str]:
        return [*super().options(port), "--object-accounts", f"{TEAM}*={getpass.getuser()}"]

    def path(self, name: str = "", namespace: str = TEAM) -> str:
        return f"/apis/corral.dev/v1alpha1/namespaces/{namespace}/unifiedjobs" + (f"/{name}" if name else "")

    def apply(self, document: Object, *words: str, namespace: str = TEAM) -> None:
        self.plane.kubectl("apply", "-n", namespace, *words, "-f", "-", given=json.dumps(document))

    def seen(self, name: str, holds: Callable[[Object], Any], *, namespace: str = TEAM) -> Object:
        """The object once `holds` is true of it."""

        def look() -> Object | None:
            found: Object = self.plane.request("GET", self.path(name, namespace))
            return found if holds(found) else None

        return until(look, f"object {name} as wanted", seconds=150)

    def doctor(self, kubeconfig: Path | None = None) -> list[str]:
        """The bad findings of `corral doctor` about objects."""
        where = ["--data", str(self.data), "--engine", "kubernetes", "--namespace", PODS, "--no-probe", "-o", "json"]
        file = str(kubeconfig or self.plane.kubeconfig)
        env = {"CORRAL_OBJECT_ACCOUNTS": f"{TEAM}={getpass.getuser()}"}
        found = json.loads(self.run("doctor", *where, "--kubeconfig", file, env=env).stdout)
        return [each["message"] for each in found if each["state"] == "bad" and "unifiedjobs" in str(each)]

    def noted(self, words: str) -> bool | None:
        """Whether control's log contains these words."""
        return words in (self.data / "logs" / "control.log").read_text() or None

    def phase(self, name: str, phase: str) -> Object:
        return self.seen(name, lambda found: found.get("status", {}).get("phase") == phase)

    def job_of(self, found: Object) -> Job:
        return dict(self.client.job(found["status"]["jobId"]))

    def remove(self, name: str) -> None:
        self.plane.kubectl("delete", "cjob", "-n", TEAM, name, "--timeout=150s")

    def pods_of(self, found: Object) -> list[Object]:
        """The pods of an object's job."""
        return self.pods({"id": found["status"]["jobId"]})

    def end_job(self, found: Object) -> None:
        """Make kwok end every pod of an object's job, once all of them run."""
        job = found["status"]["jobId"]
        self.all_run(job)
        self.end_pods(chosen=lambda labels: labels["corral.dev/job"] == job)


def condition(found: Object, kind: str) -> Object:
    conditions = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def targets(found: Object) -> dict[str, int]:
    return dict(found["spec"]["replicaSpec"].get("targetReplicas", {}))


def gone(server: WithObjects, name: str) -> bool | None:
    try:
        server.plane.request("GET", server.path(name))
    except Refused as refused:
        assert refused.status == 404
        return True
    return None


def running_as_another(found: Object, before: Object) -> bool:
    status = found["status"]
    return bool(status.get("phase") == "running" and status["jobId"] != before["status"]["jobId"])


def document(name: str, replicas: int = 1, least: int = 0, most: int = 0, **spec: Any) -> Object:
    role = {"name": "worker", "command": ["train"], "resources": {"cpu": "1", "devices": {"count": 1}}}
    bounds = {"minReplicas": least, "maxReplicas": most} if most else {}
    counts = {"role": "worker", "replicas": replicas, **bounds}
    whole = {"jobType": "shell", "roles": [role], "replicaSpec": counts, **spec}
    return {"apiVersion": "corral.dev/v1alpha1", "kind": "UnifiedJob", "metadata": {"name": name}, "spec": whole}


def served(plane: ControlPlane) -> bool | None:
    """Whether the API server serves the CRD by now."""
    try:
        plane.request("GET", "/apis/corral.dev/v1alpha1/unifiedjobs")
    except Refused as refused:
        assert refused.status in (404, 429)  # "storage is (re)initializing"
        return None
    return True


@pytest.fixture(scope="module")
def bare(control_plane: ControlPlane, kwok: Kwok, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithObjects]:
    """A server on a cluster without the CRD of its objects."""
    control_plane.kubectl("delete", "customresourcedefinition", "unifiedjobs.corral.dev", "--ignore-not-found")
    nodes = kwok.add_nodes(2, prefix="objects")
    for namespace in (PODS, TEAM, NOBODY):
        control_plane.add_namespace(namespace)
    made = WithObjects(tmp_path_factory.mktemp("server"), namespace=PODS)
    made.plane = control_plane
    made.up()
    yield made
    made.down()
    for node in nodes:
        control_plane.request("DELETE", f"/api/v1/nodes/{node}")
    for namespace in (PODS, TEAM, NOBODY):
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture(scope="module")
def defined(bare: WithObjects) -> WithObjects:
    """The same server once the cluster has the CRD."""
    bare.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=bare.corral("crd"))
    until(lambda: served(bare.plane), "objects served")
    return bare


@pytest.fixture
def server(defined: WithObjects) -> Iterator[WithObjects]:
    """The same server; each test's objects are removed."""
    yield defined
    remove_all(defined)


def remove_all(server: WithObjects) -> None:
    for namespace in (TEAM, NOBODY):
        server.plane.kubectl("delete", "cjob", "-n", namespace, "--all", "--timeout=150s")
    until(lambda: server.pods() == [] or None, "end of all pods")


def test_without_a_definition_it_is_said_and_all_else_goes_on(bare: WithObjects) -> None:
    until(lambda: bare.noted("no definition of unifiedjobs.corral.dev"), "note")
    assert bare.doctor() == ["the cluster has no definition of them; apply what `corral crd` prints"]
    job = bare.submit(one("besides", "sleep 600"))
    bare.until(job, lambda now: now["state"] == "running")
    bare.client.stop(job["id"])
    assert bare.ended(job)["state"] == "stopped"


def test_an_older_definition_is_said_and_its_objects_are_taken(bare: WithObjects) -> None:
    older = yaml.safe_load(bare.corral("crd"))
    older["metadata"]["annotations"]["corral.dev/schema"] = "of another version"
    status = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    del status["properties"]["retries"]
    bare.plane.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(older))
    until(lambda: served(bare.plane), "objects served")
    until(lambda: bare.noted("older or newer than this server"), "note")
    assert "of another version of Corral" in bare.doctor()[0]
    bare.apply(document("early"))
    bare.phase("early", "running")
    remove_all(bare)


def test_an_applied_document_runs_and_its_object_tells_how_it_went(server: WithObjects) -> None:
    server.apply(document("plain", 2))
    running = server.phase("plain", "running")
    assert sum(running["spec"]["replicaSpec"]["targetReplicas"].values()) == 2
    assert running["status"]["placements"]["worker"] == running["spec"]["replicaSpec"]["targetReplicas"]
    assert running["metadata"]["finalizers"] == ["corral.dev/job"]
    for kind in ("Accepted", "Applied", "Scheduled", "Running"):
        assert condition(running, kind)["status"] == "True", kind
    job = server.job_of(running)
    assert (job["name"], job["user"], job["state"]) == ("plain", getpass.getuser(), "running")
    server.end_job(running)
    ended = server.phase("plain", "succeeded")
    server.plane.kubectl("wait", "-n", TEAM, "--for=condition=Complete", "cjob/plain", "--timeout=150s")
    assert ended["status"]["exit"]["code"] == 0
    ended = server.seen("plain", lambda found: not found["spec"]["replicaSpec"].get("targetReplicas"))
    shown = server.plane.kubectl("get", "cjob", "-n", TEAM, "plain").stdout
    assert "succeeded" in shown
    server.remove("plain")
    assert server.client.job(job["id"])["state"] == "succeeded"


def test_doctor_names_each_verb_that_is_missing(server: WithObjects) -> None:
    assert server.doctor() == []
    said = server.doctor(server.plane.kubeconfig_for("stranger"))
    for verb in ("list", "watch", "patch"):
        assert f"missing: {verb} unifiedjobs.corral.dev in all namespaces, for jobs as objects" in said
    assert "missing: patch unifiedjobs.corral.dev/status in all namespaces" in said[-1]


def test_scaling_by_kubectl_by_rest_and_by_apply_changes_the_one_job(server: WithObjects) -> None:
    server.apply(document("elastic", 2, least=1, most=4))
    first = server.seen("elastic", lambda found: sum(targets(found).values()) == 2 and found["status"].get("jobId"))
    server.plane.kubectl("scale", "-n", TEAM, "cjob/elastic", "--replicas=4")
    server.seen("elastic", lambda found: sum(targets(found).values()) == found["status"]["replicas"] == 4)
    assert server.plane.request("GET", f"{server.path('elastic')}/scale")["status"]["replicas"] == 4
    server.client.scale(first["status"]["jobId"], 1)
    shrunk = server.seen("elastic", lambda found: sum(targets(found).values()) == 1)
    assert shrunk["spec"]["replicaSpec"]["replicas"] == 1
    server.apply(document("elastic", 3, least=1, most=4))
    last = server.seen("elastic", lambda found: sum(targets(found).values()) == 3)
    assert last["status"]["jobId"] == first["status"]["jobId"]
    until(lambda: len(server.pods_of(last)) == 3 or None, "three pods")


def test_a_number_out_of_bounds_is_refused_by_the_cluster_and_by_rest(server: WithObjects) -> None:
    server.apply(document("bounded", 1, least=1, most=2))
    found = server.phase("bounded", "running")
    done = server.plane.kubectl("scale", "-n", TEAM, "cjob/bounded", "--replicas=9", check=False)
    assert "replicas is more than maxReplicas" in done.stderr
    with pytest.raises(InvalidInput, match="1 to 2"):
        server.client.scale(found["status"]["jobId"], 9)


def test_targets_written_by_others_are_put_right_and_submit_nothing(server: WithObjects) -> None:
    server.apply(document("targeted", 1, least=1, most=2))
    before = server.phase("targeted", "running")
    body = {"spec": {"replicaSpec": {"targetReplicas": {"kubernetes/elsewhere": 2}}}}
    server.plane.request("PATCH", server.path("targeted"), body, content=MERGE)
    after = server.seen("targeted", lambda found: targets(found) == targets(before))
    assert after["status"]["jobId"] == before["status"]["jobId"]
    assert len(server.pods_of(after)) == len(server.pods()) == 1, "the fixture waits for the end of all others"


def test_what_cannot_change_is_named_and_taken_back_is_well_again(server: WithObjects) -> None:
    server.apply(document("fixed"))
    server.phase("fixed", "running")
    changed = document("fixed")
    changed["spec"]["roles"][0]["command"] = ["other"]
    server.apply(changed)
    found = server.seen("fixed", lambda found: condition(found, "Applied").get("status") == "False")
    assert condition(found, "Applied")["reason"] == "NotChangeable"
    assert "spec.roles[0].command[0]" in condition(found, "Applied")["message"]
    server.apply(document("fixed"))
    server.seen("fixed", lambda found: condition(found, "Applied").get("status") == "True")
    meant_the_same = document("fixed", queue="default")
    server.apply(meant_the_same)
    server.seen("fixed", lambda found: found["status"]["observedGeneration"] == found["metadata"]["generation"])
    assert condition(server.phase("fixed", "running"), "Applied")["status"] == "True"


def test_deleting_the_object_stops_the_job_and_waits_for_its_end(server: WithObjects) -> None:
    server.apply(document("deleted", 2))
    job = server.job_of(server.phase("deleted", "running"))
    server.remove("deleted")
    assert server.client.job(job["id"])["state"] == "stopped"
    until(lambda: server.pods() == [] or None, "end of all pods")


def test_server_side_apply_and_replace_take_nothing_from_the_object(server: WithObjects) -> None:
    server.apply(document("sided", 1, least=1, most=3), "--server-side")
    running = server.phase("sided", "running")
    server.apply(document("sided", 2, least=1, most=3), "--server-side")
    server.seen("sided", lambda found: sum(targets(found).values()) == 2)
    given = json.dumps(document("sided", 2, least=1, most=3))
    server.plane.kubectl("replace", "-n", TEAM, "-f", "-", given=given)
    whole = server.seen("sided", lambda found: sum(targets(found).values()) == 2)
    assert whole["metadata"]["finalizers"] == ["corral.dev/job"]
    assert whole["status"]["jobId"] == running["status"]["jobId"]


def test_a_document_that_cannot_be_is_told_so_and_runs_once_it_can(server: WithObjects) -> None:
    bad = document("bad")
    bad["spec"]["roles"][0]["topology"] = {"group": {"size": 2}}
    server.apply(bad)
    told = server.seen("bad", lambda found: condition(found, "Accepted").get("status") == "False")
    said = condition(told, "Accepted")
    assert said["reason"] == "InvalidDocument"
    assert "spec.roles[0].topology.group.required: missing" in said["message"]
    server.apply(document("bad"))
    server.phase("bad", "running")


def test_the_cluster_itself_refuses_what_its_rules_can_say(server: WithObjects) -> None:
    two = document("two")
    two["spec"]["roles"].append({"name": "other", "command": ["x"]})
    with pytest.raises(RuntimeError, match="every role says its replicas"):
        server.apply(two)
    with pytest.raises(RuntimeError, match="DNS label of at most 63"):
        server.apply(document("a.b"))
    with pytest.raises(RuntimeError, match="unknown field"):
        server.apply(document("typo", quue="default"))


def test_a_queue_that_is_not_there_and_a_namespace_of_nobody_are_said(server: WithObjects) -> None:
    server.apply(document("lost", queue="nowhere"))
    told = server.seen("lost", lambda found: condition(found, "Accepted").get("status") == "False")
    assert condition(told, "Accepted")["reason"] == "UnknownQueue"
    assert 'no queue "nowhere"' in condition(told, "Accepted")["message"]
    server.apply(document("alone"), namespace=NOBODY)
    told = server.seen("alone", lambda found: condition(found, "Accepted"), namespace=NOBODY)
    assert condition(told, "Accepted")["reason"] == "NamespaceNotMapped"
    assert "finalizers" not in told["metadata"]


def test_a_killed_control_takes_what_was_applied_and_ends_what_was_deleted_meanwhile(server: WithObjects) -> None:
    server.apply(document("before"))
    job = server.job_of(server.phase("before", "running"))
    server.kill_control()
    server.plane.kubectl("delete", "cjob", "-n", TEAM, "before", "--wait=false")
    server.apply(document("after"))
    server.phase("after", "running")
    until(lambda: gone(server, "before"), "end of the object")
    assert server.client.job(job["id"])["state"] == "stopped"
    until(lambda: len(server.pods()) == 1 or None, "the pod of after alone")


def test_an_apiserver_that_was_away_and_forgot_is_followed_again(server: WithObjects) -> None:
    server.apply(document("through", 1, least=1, most=3))
    before = server.phase("through", "running")
    server.plane.kill_apiserver()
    try:
        with pytest.raises(Unavailable):
            server.client.scale(before["status"]["jobId"], 2)
    finally:
        server.plane.start_apiserver()
    server.plane.compact()
    server.plane.restart_apiserver()
    server.plane.kubectl("scale", "-n", TEAM, "cjob/through", "--replicas=3")
    after = server.seen("through", lambda found: sum(targets(found).values()) == found["status"]["replicas"] == 3)
    assert after["status"]["jobId"] == before["status"]["jobId"]
    until(lambda: len(server.pods_of(after)) == 3 or None, "three pods")


def test_a_deleted_namespace_goes_once_its_jobs_are_over(server: WithObjects) -> None:
    server.plane.add_namespace(f"{TEAM}-b")
    server.apply(document("within"), namespace=f"{TEAM}-b")
    found = server.seen("within", lambda found: found.get("status", {}).get("jobId"), namespace=f"{TEAM}-b")
    server.plane.kubectl("delete", "namespace", f"{TEAM}-b", "--timeout=150s")
    assert server.client.job(found["status"]["jobId"])["state"] == "stopped"


def test_a_store_from_a_backup_runs_nothing_twice_and_forgets_nothing(server: WithObjects) -> None:
    """Before the backup: `kept` and `ends` run. After it: `ends` ends, `fresh` and `quick` are applied, `quick` ends."""
    for name in ("kept", "ends"):
        server.apply(document(name))
    kept, ends = (server.phase(name, "running") for name in ("kept", "ends"))
    copy = server.folder / "copy.tar.gz"
    server.corral("backup", str(copy), "--data", str(server.data))
    server.end_job(ends)
    server.phase("ends", "succeeded")
    server.apply(document("quick"))
    server.end_job(server.phase("quick", "running"))
    quick = server.phase("quick", "succeeded")
    server.apply(document("fresh"))
    fresh = server.phase("fresh", "running")
    server.corral("down", "--data", str(server.data))
    server.corral("restore", str(copy), "--yes", "--data", str(server.data))
    server.up_again()
    again = server.seen("fresh", lambda found: running_as_another(found, fresh))
    until(lambda: server.client.job(ends["status"]["jobId"])["state"] in ("stopped", "failed") or None, "its end")
    assert server.phase("kept", "running")["status"]["jobId"] == kept["status"]["jobId"]
    assert server.phase("ends", "succeeded")["status"] == server.phase("ends", "succeeded")["status"]
    assert server.phase("quick", "succeeded")["status"]["jobId"] == quick["status"]["jobId"]
    until(lambda: len(server.pods()) == 2 or None, "the pods of kept and fresh alone")
    assert again["metadata"]["uid"] == fresh["metadata"]["uid"]


def test_an_external_job_is_run_by_somebody_elses_controller(server: WithObjects) -> None:
    server.apply(document("outside", 8, least=1, most=16, jobType="external"))
    server.seen("outside", lambda found: sum(targets(found).values()) == 8)
    assert server.pods() == []

    def controlled(holds: Callable[[Object], Any]) -> Object:
        def look() -> Object | None:
            control(server.plane, TEAM, "outside")
            found: Object = server.plane.request("GET", server.path("outside"))
            return found if holds(found) else None

        return until(look, "object outside as wanted", seconds=150)

    running = controlled(lambda found: found["status"]["phase"] == "running")
    assert {node: count for node, count in running["status"]["external"]["replicas"].items() if count} == targets(
        running
    )
    server.plane.kubectl("scale", "-n", TEAM, "cjob/outside", "--replicas=16")
    controlled(lambda found: sum(found["status"]["external"]["replicas"].values()) == 16)
    server.plane.kubectl("scale", "-n", TEAM, "cjob/outside", "--replicas=2")
    small = controlled(lambda found: sum(found["status"]["external"]["replicas"].values()) == 2)
    job = small["status"]["jobId"]
    until(lambda: len(server.client.job(job)["placement"]) == 2 or None, "two places held")
    for pod in server.plane.request("GET", f"/api/v1/namespaces/{TEAM}/pods")["items"]:
        path = f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}"
        body = {"metadata": {"annotations": {ENDS_AFTER: "10ms", EXIT_CODE: "0"}}}
        server.plane.request("PATCH", path, body, content=MERGE)
    controlled(lambda found: found["status"]["phase"] == "succeeded")
