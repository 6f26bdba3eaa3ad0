"""Data in and out, large code and exit codes with the runtime in a sidecar container, on a real kubelet."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.conftest import IN_CI
from tests.endtoend import opened_services, several_services
from tests.endtoend.forwarding import forwarded, read
from tests.endtoend.platform import one
from tests.engines.kubernetes.object_store import object_store, relayed
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.frameworks.environments import cache_folder, environment
from tests.frameworks.notebook_visits import is_opened_and_tells_that_somebody_works_in_it
from tests.reserved import free_port
from tests.runtime.event_files.encoder import NAME, scalars
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.pythontree import CORRAL, CORRAL_ENV, runtime_tree
from tests.testbeds.vscode import packages

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet, pytest.mark.timeout(300)]
NAMESPACE = "data"


class WithData(OnKubernetes):
    """A server whose tasks have Corral's sidecar container; the tasks' images have only a shell."""

    disk: Path

    def __init__(self, folder: Path, *, gateway: str) -> None:
        super().__init__(folder, namespace=NAMESPACE, image=images.BUSYBOX, gateway=gateway)
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.env |= {"CORRAL_RUNTIME_IMAGE": CORRAL, "CORRAL_STORAGE_PLACES": f"file://{self.disk},pvc://*"}

    def ended(self, job: dict[str, Any] | str) -> dict[str, Any]:
        """Wait until a job has ended, also on a slow machine that must first read every library."""
        return dict(self.client.wait(job if isinstance(job, str) else job["id"], timeout=240))


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WithData]:
    """A server that pods reach through their node's gateway."""
    folder = tmp_path_factory.mktemp("server")
    kubelet_node.provide(CORRAL, runtime_tree, env=CORRAL_ENV)
    control_plane.add_namespace(NAMESPACE)
    made = WithData(folder, gateway=kubelet_node.gateway)
    made.plane = control_plane
    made.port = str(free_port())
    with relayed(kubelet_node, "server", int(made.port), int(made.port), folder):
        made.up()
        yield made
        made.down()
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


@pytest.fixture
def here(kubelet_node: KubeletNode) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": kubelet_node.name}, "resources": {"cpu": "0.1"}}


def test_data_come_from_a_node_and_go_back(server: WithData, here: dict[str, Any]) -> None:
    (server.disk / "in").mkdir()
    (server.disk / "in" / "words").write_text("three short words\n")
    script = "umask 077; wc -w <given/words >made/count; mkdir -p /out/deep; echo far >/out/deep/file; echo counted"
    job = server.ran(
        one(
            "data",
            f"mkdir -p made; {script}",
            role=here,
            inputs=[{"uri": f"file://{server.disk}/in", "path": "given"}],
            outputs=[
                {"path": "made", "uri": f"file://{server.disk}/out"},
                {"path": "/out/deep", "uri": f"file://{server.disk}/deep"},
            ],
        )
    )
    assert job["state"] == "succeeded", server.log(job)
    assert (server.disk / "out" / "count").read_text().strip() == "3"
    assert (server.disk / "deep" / "file").read_text() == "far\n"
    log = _without_progress(server.log(job))
    assert log[0] == "corral: staged 1 files, 18 bytes (0 already there)"
    assert log[1] == "counted"
    assert [line.split()[:2] for line in log[2:]] == [["corral:", "staged"]] * 2


def test_event_files_beside_a_shell_are_curves_and_go_to_the_storage(server: WithData, here: dict[str, Any]) -> None:
    now = time.time()
    data = base64.b64encode(scalars((now - 40, "loss", 0.5), (now - 1, "loss", 0.25))).decode()
    script = f"mkdir -p made/runs; echo {data} | base64 -d >made/runs/{NAME}"
    outputs = [{"path": "made", "uri": f"file://{server.disk}/curves"}]
    job = server.ran(one("curves", script, role=here, outputs=outputs, report=True))
    assert job["state"] == "succeeded", server.log(job)
    (found,) = until(lambda: server.client.series(job=job["id"])["items"] or None, "curve")
    assert (found["labels"]["run"], found["labels"]["tag"]) == ("made/runs", "loss")
    assert [value for value in found["mean"] if value is not None] == [0.5, 0.25]
    assert (server.disk / "curves" / "runs" / NAME).stat().st_size


def test_code_larger_than_a_secret_reaches_an_image_with_a_shell_only(
    server: WithData, here: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "run.sh").write_text("wc -c <noise; echo ran in $PWD; exit 6\n")
    (tmp_path / "noise").write_bytes(os.urandom(3_000_000))
    role = {"command": ["sh", "run.sh"], **here}
    (tmp_path / "job.yaml").write_text(
        yaml.safe_dump({"name": "packed", "framework": "shell", "code": ".", "roles": {"main": role}})
    )
    ran = server.run("submit", "-f", "job.yaml", folder=tmp_path)
    assert "3000000\n" in ran.stdout and "ran in /run/corral/work\n" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode != 0


def test_peers_are_found_without_python_in_the_image(server: WithData, here: dict[str, Any]) -> None:
    script = "echo $RANK of $WORLD_SIZE at ${MASTER_ADDR%%.*}"
    role = {"replicas": 2, "command": ["sh", "-c", script], **here}
    job = server.ran({"name": "gang", "framework": "pytorch", "roles": {"worker": role}})
    assert job["state"] == "succeeded", server.log(job, "worker-0")
    assert [server.log(job, f"worker-{index}") for index in (0, 1)] == ["0 of 2 at 10\n", "1 of 2 at 10\n"]


def test_a_known_fault_is_told_from_the_end_of_the_log(server: WithData, here: dict[str, Any]) -> None:
    say = "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1"
    job = server.ran(one("fault", say, role=here, barrier={"enabled": True}))
    assert (job["state"], job["exit"]["code"]) == ("failed", 232)
    assert "No module named 'torch'" in job["exit"]["message"]


def test_outputs_that_cannot_be_kept_fail_the_task_and_say_why(server: WithData, here: dict[str, Any]) -> None:
    outputs = [{"path": "never-made", "uri": f"file://{server.disk}/lost"}]
    job = server.ran(one("lost", "true", role=here, outputs=outputs))
    assert (job["state"], job["exit"]["code"]) == ("failed", 255)
    assert "never-made" in job["exit"]["message"]


def test_inputs_that_are_not_there_are_said_in_the_tasks_log(server: WithData, here: dict[str, Any]) -> None:
    inputs = [{"uri": f"file://{server.disk}/none", "path": "x"}]
    job = server.ran(one("none", "true", role=here, inputs=inputs))
    assert job["exit"]["code"] == 255
    assert "There is nothing at" in server.log(job)


def test_what_lies_outside_of_all_places_is_refused(server: WithData, here: dict[str, Any]) -> None:
    inputs = [{"uri": "file:///etc/shadow", "path": "x"}]
    job = server.ran(one("thief", "true", role=here, inputs=inputs))
    assert job["state"] == "failed"
    assert "no place that jobs may use" in job["exit"]["message"]


def test_a_jobs_secret_is_there_while_it_runs_and_gone_after(server: WithData, here: dict[str, Any]) -> None:
    server.corral("secret", "set", "password", given="hunter2")
    role = {**here, "secrets": [{"name": "password", "env": "PASSWORD"}]}
    job = server.ran(one("secretive", "echo ${#PASSWORD}", role=role))
    assert server.log(job) == "7\n"

    def left() -> list[str]:
        found = server.plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets")["items"]
        return [secret["metadata"]["name"] for secret in found]

    until(lambda: left() == [] or None, "end of the Secrets")


def test_what_the_cluster_says_of_a_pod_is_among_the_jobs_events(server: WithData, here: dict[str, Any]) -> None:
    job = server.submit(one("imageless", "true", role={**here, "image": "127.0.0.1:1/none/such:1"}))
    said = next(
        event["message"]
        for event in server.client.events(after=0, job=job["id"])
        if event["kind"] == "task.noted" and "none/such" in event["message"]
    )
    assert said.startswith("main-0: Failed")
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"


def test_what_a_pod_serves_is_reached_and_files_are_copied_through_the_api_server(
    server: WithData, here: dict[str, Any], tmp_path: Path
) -> None:
    serve = "echo hello from the pod >page; while :; do nc -l -p $CORRAL_PORT_WEB <answer >/dev/null; done"
    head = "printf 'HTTP/1.0 200 OK\\r\\nContent-Length: 19\\r\\n\\r\\nhello from the pod\\n' >answer; echo ready"
    job = server.submit(one("web", f"cd /tmp; {head}; {serve}", role={**here, "ports": [{"name": "web"}]}))
    server.printed_running(job, "main-0", "ready\n")
    with forwarded(server, job["id"], "main-0", "web") as address:
        assert until(lambda: _read(address), "answer") == b"hello from the pod\n"
    where = f"{job['id']}/main-0:/tmp"
    server.corral("cp", f"{where}/page", str(tmp_path / "page"))
    assert (tmp_path / "page").read_text() == "hello from the pod\n"
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_bytes(os.urandom(300_000))
    server.corral("cp", str(tmp_path / "tree"), f"{where}/tree")
    server.corral("cp", f"{where}/tree", str(tmp_path / "back"))
    there, back = (tmp_path / name / "deep" / "file" for name in ("tree", "back"))
    assert there.read_bytes() == back.read_bytes()
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"


def test_a_service_of_a_pod_is_opened_in_the_browser_until_its_job_ends(server: WithData, here: dict[str, Any]) -> None:
    role = {**here, "image": CORRAL, "ports": opened_services.PORTS}
    command = ["python3", "-c", opened_services.PROGRAM]
    opened_services.is_used_until_its_job_ends(server, one("served", command, role=role))


@pytest.fixture
def installed(server: WithData) -> Iterator[list[dict[str, str]]]:
    """Storages with the programs of this machine that no image has, at their paths here, and one with what jobs write."""
    (server.disk / "kept").mkdir(exist_ok=True)
    places = {"environments": (cache_folder(), cache_folder()), "programs": (Path("/usr/bin"), Path("/machine"))}
    places["kept"] = (server.disk / "kept", Path("/kept"))
    documents = [
        {"kind": "Storage", "name": name, "type": "folder", "path": str(path)} for name, (path, _) in places.items()
    ]
    server.corral("apply", "-", given=yaml.safe_dump_all(documents))
    yield [{"name": name, "mountPath": str(at)} for name, (_, at) in places.items()]
    for name in places:
        server.corral("delete", f"storage/{name}")


@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_the_buttons_of_a_job_open_the_services_of_a_pod_in_a_browser(
    server: WithData, here: dict[str, Any], installed: list[dict[str, str]]
) -> None:
    if reason := packages.missing():
        pytest.fail(reason) if IN_CI else pytest.skip(reason)
    node = f"/machine/{Path(packages.program()[0]).name}"
    programs = environment("tensorboard")
    role = {
        **here,
        "resources": {"cpu": "0.9", "memory": "1Gi"},
        "image": CORRAL,
        "env": {"PATH": f"{programs}:/usr/bin:/bin"},
        "ports": several_services.PORTS,
    }
    command = several_services.command("python3", folder="/tmp/served", written="/kept", node=node)
    document = one("several", command, role=role, storages=installed, workingDir="/kept")
    several_services.are_opened_by_their_buttons(server, document, keeps=True)


@pytest.mark.frameworks
@pytest.mark.timeout(900)
def test_a_notebook_in_a_pod_is_opened_and_tells_that_somebody_works_in_it(
    server: WithData, here: dict[str, Any], installed: list[dict[str, str]]
) -> None:
    env = {"PATH": f"{environment('notebook')}:/usr/bin:/bin", "HOME": "/tmp", "PYTHONPATH": ""}
    role = {**here, "resources": {"cpu": "0.9", "memory": "1Gi"}, "image": CORRAL, "env": env}
    document = one("lab", "", role=role, framework="notebook", idle="1h", storages=installed)
    del document["roles"]["main"]["command"]
    is_opened_and_tells_that_somebody_works_in_it(server, document)


def _read(address: str) -> bytes | None:
    try:
        return read(address)
    except OSError:
        return None


@pytest.fixture
def bucket(kubelet_node: KubeletNode, tmp_path: Path) -> Iterator[str]:
    """The address at which pods reach an object store with the bucket `data`."""
    with object_store(kubelet_node, tmp_path) as store:
        yield store.url


def test_data_come_from_an_object_store_and_go_back_with_the_jobs_own_keys(
    server: WithData, here: dict[str, Any], bucket: str
) -> None:
    server.corral("secret", "set", "store-key", given="hunter2")
    role = {
        **here,
        "env": {"AWS_ENDPOINT_URL": bucket, "AWS_ACCESS_KEY_ID": "ada", "AWS_DEFAULT_REGION": "us-east-1"},
        "secrets": [{"name": "store-key", "env": "AWS_SECRET_ACCESS_KEY"}],
    }
    made = [{"path": "made", "uri": "s3://data/first"}]
    job = server.ran(one("first", "mkdir made; echo 7 >made/a; echo 8 >made/b", role=role, outputs=made))
    assert job["state"] == "succeeded", server.log(job)
    inputs = [{"uri": "s3://data/first", "path": "given"}]
    job = server.ran(one("second", "cat given/a given/b", role=role, inputs=inputs))
    assert _without_progress(server.log(job)) == ["corral: staged 2 files, 4 bytes (0 already there)", "7", "8"]
    assert "hunter2" not in str(server.pods())


def test_data_come_from_a_volume_claim_and_go_back(server: WithData, here: dict[str, Any]) -> None:
    (server.disk / "volume" / "in").mkdir(parents=True)
    (server.disk / "volume" / "in" / "word").write_text("seven\n")
    size = {"storage": "1Gi"}
    volume = {
        "metadata": {"name": "data-volume"},
        "spec": {
            "capacity": size,
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": str(server.disk / "volume")},
            "claimRef": {"namespace": NAMESPACE, "name": "scratch"},
        },
    }
    claim = {
        "metadata": {"name": "scratch"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": size},
            "storageClassName": "",
            "volumeName": "data-volume",
        },
    }
    server.plane.request("POST", "/api/v1/persistentvolumes", volume)
    server.plane.request("POST", f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims", claim)
    job = server.ran(
        one(
            "claimed",
            "tr a-z A-Z <word >made",
            role=here,
            inputs=[{"uri": "pvc://scratch/in/word", "path": "word"}],
            outputs=[{"path": "made", "uri": "pvc://scratch/out/made"}],
        )
    )
    assert job["state"] == "succeeded", f"{job['exit']} {server.log(job)}"
    assert (server.disk / "volume" / "out" / "made").read_text() == "SEVEN\n"
    server.plane.request("DELETE", "/api/v1/persistentvolumes/data-volume")


def test_storages_are_mounted_by_what_their_documents_declare(server: WithData, here: dict[str, Any]) -> None:
    (server.disk / "shared").mkdir()
    (server.disk / "shared" / "given").write_text("shared\n")
    (server.disk / "homes").mkdir()
    _claim(server, "claimed", server.disk / "claimed")
    documents = [
        {"kind": "Storage", "name": "shared", "type": "folder", "path": f"{server.disk}/shared", "readOnly": True},
        {"kind": "Storage", "name": "homes", "type": "folder", "path": f"{server.disk}/homes", "share": False},
        {"kind": "Storage", "name": "claimed", "type": "pvc", "share": False},
    ]
    server.corral("apply", "-", given=yaml.safe_dump_all(documents))
    script = "cat /mnt/shared/given; echo a >/data/own; echo b >/mnt/claimed/own; touch /mnt/shared/x || echo refused"
    storages = ["shared", {"name": "homes", "mountPath": "/data"}, "claimed"]
    job = server.ran(one("storages", script, role=here, storages=storages))
    assert job["state"] == "succeeded", f"{job['exit']} {server.log(job)}"
    assert {"shared", "refused"} <= set(server.log(job).splitlines()), "two streams of one pod have no order"
    user = job["user"]
    assert (server.disk / "homes" / user / "own").read_text() == "a\n"
    assert (server.disk / "claimed" / user / "own").read_text() == "b\n"


def test_event_files_on_a_mount_of_the_task_are_curves_and_closed_ones_are_not(
    server: WithData, here: dict[str, Any]
) -> None:
    now = time.time()
    data = {
        tag: base64.b64encode(scalars((now - 40, tag, 0.5), (now - 1, tag, 0.25))).decode() for tag in ("loss", "own")
    }
    (server.disk / "runs").mkdir()
    document = {"kind": "Storage", "name": "runs", "type": "folder", "path": f"{server.disk}/runs", "share": False}
    server.corral("apply", "-", given=yaml.safe_dump(document))
    script = "; ".join(
        [
            "mkdir -p /data/out/a /data/out/b",
            f"echo {data['loss']} | base64 -d >/data/out/a/{NAME}",
            f"umask 077; echo {data['own']} | base64 -d >/data/out/b/{NAME}",
        ]
    )
    storages = [{"name": "runs", "mountPath": "/data"}]
    report = {"tensorboard": ["/data/out", "/image"]}
    job = server.ran(one("mounted", script, role=here, storages=storages, report=report))
    assert job["state"] == "succeeded", server.log(job)
    (found,) = until(lambda: server.client.series(job=job["id"])["items"] or None, "curve")
    assert (found["labels"]["run"], found["labels"]["tag"]) == ("data/out/a", "loss")
    assert [value for value in found["mean"] if value is not None] == [0.5, 0.25]
    assert "corral: the event files in /image are in the image, where they are not seen" in server.log(job)


def test_what_a_storage_has_in_a_bucket_is_copied_beside_the_task(
    server: WithData, here: dict[str, Any], bucket: str
) -> None:
    server.corral("apply", "-", given="kind: Storage\nname: bucket\ntype: uri\nuri: s3://data/kept\nshare: false\n")
    keys = {
        "AWS_ENDPOINT_URL": bucket,
        "AWS_ACCESS_KEY_ID": "ada",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    role = {**here, "env": keys}
    first = server.ran(one("keeps", "echo 7 >/mnt/bucket/seven", role=role, storages=["bucket"]))
    assert first["state"] == "succeeded", f"{first['exit']} {server.log(first)}"
    again = server.ran(one("finds", "cat /mnt/bucket/seven", role=role, storages=["bucket"]))
    assert again["state"] == "succeeded", f"{again['exit']} {server.log(again)}"
    assert "7" in server.log(again).splitlines()


def test_openpais_administrators_are_shown_the_clusters_own_lists(server: WithData, kubelet_node: KubeletNode) -> None:
    token = server.corral("token", "create", "lists", "-o", "name").strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{server.url}/api/v2", headers=headers, trust_env=False) as http:
        nodes = until(lambda: _told_by_the_api_server(http), "control passes the API server's list on")
        pods = http.get("/kubernetes/pods", params={"namespace": NAMESPACE}).json()
    node = next(each for each in nodes if each["metadata"]["name"] == kubelet_node.name)
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
    assert pods["kind"] == "PodList"
    assert {each["metadata"]["namespace"] for each in pods["items"]} <= {NAMESPACE}


def _told_by_the_api_server(http: httpx2.Client) -> list[dict[str, Any]] | None:
    """The nodes as Kubernetes lists them; None while control does not answer, when Corral lists its own."""
    answer = http.get("/kubernetes/nodes")
    found = answer.json()["items"] if answer.status_code == 200 else []
    return found if any(each["status"]["nodeInfo"]["kubeletVersion"] for each in found) else None


def _claim(server: WithData, name: str, folder: Path) -> None:
    """A claim with a volume in a folder of the node."""
    folder.mkdir()
    size = {"storage": "1Gi"}
    reserved = {"namespace": NAMESPACE, "name": name}
    spec = {"capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(folder)}, "claimRef": reserved}
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": size},
        "storageClassName": "",
        "volumeName": f"volume-{name}",
    }
    volume = {"metadata": {"name": f"volume-{name}"}, "spec": spec}
    server.plane.request("POST", "/api/v1/persistentvolumes", volume)
    claims = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    server.plane.request("POST", claims, {"metadata": {"name": name}, "spec": wanted})
    until(
        lambda: server.plane.request("GET", f"{claims}/{name}")["status"].get("phase") == "Bound" or None, "it is bound"
    )


def _without_progress(log: str) -> list[str]:
    """The lines of a log without the progress lines that a slow machine adds."""
    return [line for line in log.splitlines() if not line.startswith("corral: staging ")]
