"""Jobs as objects while the lead moves between two servers: none is lost or doubled, and every final status is right."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.objects.job_objects import KubernetesDocuments
from corral.kernel.errors import Conflict
from corral.model.kubernetes_objects import ObjectAddress, ObjectRef
from corral.spec.job_objects import UnifiedJobKind
from tests.engines.kubernetes.replicas import Census, Ender, Replica, Stream
from tests.engines.kubernetes.test_objects_on_a_cluster import condition, document, served
from tests.engines.kubernetes.test_testbed import until
from tests.engines.kubernetes.test_two_replicas import Pair
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kwok import Kwok
from tests.testbeds.postgresql import PostgresServer

pytestmark = [pytest.mark.kubernetes, pytest.mark.postgres, pytest.mark.timeout(300)]
PODS, TEAM = "both-pods", "both-team"
OBJECTS = f"/apis/corral.dev/v1alpha1/namespaces/{TEAM}/unifiedjobs"
Object = dict[str, Any]


class WithObjects(Replica):
    """A replica that takes the objects of a namespace."""

    def options(self, port: str = "") -> list[str]:
        return [*super().options(port), "--object-accounts", f"{TEAM}={getpass.getuser()}"]


@pytest.fixture(scope="module")
def pair(
    control_plane: ControlPlane, kwok: Kwok, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    for namespace in (PODS, TEAM):
        control_plane.add_namespace(namespace)
    nodes = kwok.add_nodes(4, prefix="both", devices=8)
    folder = tmp_path_factory.mktemp("both")
    database = postgres.create()
    replicas = [WithObjects(folder / name, name, database, control_plane, PODS) for name in ("one", "two")]
    try:
        replicas[0].up()
        crd = replicas[0].corral("crd")
        control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=crd)
        until(lambda: served(control_plane), "objects served")
        replicas[1].share(replicas[0])
        replicas[1].up()
        yield Pair(list(replicas), database)
    finally:
        control_plane.kubectl("delete", "cjob", "-n", TEAM, "--all", "--timeout=150s", check=False)
        for replica in replicas:
            replica.client.close()
            replica.run("down", "--data", str(replica.data))
    for name in nodes:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")
    for namespace in (PODS, TEAM):
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")


def applied(plane: ControlPlane, name: str) -> Object:
    """Create an object for a job of one task, a few a second: a cluster accepts more than it can run."""
    time.sleep(0.2)
    wanted = document(name)
    wanted["spec"]["roles"][0]["resources"] = {"cpu": "0.1", "devices": {"count": 1}}
    found: Object = plane.request("POST", OBJECTS, wanted)
    return {"id": found["metadata"]["name"]}


def in_phase(plane: ControlPlane, phase: str) -> list[Object]:
    """Every object in this phase."""
    items: list[Object] = plane.request("GET", OBJECTS)["items"]
    return [each for each in items if each.get("status", {}).get("phase") == phase]


@pytest.mark.parametrize("lost", [False, True], ids=["paused", "killed"])
def test_objects_become_jobs_while_the_lead_moves(pair: Pair, control_plane: ControlPlane, lost: bool) -> None:
    plane, victim, heir = control_plane, pair.leading(), pair.other()
    stream = Stream(lambda name: applied(plane, name), "killed" if lost else "paused")
    with Ender(plane, PODS), Census(plane, PODS) as census, stream:
        until(lambda: len(in_phase(plane, "succeeded")) > 4 or None, "five jobs that are over", seconds=90)
        go_on = None if lost else victim.pause()
        if lost:
            victim.vanish()
        pair.until_led_by(heir)
        if go_on is not None:
            go_on()
        known = len(stream.jobs)
        until(lambda: len(stream.jobs) > known + 9 or None, "ten more objects")
        stream.end()
        until(lambda: len(in_phase(plane, "succeeded")) >= len(stream.jobs) or None, "the end of all", seconds=120)
        objects = plane.request("GET", OBJECTS)["items"]
        jobs = {each["metadata"]["name"]: each["status"]["jobId"] for each in objects}
        census.has_seen(jobs.values())
        assert {name: census.of(job) for name, job in jobs.items()} == {name: [1] for name in stream.jobs}
    assert len(set(jobs.values())) == len(stream.jobs)
    for each in objects:
        assert condition(each, "Complete")["status"] == "True"
        assert heir.client.job(each["status"]["jobId"])["state"] == "succeeded"
    named = [job["name"] for job in heir.client.jobs(limit=500)["items"] if job["name"] in jobs]
    assert sorted(named) == sorted(jobs), "each object has one job"
    plane.request("DELETE", OBJECTS)
    until(lambda: plane.request("GET", OBJECTS)["items"] == [] or None, "end of all objects")
    if lost:
        victim.up_again()


async def test_a_cluster_refuses_what_was_written_for_an_older_version(pair: Pair, control_plane: ControlPlane) -> None:
    kind = UnifiedJobKind()
    control_plane.kubectl("apply", "-n", TEAM, "-f", "-", given=json.dumps(document("versions", queue="nowhere")))
    path = f"{OBJECTS}/versions"

    def told() -> Object | None:
        found: Object = control_plane.request("GET", path)
        return found if condition(found, "Accepted").get("status") == "False" else None

    found = until(told, "refusal")
    metadata = found["metadata"]
    ref = ObjectRef(kind.title, TEAM, "versions", metadata["uid"])
    transport = Transport(kubeconfig_access(str(control_plane.kubeconfig)))
    await transport.open()
    try:
        documents = KubernetesDocuments(transport, [ObjectAddress.of(kind)])
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        status = {**head, "status": {"message": "of an old leader"}}
        scale = {**head, **kind.scaled(found, 1)}
        after = await documents.merge(
            ref, {"metadata": {"labels": {"seen": "yes"}}}, version=metadata["resourceVersion"]
        )
        assert after != metadata["resourceVersion"]
        for write in (
            documents.apply(ref, status, version=metadata["resourceVersion"], part="status", subresource="status"),
            documents.apply(ref, head, version=metadata["resourceVersion"]),
            documents.merge(ref, scale, version=metadata["resourceVersion"]),
        ):
            with pytest.raises(Conflict):
                await write
    finally:
        await transport.close()
    assert control_plane.request("GET", path)["status"].get("message") != "of an old leader"
