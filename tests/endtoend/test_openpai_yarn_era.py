"""A v1 job and Frameworks of FrameworkLauncher run to their ends, with fetched code and the expected variables."""

from __future__ import annotations

import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.endtoend.platform import Platform
from tests.waiting import pause

PATIENCE = 300.0


class Yarn:
    """A caller of the YARN releases' routes, whose clients poll because there are no events."""

    def __init__(self, platform: Platform) -> None:
        headers = {"Authorization": f"Bearer {platform.client.token}"}
        self.platform = platform
        self.http = httpx2.Client(base_url=platform.url, headers=headers, trust_env=False, timeout=60)
        self.user = str(platform.client.me()["user"])

    def get(self, path: str) -> Any:
        answer = self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def asked(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        answer = self.http.request(method, path, json=body)
        assert answer.status_code == 202, answer.text
        return answer

    def status(self, name: str, fits: Callable[[Any], bool]) -> Any:
        """A Framework's status with its tasks, once it fits."""
        return self._until(f"/v1/Frameworks/{name}/AggregatedFrameworkStatus", fits)

    def job(self, name: str, fits: Callable[[Any], bool]) -> Any:
        """A v1 job once it fits."""
        return self._until(f"/api/v1/user/{self.user}/jobs/{name}", fits)

    def log(self, found: Any, role: str, index: int) -> str:
        """The log of a Framework's task."""
        answer = self.http.get(tasks(found, role)[index]["containerLogHttpAddress"])
        assert answer.status_code == 200, answer.text
        return answer.text

    def _until(self, path: str, fits: Callable[[Any], bool]) -> Any:
        begun = time.monotonic()
        while not fits(found := self.get(path)):
            assert time.monotonic() - begun < PATIENCE, json.dumps(found)
            time.sleep(pause(begun))
        return found


def tasks(found: Any, role: str) -> list[Any]:
    """The status lines of a role's tasks."""
    return list(found["aggregatedTaskRoleStatuses"][role]["taskStatuses"]["taskStatusArray"])


def completed(found: Any) -> bool:
    return bool(found["frameworkStatus"]["frameworkState"] == "FRAMEWORK_COMPLETED")


def running(role: str, count: int) -> Callable[[Any], bool]:
    """A check that a role has exactly `count` tasks, all running."""
    return lambda found: [each["taskState"] for each in tasks(found, role)] == ["CONTAINER_RUNNING"] * count


def role(entry: str, number: int = 1, *, asked: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    service = {
        "version": 7,
        "entryPoint": entry,
        "sourceLocations": ["/service.sh", "/tools.zip"],
        "resource": {"cpuNumber": 0, "memoryMB": 50, **(asked or {})},
    }
    return {"taskNumber": number, "taskService": service, **more}


def framework(version: int, roles: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": version, "taskRoles": roles, **more}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the default file system, with programs in it."""
    folder = tmp_path_factory.mktemp("fs")
    code = folder / "program"
    code.mkdir()
    (code / "train.sh").write_text('echo "on $PAI_DATA_DIR to $PAI_OUTPUT_DIR at $LEVEL by $PAI_USERNAME"\n')
    (folder / "service.sh").write_text(
        'echo "who $FRAMEWORK_NAME/$FRAMEWORK_VERSION $TASKROLE_NAME-$TASK_INDEX $SERVICE_NAME:$SERVICE_VERSION"\n'
        'echo "has ports=$CONTAINER_PORTS gpus=$CONTAINER_GPUS ip=$CONTAINER_IP"\n'
        'echo "is $CONTAINER_ID $APP_ID $LAUNCHER_ADDRESS $HDFS_FRAMEWORK_INFO_FILE"\n'
    )
    with zipfile.ZipFile(folder / "tools.zip", "w") as archive:
        archive.writestr("inner/word", "unpacked\n")
    return folder


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Yarn]:
    """A server whose default file system is a folder."""
    made = Platform(tmp_path_factory.mktemp("server"), env={"CORRAL_OPENPAI_FS_URI": f"file://{files}"})
    made.up()
    yield Yarn(made)
    made.clear()
    made.down()


def test_a_v1_job_runs_its_code_with_its_variables_and_ends_by_its_policy(yarn: Yarn, files: Path) -> None:
    job = {
        "jobName": "Train_1",
        "image": "an/image",
        "codeDir": "$PAI_DEFAULT_FS_URI/program",
        "dataDir": "/data/of/$PAI_USERNAME",
        "jobEnvs": {"LEVEL": "high"},
        "taskRoles": [
            {"name": "main.role", "command": "bash program/train.sh", "minSucceededTaskCount": 1, "memoryMB": 200},
            {"name": "rest", "command": "sleep 1000", "taskNumber": 2, "memoryMB": 200},
        ],
    }
    answer = yarn.asked("POST", f"/api/v1/user/{yarn.user}/jobs", job)
    assert answer.headers["location"] == f"{yarn.platform.url}/api/v1/user/{yarn.user}/jobs/Train_1"
    found = yarn.job("Train_1", lambda each: each["jobStatus"]["state"] not in ("WAITING", "RUNNING"))
    status = found["jobStatus"]
    assert (status["state"], status["subState"], status["appExitCode"]) == ("SUCCEEDED", "FRAMEWORK_COMPLETED", 0)
    assert set(found["taskRoles"]) == {"main.role", "rest"}
    name = yarn.platform.client.jobs(limit=1)["items"][0]["id"]
    printed = yarn.platform.log(name, "main-role-0")
    output = f"file://{files}/Output/{yarn.user}/Train_1"
    assert f"on /data/of/{yarn.user} to {output} at high by {yarn.user}" in printed
    yarn.asked("DELETE", f"/api/v1/user/{yarn.user}/jobs/Train_1")
    deadline = time.monotonic() + PATIENCE
    while yarn.http.get(f"/api/v1/user/{yarn.user}/jobs/Train_1").status_code != 404:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_retry_count_of_minus_two_runs_a_v1_job_again_after_it_succeeded(yarn: Yarn) -> None:
    roles = [{"name": "a", "command": '[ "$CORRAL_JOB_ATTEMPT" -lt 2 ] || sleep 1000', "memoryMB": 200}]
    job = {"jobName": "again", "image": "an/image", "retryCount": -2, "taskRoles": roles}
    yarn.asked("POST", f"/api/v1/user/{yarn.user}/jobs", job)
    yarn.job(
        "again",
        lambda found: found["jobStatus"]["retries"] == 2 and found["jobStatus"]["subState"] == "APPLICATION_RUNNING",
    )
    yarn.asked("PUT", f"/api/v1/user/{yarn.user}/jobs/again/executionType", {"value": "STOP"})
    found = yarn.job("again", lambda each: each["jobStatus"]["state"] not in ("WAITING", "RUNNING"))
    assert found["jobStatus"]["state"] == "STOPPED"


@pytest.mark.parametrize("gang", [True, False])
def test_a_framework_is_told_who_it_is_and_what_it_was_given(yarn: Yarn, files: Path, gang: bool) -> None:
    name = f"{yarn.user}~told.{gang}"
    ports = {"http": {"start": 0, "count": 2}, "rpc_port": {"start": 0, "count": 1}}
    asked = {"gpuNumber": 2, "gpuAttribute": 5, "portDefinitions": ports}
    roles = {"LRS_Master": role("bash service.sh; cat tools.zip/inner/word", asked=asked)}
    platform = {"gangAllocation": gang}
    yarn.asked("PUT", f"/v1/Frameworks/{name}", framework(3, roles, platformSpecificParameters=platform))
    found = yarn.status(name, completed)
    status = found["frameworkStatus"]
    assert (status["applicationExitCode"], status["applicationExitType"]) == (0, "SUCCEEDED")
    assert (status["frameworkVersion"], status["applicationProgress"]) == (3, 1.0)
    (task,) = tasks(found, "LRS_Master")
    assert (task["taskState"], task["containerGpus"], task["containerExitCode"]) == ("TASK_COMPLETED", 5, 0)
    assert re.fullmatch(r"http:\d+,\d+;rpc_port:\d+;", task["containerPorts"])
    printed = yarn.log(found, "LRS_Master", 0).splitlines()
    assert printed[-4:] == [
        f"who {name}/3 LRS_Master-0 LRS_Master:7",
        f"has ports={task['containerPorts']} gpus=5 ip=127.0.0.1",
        f"is {task['containerId']} {status['applicationId']} {yarn.platform.url} file://{files}/Launcher/{name}"
        "/FrameworkInfo.json",
        "unpacked",
    ]


def test_any_role_is_rescaled_while_it_runs_and_a_task_is_migrated(yarn: Yarn) -> None:
    name = f"{yarn.user}~service"
    yarn.asked("PUT", f"/v1/Frameworks/{name}", framework(1, {"A": role("sleep 1000"), "B": role("sleep 1000")}))
    yarn.status(name, running("B", 1))
    yarn.asked("PUT", f"/v1/Frameworks/{name}/TaskRoles/B/TaskNumber", {"taskNumber": 3})
    found = yarn.status(name, running("B", 3))
    before = tasks(found, "B")[1]
    yarn.asked("PUT", f"/v1/Frameworks/{name}/MigrateTasks/{before['containerId']}", {"antiAffinityLevel": "ANY"})
    found = yarn.status(
        name,
        lambda each: running("B", 3)(each) and tasks(each, "B")[1]["containerId"] != before["containerId"],
    )
    assert tasks(found, "B")[1]["taskRetryPolicyState"]["retriedCount"] == 0
    assert tasks(found, "A")[0]["containerId"].endswith(".0")
    asked = yarn.get(f"/v1/Frameworks/{name}/AggregatedFrameworkRequest")
    assert asked["migrateTaskRequests"] == {before["containerId"]: {"antiAffinityLevel": "ANY"}}
    gone = yarn.http.put(f"/v1/Frameworks/{name}/MigrateTasks/{before['containerId']}", json={})
    assert gone.status_code == 404
    yarn.asked("PUT", f"/v1/Frameworks/{name}/TaskRoles/B/TaskNumber", {"taskNumber": 1})
    yarn.status(name, running("B", 1))
    yarn.asked("PUT", f"/v1/Frameworks/{name}/ExecutionType", {"executionType": "STOP"})
    found = yarn.status(name, completed)
    assert found["frameworkStatus"]["applicationExitCode"] == -7351
    assert {each["containerExitCode"] for each in tasks(found, "A")} == {-7125}


def test_a_failure_ends_a_framework_by_its_policies_and_launcher_codes_say_whether_it_comes_again(yarn: Yarn) -> None:
    name = f"{yarn.user}~codes"
    fancy = {"fancyRetryPolicy": True, "maxRetryCount": 1}
    roles = {"A": role("exit 194", taskRetryPolicy=fancy)}
    yarn.asked("PUT", f"/v1/Frameworks/{name}", framework(1, roles))
    found = yarn.status(name, completed)
    assert (found["frameworkStatus"]["applicationExitCode"], tasks(found, "A")[0]["containerExitType"]) == (
        194, "NON_TRANSIENT",
    )  # fmt: skip
    assert tasks(found, "A")[0]["taskRetryPolicyState"]["retriedCount"] == 0
    first = found["frameworkStatus"]["applicationId"]
    yarn.asked("PUT", f"/v1/Frameworks/{name}", framework(2, {"A": role("exit 7", taskRetryPolicy=fancy)}))
    found = yarn.status(name, lambda each: completed(each) and each["frameworkStatus"]["frameworkVersion"] == 2)
    (task,) = tasks(found, "A")
    assert (task["containerExitCode"], task["containerExitType"]) == (7, "UNKNOWN")
    assert task["taskRetryPolicyState"]["unKnownRetriedCount"] == 1
    assert found["frameworkStatus"]["applicationId"] != first
    yarn.asked("DELETE", f"/v1/Frameworks/{name}")
    assert yarn.http.get(f"/v1/Frameworks/{name}").status_code == 404


def test_fixed_ports_are_the_tasks_ports(yarn: Yarn) -> None:
    name = f"{yarn.user}~fixed"
    ports = {"web": {"start": 31_500, "count": 2}}
    yarn.asked("PUT", f"/v1/Frameworks/{name}", framework(1, {"A": role("true", asked={"portDefinitions": ports})}))
    assert tasks(yarn.status(name, completed), "A")[0]["containerPorts"] == "web:31500,31501;"
