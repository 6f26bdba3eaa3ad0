"""`corral openpai check` reports, without a server, which OpenPAI features a file uses and how Corral handles them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corral.cli.main import run
from tests.spec.openpai_files import MINIMAL, job_file, role_of, samples

HUSH = "hush-hush-value"


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Check a text; returns the exit code and the answer as data."""

    def checked(text: str) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "job.yaml"
        file.write_text(text)
        code = run(["openpai", "check", str(file), "-o", "json"])
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, answer

    return checked


def uses(answer: dict[str, Any]) -> dict[str, str]:
    return {use["field"]: use["state"] for use in answer["uses"]}


def test_a_plain_job_uses_nothing_and_is_told_as_it_will_be(check: Any) -> None:
    code, answer = check(MINIMAL)
    assert code == 0 and answer["valid"]
    assert (answer["protocol"], answer["name"], answer["job"], answer["queue"]) == ("2", "j1", "j1", "default")
    (role,) = answer["roles"]
    assert (role["name"], role["tasks"], role["memory"], role["image"]) == ("worker", 1, "512Mi", "ubuntu:22.04")
    assert role["command"] == "echo hi"
    assert answer["uses"] == []


def test_every_thing_that_a_job_uses_has_its_line(check: Any) -> None:
    extras = {
        "gangAllocation": False,
        "submitFrom": "vscode",
        "storages": [{"name": "data"}],
        "hivedScheduler": {
            "jobPriorityClass": "prod",
            "lazyPreemptionEnable": True,
            "gangReleaseEnable": True,
            "taskRoles": {"worker": {"skuNum": 2, "skuType": "V100", "affinityGroupName": "g"}},
        },
        "com.microsoft.pai.runtimeplugin": [{"plugin": "ssh"}, {"plugin": "unheard-of"}],
        "ownField": 1,
    }
    role = role_of(taskRetryCount=2, commands=["<% $secrets.key %> <% $parameters.missing %>"])
    code, answer = check(job_file(extras=extras, jobRetryCount=1, secrets={"key": HUSH}, taskRoles={"worker": role}))
    assert code == 0
    assert uses(answer) == {
        "jobRetryCount": "same",
        "taskRoles.worker.taskRetryCount": "same",
        "extras.hivedScheduler.jobPriorityClass": "same",
        "extras.hivedScheduler.lazyPreemptionEnable": "same",
        "extras.hivedScheduler.gangReleaseEnable": "ignored",
        "extras.hivedScheduler.taskRoles.worker.skuType": "same",
        "extras.hivedScheduler.taskRoles.worker.skuNum": "same",
        "extras.hivedScheduler.taskRoles.worker.affinityGroupName": "same",
        "extras.gangAllocation": "same",
        "extras.storages": "same",
        "extras.com.microsoft.pai.runtimeplugin[0]": "same",
        "extras.com.microsoft.pai.runtimeplugin[1]": "ignored",
        "extras.submitFrom": "same",
        "extras.ownField": "ignored",
        "secrets": "same",
        "taskRoles.worker.commands": "same",
    }
    assert HUSH not in json.dumps(answer)
    assert (answer["priority"], answer["retries"]) == (100, 1)


@pytest.mark.parametrize(("gpu", "state"), [(0, "same"), (2, "same"), (3, "differs")])
def test_fewer_cells_than_devices_are_told_to_differ(check: Any, gpu: int, state: str) -> None:
    role = role_of(resourcePerInstance={"cpu": 1, "memoryMB": 1, "gpu": gpu})
    hived = {"hivedScheduler": {"taskRoles": {"worker": {"skuNum": 2}}}}
    _, answer = check(job_file(extras=hived, taskRoles={"worker": role}))
    assert uses(answer) == {"extras.hivedScheduler.taskRoles.worker.skuNum": state}


def test_a_retry_that_a_gang_does_not_get_is_told(check: Any) -> None:
    _, answer = check(job_file(taskRoles={"worker": role_of(taskRetryCount=2)}))
    assert uses(answer) == {"taskRoles.worker.taskRetryCount": "ignored"}


def test_a_file_that_cannot_be_accepted_ends_with_2_and_its_line(check: Any) -> None:
    code, answer = check(MINIMAL.replace("gpu: 0", "gpu: none"))
    assert (code, answer["valid"], answer["problems"][0]["line"]) == (2, False, 6)
    code, answer = check("name: a\nroles: {worker: {command: echo}}\n")
    assert code == 2 and "not made from a file of OpenPAI" in answer["problems"][0]["message"]


def test_all_samples_of_both_protocols_are_told(data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in (1, 2):
        for file in samples(data_folder, version):
            assert run(["openpai", "check", str(file)]) == 0
            shown = capsys.readouterr().out
            assert f"Protocol: {version}" in shown and "ROLE" in shown


def test_v1_files_are_told_in_their_own_words(check: Any) -> None:
    job = {
        "jobName": "old",
        "image": "i",
        "codeDir": "hdfs://a/code",
        "retryCount": -2,
        "taskRoles": [{"name": "main", "command": "x", "portList": [{"label": "web", "beginAt": 8080}]}],
    }
    code, answer = check("// a comment\n" + json.dumps(job))
    assert (code, answer["protocol"]) == (0, "1")
    assert {"codeDir", "retryCount", "taskRoles[0].portList"} <= uses(answer).keys()
    assert uses(answer)["codeDir"] == "same"


def test_validate_and_convert_take_files_of_openpai_directly(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (samples(data_folder, 1)[0], samples(data_folder, 2)[0]):
        assert run(["validate", str(file)]) == 0
        capsys.readouterr()
        assert run(["convert", str(file), "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["spec"]["jobType"] == "openpai"
