"""Run the demo in a typical setting: the user's image, libraries on a mount, data in a store, named devices."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from tests.endtoend.platform import ROOT, Job
from tests.engines.kubernetes.chronicle import Change, Chronicle, Device
from tests.engines.kubernetes.object_store import BUCKET, ObjectStore
from tests.engines.kubernetes.test_server_on_a_cluster import OnKubernetes
from tests.engines.kubernetes.test_testbed import until
from tests.frameworks.environments import WITHOUT_COMPILER, environment
from tests.testbeds import debian
from tests.testbeds.kubernetes.kubelet import KubeletNode
from tests.testbeds.kubernetes.pythontree import CORRAL, CORRAL_ENV, add_python, runtime_tree

NAMESPACE: Final = "demo"
IMAGE: Final = "corral.test/debian:1"
KEY: Final = "hunter2"
IMAGES: Final = 1600
"""Images in the store, of scikit-learn's 1,797: so the log shows which ones were used."""
_IMPORTS: Final = "import torch.distributed, torch.nn.parallel, torch.utils.data"
_HELD: Final = '''\
"""The demo, which rests after each epoch for as long as the test says."""

import os
import time
import types

import train


def rest(seconds):
    while os.path.exists("/kept/hold"):
        time.sleep(0.02)


train.time = types.SimpleNamespace(sleep=rest, monotonic=time.monotonic)
train.main()
'''


class DemoPlatform(OnKubernetes):
    """A server on a cluster, the demo's code, and its files on the node and in the store."""

    most = 2
    """Devices that jobs held at the same time at most."""

    def __init__(self, folder: Path, node: KubeletNode, store: ObjectStore, chronicle: Chronicle) -> None:
        super().__init__(folder, namespace=NAMESPACE, image=IMAGE, gateway=node.gateway)
        self.node, self.store, self.chronicle = node, store, chronicle
        self.env |= {"CORRAL_RUNTIME_IMAGE": CORRAL, "CORRAL_POD_TEMPLATES": "hostPath"}
        self.python = environment("pytorch")
        node.import_tree(IMAGE, add_python(debian.debian_tree(folder / "debian")))
        node.provide(CORRAL, runtime_tree, env=CORRAL_ENV)
        self._code = folder / "code"
        shutil.copytree(ROOT / "examples" / "pytorch", self._code, ignore=shutil.ignore_patterns("__pycache__"))
        (self._code / "held.py").write_text(_HELD)
        shutil.copy(WITHOUT_COMPILER / "sitecustomize.py", self._code)
        (packages,) = self.python.parent.glob("lib/python3*/site-packages")
        if not (packages / "torch" / "__pycache__").is_dir():  # tasks cannot write compiled Python files there
            subprocess.run([self.python / "python", "-c", _IMPORTS], check=True)
        with gzip.open(packages / "sklearn" / "datasets" / "data" / "digits.csv.gz") as digits:
            store.put("digits/digits.csv", b"".join(digits.readlines()[:IMAGES]))

    def kept(self, name: str) -> Path:
        """A job's folder that outlives its attempts; the demo pauses while it contains a file `hold`."""
        folder = self.folder / "kept" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / "hold").touch()
        return folder

    def go_on(self, name: str) -> None:
        """Let a job train without pauses."""
        (self.kept(name) / "hold").unlink()

    def train(self, name: str, *, epochs: int = 3) -> str:
        """Submit the demo by the command line, with only its placement changed; returns the job's id."""
        document = yaml.safe_load((self._code / "job.yaml").read_text())
        where = "--data given/digits.csv --checkpoint /kept/checkpoint.pt --output made"
        document |= {
            "name": name,
            "topology": {"required": "node"},
            "report": True,
            "inputs": [{"uri": f"s3://{BUCKET}/digits", "path": "given"}],
            "outputs": [{"path": "made", "uri": f"s3://{BUCKET}/{name}"}],
            "secrets": {"AWS_SECRET_ACCESS_KEY": "store-key"},
            "env": {
                "AWS_ENDPOINT_URL": self.store.url,
                "AWS_ACCESS_KEY_ID": "ada",
                "AWS_DEFAULT_REGION": "us-east-1",
                "PATH": f"{self.python}:/usr/bin:/bin",
                "PYTHONPATH": ".",
            },
        }
        document["roles"]["worker"] |= {
            "resources": {"cpu": 1, "memory": "2Gi", "devices": {"count": 1, "kind": "npu"}},
            "command": f"mkdir -p made && exec python held.py --epochs {epochs} {where}",
            "kubernetes": {"podTemplate": self.mounts(name)},
        }
        (self._code / f"{name}.yaml").write_text(yaml.safe_dump(document))
        return self.corral("submit", f"{name}.yaml", "-o", "name", folder=self._code).strip()

    def mounts(self, name: str) -> dict[str, Any]:
        """The mounts: the libraries on the node, and the kept folder."""
        environment, kept = str(self.python.parent), str(self.kept(name))
        mounts = [
            {"name": "libraries", "mountPath": environment, "readOnly": True},
            {"name": "kept", "mountPath": "/kept"},
        ]
        volumes = [
            {"name": "libraries", "hostPath": {"path": environment, "type": "Directory"}},
            {"name": "kept", "hostPath": {"path": kept, "type": "Directory"}},
        ]
        return {"spec": {"volumes": volumes, "containers": [{"name": "task", "volumeMounts": mounts}]}}

    def ended(self, job: Job | str) -> Job:
        """Wait until a job has ended, also on a busy machine."""
        return dict(self.client.wait(job if isinstance(job, str) else job["id"], timeout=240))

    def workers(self, job: str) -> dict[str, dict[str, Any]]:
        """The pods of a job that have not ended, by task."""
        return {
            f"worker-{pod['metadata']['labels']['corral.dev/task-index']}": pod
            for pod in self.pods()
            if pod["metadata"]["labels"]["corral.dev/job"] == job and pod["status"]["phase"] in ("Pending", "Running")
        }

    def devices(self, job: str) -> dict[str, Device]:
        """The device of each worker by its claim, once each has one."""
        pods = {pod["metadata"]["name"]: task for task, pod in self.workers(job).items()}

        def look() -> dict[str, Device] | None:
            held = [(pods[pod], each) for each, pod in self.chronicle.told().holders.items() if pod in pods]
            return dict(held) if len(held) == len(dict(held)) == len(pods) else None

        found: dict[str, Device] = until(look, "one device in each pod")
        return found

    def lives(self, job: str, task: str) -> list[tuple[int, int]]:
        """The revisions at which each pod of a task was created and ended; 0: it has not ended."""
        index = task.rpartition("-")[2]
        begun: dict[str, int] = {}
        ended: dict[str, int] = {}
        for change in sorted(self.chronicle.changes, key=lambda change: change.revision):
            labels = change.object["metadata"].get("labels", {})
            if change.sort == "pod" and (labels["corral.dev/job"], labels["corral.dev/task-index"]) == (job, index):
                uid = change.object["metadata"]["uid"]
                begun.setdefault(uid, change.revision)
                if _over(change):
                    ended.setdefault(uid, change.revision)
        return [(revision, ended.get(uid, 0)) for uid, revision in begun.items()]


def _over(change: Change) -> bool:
    return change.gone or change.object["status"].get("phase") in ("Succeeded", "Failed")
