"""OpenPAI's own 53 sample jobs, each submitted through REST by its protocol's version and run as processes.

Their commands are replaced: every task writes its environment to a file, and the first one exits with the sample's
code. The tests compare the environment, the state for each exit code, the retries, and the end of the job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest
import yaml

from corral.compat.openpai.language.v1 import without_comments
from corral.model.exits import exit_spec
from corral.runtime.error_block import container_code
from tests.endtoend.platform import Platform
from tests.waiting import pause

V2: Final = (
    "CPU_500Task_MNIST", "ConvNet_gpu1", "Lite-imagenet-single-mul-DDP-gloo", "Resnet18_12cpu", "Resnet18_1gpu",
    "Resnet18_4gpu", "Resnet18_horovod", "caffe-mnist", "caffe2-resnet50", "chainer-cifar",
    "cifar10-single-mul-DDP-gloo-Apex-mixed", "cifar10-single-mul-DDP-gloo", "cifar10-single-mul-DDP-nccl-Apex-mixed",
    "cifar10-single-mul-DDP-nccl", "cifar10-single-node-gpus-cpu-DP", "cifar10_resnet20_1gpu", "cifar10_vgg16_tf_cpu",
    "cifar10_vgg16_tf_gpu", "cifar10_vgg16_tf_gpu_distributed", "cifar10_vgg16_tf_gpu_horovod", "hello-world-job",
    "horovod-pytorch-synthetic-benchmark", "keras-tensorflow-mnist", "mxnet-autoencoder", "pytorch-mnist",
    "pytorch-regression", "rocm-pytorch-mnist", "rocm-tensorflow2", "sklearn-text-vectorizers", "tensorflow-cifar10",
    "tensorflow-serving-mnist",
)  # fmt: skip
V1: Final = (
    "caffe.mnist", "caffe2.resnet50", "chainer.cifar", "cntk-mpi", "cntk.g2p", "horovod", "jupyter", "kafka",
    "keras.cntk_backend.mnist", "keras.tensorflow_backend.mnist", "mxnet.autoencoder", "mxnet.image-classification",
    "pytorch.mnist", "pytorch.regression", "serving.ocr", "serving.tensorflow", "sklearn.mnist",
    "sklearn.text-vectorizers", "tensorflow.cifar10", "tensorflow.distributed-cifar10", "tensorflow.tensorboard",
    "xgboost.gpu_hist",
)  # fmt: skip
SAMPLES: Final = [("v2", name) for name in V2] + [("v1", name) for name in V1]
TRANSIENT: Final = 200
ENDS: Final = (0, 1, TRANSIENT, 210, 0, 139, 220)
"""Exit codes of the samples' first tasks, in turn; after a transient failure the retry succeeds."""
CLUSTER: Final = """\
kind: Cluster
node:
  cpu: 2000
  memory: 32Ti
  shm: 8Ti
  devices: {count: 32, kind: gpu, model: described, memory: 40Gi}
racks: {rack: {nodes: [node1, node2, node3, node4]}}
queues: {default: {}, cpu: {}}
"""
FEWER: Final = {"CPU_500Task_MNIST": {"taskrole": 60}}
"""Samples' roles that run fewer tasks.

All 500 took a tenth of the whole suite's processor time, each like the next; `tests/spec` translates the sample
unchanged.
"""
PATIENCE: Final = 600.0
"""Seconds."""


class Sample(NamedTuple):
    """A sample as it was submitted."""

    version: str
    job: dict[str, Any]
    end: int

    @property
    def name(self) -> str:
        return str(self.job["name" if self.version == "v2" else "jobName"])

    @property
    def endless(self) -> bool:
        """Whether it restarts after every end."""
        return bool(self.job.get("retryCount") == -2)

    def roles(self) -> dict[str, dict[str, Any]]:
        """The resources of each role by name, as version 2 writes them."""
        if self.version == "v2":
            return dict(self.job["taskRoles"])
        return {role["name"]: _of_v1(role) for role in self.job["taskRoles"]}


def _of_v1(role: dict[str, Any]) -> dict[str, Any]:
    return {
        "instances": role.get("taskNumber", 1),
        "resourcePerInstance": {
            "gpu": role.get("gpuNumber", 0),
            "cpu": role.get("cpuNumber", 1),
            "memoryMB": role.get("memoryMB", 100),
        },
        "extraContainerOptions": {"shmMB": role.get("shmMB", 64)},
        "completion": {
            "minFailedInstances": role.get("minFailedTaskCount", 1),
            "minSucceededInstances": role.get("minSucceededTaskCount"),
        },
    }


class Ran:
    """The server that runs the samples, and the tasks' files."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self.folder = folder
        headers = {"Authorization": f"Bearer {platform.client.token}"}
        self.http = httpx2.Client(base_url=platform.url, headers=headers, trust_env=False, timeout=60)
        self.user = str(platform.client.me()["user"])
        self.samples: dict[tuple[str, str], Sample] = {}

    def submit(self, version: str, job: dict[str, Any], end: int) -> Sample:
        """Submit a sample with replaced commands, as clients of its protocol version do."""
        sample = Sample(version, job, end)
        counts = {name: int(role.get("instances", 1)) for name, role in sample.roles().items()}
        written = [f"{self.folder}/{sample.name}.{name}.{at}" for name, count in counts.items() for at in range(count)]
        roles = job["taskRoles"].items() if version == "v2" else [(role["name"], role) for role in job["taskRoles"]]
        for number, (name, role) in enumerate(roles):
            command = self._command(sample, name, written if number == 0 else [])
            role["commands" if version == "v2" else "command"] = [command] if version == "v2" else command
        job.pop("deployments", None)
        job.pop("defaults", None) if "deployment" in job.get("defaults", {}) else None
        if version == "v2":
            headers = {"Content-Type": "text/yaml"}
            answer = self.http.post("/api/v2/jobs", content=yaml.safe_dump(job, sort_keys=False), headers=headers)
        else:
            answer = self.http.post("/rest-server/api/v1/jobs", json=job)
        assert answer.status_code == 202, f"{sample.name}: {answer.status_code} {answer.text}"
        return sample

    def _command(self, sample: Sample, role: str, written: list[str]) -> str:
        """A role's command: the first task of the first role ends the job, once all files in `written` exist."""
        file = f"{self.folder}/{sample.name}.{role}.$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
        tell = f"env -0 >{file}.part && mv {file}.part {file}"
        wait = f"for file in {' '.join(written)}; do until [ -e $file ]; do sleep 0.05; done; done"
        if sample.end == 0:  # every task must write before any ends: a role whose tasks succeed may end the job
            everybody = f"{self.folder}/{sample.name}.everybody"
            if written:
                tell += f'\nif [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" = 0 ]; then {wait}; touch {everybody}; fi'
            once = '[ "$CORRAL_JOB_ATTEMPT" = 0 ] || exec sleep 1000' if sample.endless else ":"
            return f"{tell}\nuntil [ -e {everybody} ]; do sleep 1; done\n{once}"
        others = '[ "$CORRAL_JOB_ATTEMPT" = 0 ] && exec sleep 1000; exit 0'
        if not written:
            return f"{tell}\n{others}"
        once = '[ "$CORRAL_JOB_ATTEMPT" = 0 ] || exit 0' if sample.end == TRANSIENT else ":"
        first = f'if [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" != 0 ]; then {others}; fi'
        return f"{tell}\n{first}\n{once}\n{wait}\nexit {sample.end}"

    def until(self, sample: Sample, *states: str) -> dict[str, Any]:
        """A job's detail in version 2's form, once its state is one of these."""
        return self._until(sample, lambda status: status["state"] in states)

    def begun_anew(self, sample: Sample) -> dict[str, Any]:
        """A job's detail once its second attempt runs; that attempt does not end."""
        return self._until(sample, lambda status: status["retries"] == 1 and status["subState"] == "AttemptRunning")

    def stop(self, sample: Sample) -> None:
        """Stop a job through its own protocol version."""
        where = f"/api/v1/user/{self.user}/jobs/{sample.name}/executionType"
        answer = self.http.put(where, json={"value": "STOP"})
        assert answer.status_code == 202, answer.text

    def _until(self, sample: Sample, holds: Any) -> dict[str, Any]:
        begun = time.monotonic()
        while True:
            answer = self.http.get(f"/api/v2/jobs/{self.user}~{sample.name}")
            found: dict[str, Any] = answer.json()
            if holds(found["jobStatus"]):
                return found
            assert time.monotonic() - begun < PATIENCE, found["jobStatus"]
            time.sleep(pause(begun))

    def environment(self, sample: Sample, role: str, index: int) -> dict[str, str]:
        """The environment that a task wrote."""
        text = (self.folder / f"{sample.name}.{role}.{index}").read_text()
        return dict(line.split("=", 1) for line in text.split("\0") if line)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, data_folder: Path) -> Iterator[Ran]:
    """All samples, submitted at once."""
    samples = data_folder / "openpai"
    if not samples.is_dir():
        pytest.skip("OpenPAI's sample jobs are not here: set CORRAL_DATA to the folder that has openpai/jobs-v2")
    folder = tmp_path_factory.mktemp("samples")
    told, files = folder / "told", folder / "files"
    told.mkdir()
    cluster = folder / "cluster.yaml"
    storage = {"kind": "Storage", "name": "confignfs", "type": "folder", "path": str(folder / "storage")}
    (folder / "storage").mkdir()
    cluster.write_text(CLUSTER)
    env = {"CORRAL_OPENPAI_FS_URI": f"file://{files}", "DOCKER_HOST": f"unix://{folder}/none.sock"}
    platform = Platform(folder, cluster=cluster, env=env)
    platform.up()
    platform.corral("apply", "-", given=yaml.safe_dump(storage))
    made = Ran(platform, told)
    try:
        for at, (version, name) in enumerate(SAMPLES):
            text = next((samples / f"jobs-{version}").glob(f"{name}.[jy]*")).read_text()
            job = yaml.safe_load(text) if version == "v2" else json.loads(without_comments(text))
            if (code := job.get("codeDir", "")).startswith("$PAI_DEFAULT_FS_URI/"):
                (files / made.user / code.split("/", 2)[2]).mkdir(parents=True, exist_ok=True)
            for role, count in FEWER.get(name, {}).items():
                job["taskRoles"][role]["instances"] = count
            end = 0 if name.startswith(("CPU_500", "serving")) else ENDS[at % len(ENDS)]
            made.samples[version, name] = made.submit(version, job, end)
        yield made
    finally:
        made.http.close()
        platform.down()


def test_these_are_all_samples(data_folder: Path) -> None:
    for version, names in (("v2", V2), ("v1", V1)):
        found = {path.stem for path in (data_folder / "openpai" / f"jobs-{version}").glob("*")}
        assert found == set(names)
    assert len(SAMPLES) == 53


@pytest.mark.timeout(800)
@pytest.mark.parametrize(("version", "name"), SAMPLES, ids=[f"{version}-{name}" for version, name in SAMPLES])
def test_a_sample_runs_as_its_protocol_says(ran: Ran, version: str, name: str) -> None:
    sample = ran.samples[version, name]
    if sample.endless:
        ran.begun_anew(sample)
        ran.stop(sample)
        found = ran.until(sample, "STOPPED")
        assert found["jobStatus"]["appExitCode"] == -210
    else:
        found = ran.until(sample, "SUCCEEDED", "FAILED")
        _check_end(sample, found)
    _check_tasks(sample, found)
    _check_environment(ran, sample)


def _check_end(sample: Sample, found: dict[str, Any]) -> None:
    status = found["jobStatus"]
    good = sample.end in (0, TRANSIENT)
    assert status["state"] == ("SUCCEEDED" if good else "FAILED"), status
    assert status["retries"] == (1 if sample.end == TRANSIENT else 0)
    assert status["appExitCode"] == (0 if good else container_code(sample.end))
    if not good:
        first = next(iter(sample.roles()))
        assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == (first, 0)
        known = exit_spec(container_code(sample.end))
        assert status["appExitSpec"]["phrase"] == known.phrase
        assert status["appExitSpec"]["reaction"] == known.reaction


def _check_tasks(sample: Sample, found: dict[str, Any]) -> None:
    for name, role in sample.roles().items():
        tasks = found["taskRoles"][name]["taskStatuses"]
        assert [task["taskIndex"] for task in tasks] == list(range(role.get("instances", 1)))
        for task in tasks:
            gpus = [each for each in (task["containerGpus"] or "").split(",") if each]
            assert len(gpus) == role["resourcePerInstance"]["gpu"]


def _check_environment(ran: Ran, sample: Sample) -> None:
    roles = sample.roles()
    counts = {name: role.get("instances", 1) for name, role in roles.items()}
    everywhere = {
        "PAI_JOB_NAME": f"{ran.user}~{sample.name}",
        "PAI_USER_NAME": ran.user,
        "PAI_USERNAME": ran.user,
        "PAI_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_TASK_ROLE_LIST": ",".join(roles),
        "PAI_JOB_TASK_COUNT": str(sum(counts.values())),
        "PAI_VIRTUAL_CLUSTER": sample.job.get("defaults", {}).get("virtualCluster", "default"),
    }
    for name, role in roles.items():
        asked, completion = role["resourcePerInstance"], role.get("completion") or {}
        shm = (role.get("extraContainerOptions") or {}).get("shmMB", 512)
        everywhere |= {
            f"PAI_TASK_ROLE_TASK_COUNT_{name}": str(counts[name]),
            f"PAI_RESOURCE_{name}": f"{asked['gpu']},{asked['cpu']},{asked['memoryMB']},{shm}",
            f"PAI_MIN_FAILED_TASK_COUNT_{name}": str(completion.get("minFailedInstances", 1)),
        }
    for name, count in counts.items():
        for index in range(count):
            _check_task(ran.environment(sample, name, index), everywhere, name, index, roles[name])


def _check_task(told: dict[str, str], everywhere: dict[str, str], name: str, index: int, role: dict[str, Any]) -> None:
    own = {
        "PAI_CURRENT_TASK_ROLE_NAME": name,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
        "PAI_TASK_INDEX": str(index),
        "FC_TASKROLE_NAME": name,
        "FC_TASK_INDEX": str(index),
    }
    expected = everywhere | own
    assert {key: told.get(key) for key in expected} == expected
    ports = dict(pair.split(":", 1) for pair in told["PAI_CONTAINER_HOST_PORT_LIST"].rstrip(";").split(";"))
    labels = set(role["resourcePerInstance"].get("ports", {}))
    assert labels | {"ssh", "http"} <= set(ports)
    for label, numbers in ports.items():
        assert told[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] == numbers
        assert told[f"PAI_PORT_LIST_{name}_{index}_{label}"] == numbers
    assert told["PAI_CONTAINER_SSH_PORT"] == ports["ssh"]
    assert told[f"PAI_HOST_IP_{name}_{index}"] == told["PAI_CONTAINER_HOST_IP"]
