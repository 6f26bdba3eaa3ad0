"""Features that need Corral's runtime in a pod, with a server, a real kubelet and this machine's Python as the image."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.endtoend.platform import one
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.reserved import free_port
from tests.runtime.event_files.encoder import scalars
from tests.testbeds.kubernetes import relay
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.daemons import Daemon
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.pythontree import PYTHON, python_tree

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, kubelet_node: KubeletNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnKubernetes]:
    """A server that pods reach through their node's gateway."""
    folder = tmp_path_factory.mktemp("server")
    kubelet_node.provide(PYTHON, python_tree)
    control_plane.add_namespace("peers")
    made = OnKubernetes(folder, namespace="peers", image=PYTHON, gateway=kubelet_node.gateway)
    made.plane = control_plane
    made.port = str(free_port())
    words = [sys.executable, relay.__file__, kubelet_node.gateway, made.port, made.port]
    passing = Daemon("relay-of-server", words, folder)
    passing.start(lambda: True)
    made.up()
    yield made
    made.down()
    passing.stop()
    control_plane.request("DELETE", "/api/v1/namespaces/peers")


@pytest.fixture
def here(kubelet_node: KubeletNode) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": kubelet_node.name}}


MEET = """
import os, socket, time
rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", port)) as listening:
        peer, address = listening.accept()
        print("met", peer.recv(100).decode(), flush=True)
else:
    for _ in range(3000):
        try:
            with socket.create_connection((os.environ["MASTER_ADDR"], port)) as peer:
                peer.sendall(f"rank {rank} of {os.environ['WORLD_SIZE']}".encode())
            break
        except OSError:
            time.sleep(0.1)
"""


def test_the_tasks_of_a_gang_meet(server: OnKubernetes, here: dict[str, Any]) -> None:
    role = {"replicas": 2, "resources": {"cpu": "0.1"}, "command": ["python3", "-c", MEET], **here}
    job = server.ran({"name": "gang", "framework": "pytorch", "roles": {"worker": role}})
    assert job["state"] == "succeeded", server.log(job, "worker-0") + server.log(job, "worker-1")
    assert server.log(job, "worker-0") == "met rank 1 of 2\n"


def test_code_is_there_before_the_command(server: OnKubernetes, here: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("import sys, os\nprint('ran in', os.getcwd())\nsys.exit(6)\n")
    node = here["nodeSelector"]["kubernetes.io/hostname"]
    (tmp_path / "job.yaml").write_text(
        "name: packed\nframework: shell\ncode: .\n"
        f"roles: {{main: {{command: [python3, run.py], nodeSelector: {{kubernetes.io/hostname: {node}}}}}}}\n"
    )
    ran = server.run("submit", "-f", "job.yaml", folder=tmp_path)
    assert "ran in /run/corral/work\n" in ran.stdout, ran.stderr
    assert ran.returncode != 0


WRITES = """
import base64, os, sys
for folder, data in zip(sys.argv[1::2], sys.argv[2::2]):
    os.makedirs(folder)
    with open(f"{folder}/events.out.tfevents.1.pod", "wb") as file:
        file.write(base64.b64decode(data))
"""


def test_event_files_in_a_pod_are_curves_of_its_job(server: OnKubernetes, here: dict[str, Any]) -> None:
    now = time.time()
    data = [
        base64.b64encode(scalars((now - 40, tag, 2 * value), (now - 1, tag, value))).decode()
        for tag, value in (("loss", 0.25), ("rate", 0.125))
    ]
    command = ["python3", "-c", WRITES, "runs/a", data[0], "/tmp/elsewhere/b", data[1]]
    job = server.ran(one("curves", command, role=here, report={"tensorboard": ["/tmp/elsewhere"]}))
    assert job["state"] == "succeeded", server.log(job)
    items = until(lambda: found if len(found := server.client.series(job=job["id"])["items"]) == 2 else None, "curves")
    shown = {each["labels"]["run"]: [value for value in each["mean"] if value is not None] for each in items}
    assert shown == {"runs/a": [0.5, 0.25], "tmp/elsewhere/b": [0.25, 0.125]}
    assert {each["labels"]["task"] for each in items} == {"main-0"}


def test_a_stop_reaches_the_program_through_the_runtime(server: OnKubernetes, here: dict[str, Any]) -> None:
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'saving\\n'), sys.exit(0)))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(0.1)\n"
    )
    job = server.submit(one("told", ["python3", "-c", program], role=here, barrier={"enabled": True}))
    server.printed(job, "main-0", "ready\n")
    server.client.stop(job["id"])
    assert server.ended(job)["state"] == "stopped"
    assert server.log(job) == "ready\nsaving\n"


def test_what_only_the_attempt_may_know_goes_with_its_pod(server: OnKubernetes) -> None:
    def left() -> list[str]:
        found = server.plane.request("GET", "/api/v1/namespaces/peers/secrets")["items"]
        return [secret["metadata"]["name"] for secret in found]

    until(lambda: left() == [] or None, "end of the Secrets")
