"""Protocol v1: accepted and refused jobs, and the meaning of each field in the resulting job."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from corral.compat.openpai.language.names import ROLES
from corral.compat.openpai.language.v1 import OBSOLETE, TOO_MANY_OF_A_ROLE, read_v1, without_comments
from corral.compat.openpai.language.v1_job import KEPT_SECONDS, to_v1, v1_job
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

SAMPLES = (
    "caffe.mnist", "caffe2.resnet50", "chainer.cifar", "cntk-mpi", "cntk.g2p", "horovod", "jupyter", "kafka",
    "keras.cntk_backend.mnist", "keras.tensorflow_backend.mnist", "mxnet.autoencoder", "mxnet.image-classification",
    "pytorch.mnist", "pytorch.regression", "serving.ocr", "serving.tensorflow", "sklearn.mnist",
    "sklearn.text-vectorizers", "tensorflow.cifar10", "tensorflow.distributed-cifar10", "tensorflow.tensorboard",
    "xgboost.gpu_hist",
)  # fmt: skip
FS = "hdfs://namenode:9000"


def role(**more: Any) -> dict[str, Any]:
    return {"name": "main", "command": "true", **more}


def job(*roles: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"jobName": "j", "image": "an/image", "taskRoles": list(roles) or [role()], **more}


def read(document: dict[str, Any]) -> dict[str, Any]:
    return read_v1(json.dumps(document))


def translated(document: dict[str, Any], user: str = "alice", fs_uri: str = FS) -> UnifiedJob:
    return UnifiedJob.from_document(v1_job(read(document), user=user, fs_uri=fs_uri).document)


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as caught:
        read(document)
    return str(caught.value)


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest, data_folder: Path) -> Path:
    return data_folder / "openpai" / "jobs-v1" / f"{request.param}.json"


def test_these_are_all_samples_that_there_are(data_folder: Path) -> None:
    assert {path.stem for path in (data_folder / "openpai" / "jobs-v1").glob("*.json")} == set(SAMPLES)
    assert len(SAMPLES) == 22


def test_every_sample_becomes_a_job_that_means_what_v1_means(sample: Path) -> None:
    v1 = read_v1(sample.read_bytes(), sample.name)
    found = UnifiedJob.from_document(v1_job(v1, user="alice", fs_uri=FS).document)
    names = json.loads(found.metadata.annotations[ROLES])
    assert [names[each.name] for each in found.spec.roles] == [each["name"] for each in v1["taskRoles"]]
    assert found.spec.retry_policy.max_retries == v1["retryCount"]
    assert found.spec.retry_policy.fancy is (v1["retryCount"] != -2)
    assert found.spec.queue == v1["virtualCluster"]
    for made, said in zip(found.spec.roles, v1["taskRoles"], strict=True):
        assert found.replicas_of(made.name) == said["taskNumber"]
        assert made.image == v1["image"]
        assert made.command[:2] == ["bash", "-c"]
        assert made.command[2].splitlines()[-1 if v1["codeDir"] else 0 :] == said["command"].splitlines()
        assert made.resources.cpu_millis == said["cpuNumber"] * 1000
        assert made.resources.memory_bytes == said["memoryMB"] * 2**20
        assert made.resources.devices.count == said["gpuNumber"]
        assert made.shm_bytes == said["shmMB"] * 2**20
        assert made.completion.min_failed == 1
        assert made.completion.min_succeeded == (said["minSucceededTaskCount"] or -1)
        assert {"ssh", "http"} <= {port.name for port in made.ports}
        assert len(made.ports) == 2 + len(said["portList"])


def test_every_sample_comes_back_as_the_same_document(sample: Path) -> None:
    v1 = read_v1(sample.read_bytes(), sample.name)
    document = v1_job(v1, fs_uri="hdfs://x").document
    back = to_v1(document)
    assert back is not None
    again = v1_job(read(back), fs_uri="hdfs://x").document
    assert again == document
    same = {name for name in v1 if name not in ("dataDir", "outputDir", "codeDir", "authFile")}
    assert {name: back[name] for name in same} == {name: v1[name] for name in same}


def test_every_sample_is_taken_by_the_door_for_all_job_files(sample: Path) -> None:
    assert load_job(sample.read_bytes(), filename=sample.name).spec.job_type == "openpai"


def test_what_is_left_out_has_v1s_defaults() -> None:
    assert read(job()) == {
        "jobName": "j", "image": "an/image", "authFile": "", "dataDir": "", "outputDir": "", "codeDir": "",
        "virtualCluster": "default", "gpuType": "", "retryCount": 0, "jobEnvs": {}, "extras": {},
        "taskRoles": [
            {
                "name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "shmMB": 64, "gpuNumber": 0,
                "portList": [], "command": "true", "minFailedTaskCount": 1, "minSucceededTaskCount": None,
            }
        ],
    }  # fmt: skip


def test_comments_are_read_over_and_text_that_looks_like_one_is_not() -> None:
    rest = '"taskRoles": [{"name": "a", "command": "b"},]}'
    text = '{"jobName": "j", // a name\n "image": "docker://x/*", /* two\nlines */ ' + rest
    assert read_v1(text)["image"] == "docker://x/*"
    assert [len(line) for line in without_comments(text).splitlines()] == [len(line) for line in text.splitlines()]


@pytest.mark.parametrize("text", ["/* " * 200_000, '"' + '\\"' * 200_000, "/* \n" * 200_000 + "*/"])
def test_texts_and_comments_without_an_end_are_looked_through_once(text: str) -> None:
    told = without_comments(text)
    assert len(told) == len(text)
    assert told == text or not told.strip()


def test_a_problem_is_told_where_it_was_written() -> None:
    with pytest.raises(SpecError) as caught:
        read_v1('{\n  // who\n  "jobName": "a b",\n  "image": "x",\n  "taskRoles": [{"name": "m", "command": "c"}]\n}')
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (3, ("jobName",))


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"image": "x", "taskRoles": [role()], "jobName": ""}, "jobName"),
        (job(jobName="a/b"), "jobName"),
        (job(image=""), "image"),
        (job(role(command="")), "command"),
        (job(jobName="a" * 256), "jobName"),
        ({"jobName": "j", "taskRoles": [role()]}, "image"),
        ({"jobName": "j", "image": "x"}, "taskRoles"),
        (job(retryCount=-3), "retryCount"),
        (job(retryCount="many"), "retryCount"),
        (job(unknown=1), "unknown"),
        (job(jobEnvs={"a-b": "1"}), "jobEnvs"),
        (job(role(name="a b")), "name"),
        (job(role(command=None)), "command"),
        (job(role(taskNumber=0)), "taskNumber"),
        (job(role(shmMB=200)), "shmMB"),
        (job(role(minFailedTaskCount=0)), "minFailedTaskCount"),
        (job(role(portList=[{"label": "a", "beginAt": 65_535, "portNumber": 2}])), "portNumber"),
        (job(role(portList=[{"label": "a"}, {"label": "a"}])), "label"),
        (job(role(), role()), "name"),
        (job(role(gpus=1)), "gpus"),
    ],
)
def test_what_v1_does_not_allow_is_refused_with_its_field(document: dict[str, Any], field: str) -> None:
    assert field in refused(document)


@pytest.mark.parametrize("name", ["minFailedTaskCount", "minSucceededTaskCount"])
def test_a_count_above_the_number_of_tasks_is_refused_in_openpais_words(name: str) -> None:
    assert TOO_MANY_OF_A_ROLE in refused(job(role(taskNumber=2, **{name: 3})))
    assert read(job(role(taskNumber=3, **{name: 3})))["taskRoles"][0][name] == 3


def test_numbers_in_quotes_are_numbers() -> None:
    assert read(job(role(cpuNumber="4"), retryCount="-2"))["retryCount"] == -2


def test_null_is_no_condition_for_the_end() -> None:
    (made,) = translated(job(role(minFailedTaskCount=None, minSucceededTaskCount=None))).spec.roles
    assert (made.completion.min_failed, made.completion.min_succeeded) == (-1, -1)


def test_a_retry_count_of_minus_two_begins_anew_after_every_end() -> None:
    policy = translated(job(retryCount=-2)).spec.retry_policy
    assert (policy.fancy, policy.max_retries) == (False, -2)
    policy = translated(job(retryCount=3)).spec.retry_policy
    assert (policy.fancy, policy.max_retries) == (True, 3)


def test_variables_and_folders_reach_the_tasks() -> None:
    document = job(
        jobEnvs={"LEVEL": 1.50, "ON": True},
        dataDir="$PAI_DEFAULT_FS_URI/$PAI_USERNAME/data",
        outputDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME",
        codeDir="$PAI_DEFAULT_FS_URI/$PAI_USERNAME/x/code",
    )
    found = translated(document)
    (made,) = found.spec.roles
    assert made.env["PAI_DATA_DIR"] == f"{FS}/alice/data"
    assert made.env["PAI_OUTPUT_DIR"] == f"{FS}/alice/j"
    assert made.env["PAI_CODE_DIR"] == f"{FS}/alice/x/code"
    assert (made.env["ON"], made.env["LEVEL"]) == ("true", "1.5")
    assert [(each.uri, each.path) for each in found.spec.inputs] == [(f"{FS}/alice/x/code", "code")]


def test_a_folder_for_the_output_is_made_up_where_none_is_named() -> None:
    (made,) = translated(job()).spec.roles
    assert made.env["PAI_OUTPUT_DIR"] == f"{FS}/Output/alice/j"
    assert "PAI_DATA_DIR" not in made.env


def test_code_of_more_than_200_megabytes_ends_the_task(tmp_path: Path) -> None:
    (made,) = translated(job(role(command="echo begun"), codeDir="/x/my code")).spec.roles
    code = tmp_path / "my code"
    code.mkdir()

    def ran() -> tuple[int, str]:
        done = subprocess.run(made.command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    assert ran() == (0, "begun\n")
    with (code / "large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 201 * 2**20)
    ended, said = ran()
    assert (ended, "200 MB" in said, "begun" in said) == (1, True, False)


def test_a_job_with_azures_rdma_needs_the_network() -> None:
    assert translated(job(jobEnvs={"paiAzRDMA": True})).spec.network.rdma == "required"
    assert translated(job(jobEnvs={"paiAzRDMA": False})).spec.network.rdma == "none"


def test_code_without_a_scheme_is_on_the_default_file_system() -> None:
    (one,) = translated(job(codeDir="/a/program")).spec.inputs
    assert (one.uri, one.path) == (f"{FS}/a/program", "program")
    (other,) = translated(job(codeDir="/a/program"), fs_uri="").spec.inputs
    assert other.uri == "file:///a/program"
    with pytest.raises(SpecError, match="codeDir"):
        translated(job(codeDir="program"))


def test_ports_that_begin_at_a_number_have_it_and_their_tasks_are_apart() -> None:
    ports = [{"label": "model_server", "beginAt": 9000, "portNumber": 2}, {"label": "free"}]
    found = translated(job(role(portList=ports, taskNumber=2)))
    by_name = {port.name: port for port in found.spec.roles[0].ports}
    assert (by_name["model-server"].start, by_name["model-server"].count) == (9000, 2)
    assert by_name["free"].start == 0
    assert found.spec.sharing.one_task_per_node
    assert not translated(job(role(portList=ports))).spec.sharing.one_task_per_node


def test_a_gpu_type_is_the_model_of_the_devices() -> None:
    first, second = translated(job(role(gpuNumber=1), role(name="cpu"), gpuType="K80")).spec.roles
    assert (first.resources.devices.model, second.resources.devices.model) == ("K80", "")


def test_what_fails_in_a_job_to_debug_is_kept_for_a_week() -> None:
    (made,) = translated(job(jobEnvs={"isDebug": True})).spec.roles
    assert f"sleep {KEPT_SECONDS}" in made.command[-1]
    assert "sleep" not in translated(job(jobEnvs={"isDebug": False})).spec.roles[0].command[-1]


def test_what_opens_the_registry_is_a_secret_of_the_job_and_not_in_it() -> None:
    made = v1_job(read(job(authFile="hdfs://x/auth")), user="alice", auth=("registry.test", "me", "s3cret"))
    assert (made.secrets["registry.username"], made.secrets["registry.password"]) == ("me", "s3cret")
    assert "s3cret" not in json.dumps(made.document)


def test_the_obsolete_field_is_taken_and_kept() -> None:
    assert read(job(**{OBSOLETE: 1}))[OBSOLETE] == 1
