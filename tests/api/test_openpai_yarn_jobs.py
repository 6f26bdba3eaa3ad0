"""v1 jobs of OpenPAI's YARN releases, with or without a namespace, and answers that later releases dropped."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from corral.compat.openpai.language.v1 import OBSOLETE_WARNING, TOO_MANY_OF_A_ROLE
from corral.model.states import JobState
from tests.api.harness import Server, serving
from tests.api.openpai_caller import Pai, signed_in
from tests.api.openpai_jobs import Launcher, protocol, running

LINE = {
    "name", "username", "state", "subState", "executionType", "retries", "retryDetails", "createdTime",
    "completedTime", "appExitCode", "virtualCluster", "totalGpuNumber", "totalTaskNumber", "totalTaskRoleNumber",
}  # fmt: skip
STATUS = {
    "name", "username", "state", "subState", "executionType", "retries", "createdTime", "completedTime", "appId",
    "appProgress", "appTrackingUrl", "appLaunchedTime", "appCompletedTime", "appExitCode", "appExitDiagnostics",
    "appExitType", "virtualCluster",
}  # fmt: skip
TASK = {
    "taskIndex", "containerId", "containerIp", "containerPorts", "containerGpus", "containerLog", "containerExitCode",
}  # fmt: skip


def v1(name: str, **more: Any) -> dict[str, Any]:
    return {"jobName": name, "image": "an/image", "taskRoles": [{"name": "Main_1", "command": "true"}], **more}


@pytest.fixture(scope="module")
def ann(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ann")
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def ben(server: Server) -> Iterator[Pai]:
    caller = signed_in(server, "ben")
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def nobody(server: Server) -> Iterator[Pai]:
    caller = Pai(server.url)
    yield caller
    caller.close()


def submitted(caller: Pai, path: str, body: Any) -> Any:
    answer = caller.call("POST", path, json=body)
    assert answer.status_code == 202, answer.text
    return answer


@pytest.mark.parametrize("gateway", ["", "/rest-server"])
def test_a_job_is_submitted_into_a_namespace_and_found_where_location_says(ann: Pai, gateway: str) -> None:
    name = f"into{len(gateway)}_.a"
    answer = submitted(ann, f"{gateway}/api/v1/user/ann/jobs", v1(name))
    assert answer.json() == {"message": f"update job {name} successfully", "status": 202}
    assert answer.headers["location"].endswith(f"/api/v1/user/ann/jobs/{name}")
    found = ann.get(answer.headers["location"])
    assert (found["name"], found["jobStatus"]["username"], found["jobStatus"]["state"]) == (name, "ann", "WAITING")
    assert found == ann.get(f"{gateway}/api/v1/user/ann/jobs/{name}")
    assert set(found["jobStatus"]) >= STATUS


def test_a_job_of_a_namespace_is_found_by_its_whole_name_too(ann: Pai, ben: Pai) -> None:
    submitted(ann, "/api/v1/user/ann/jobs", v1("whole"))
    where = "/api/v1/jobs/ann~whole"
    assert ben.get(where) == ben.get("/api/v1/user/ann/jobs/whole")
    assert ben.get(f"{where}/config")["jobName"] == "whole"
    assert ben.refused("GET", f"{where}/ssh")[:2] == (404, "NoJobSshInfoError")
    assert ben.refused("PUT", f"{where}/executionType", json={"value": "STOP"})[:2] == (403, "ForbiddenUserError")
    assert ann.call("PUT", f"{where}/executionType", json={"value": "STOP"}).status_code == 202
    assert ben.refused("DELETE", where)[:2] == (403, "ForbiddenUserError")
    assert ann.call("DELETE", where).status_code == 202
    assert ben.refused("GET", "/api/v1/jobs/ben~whole")[:2] == (404, "NoJobError")


def test_a_job_without_a_namespace_is_alone_under_its_name_and_flagged(ann: Pai, ben: Pai) -> None:
    answer = submitted(ann, "/api/v1/jobs", v1("alone"))
    assert answer.headers["location"].endswith("/api/v1/jobs/alone")
    assert ben.get("/api/v1/jobs/alone")["jobStatus"]["username"] == "ann"
    assert ben.refused("POST", "/api/v1/jobs", json=v1("alone")) == (
        409, "ConflictJobError", "Job name alone already exists",
    )  # fmt: skip
    (line,) = [each for each in ann.get("/api/v1/jobs") if each["name"] == "alone"]
    assert line["legacy"] is True
    submitted(ben, "/api/v1/user/ben/jobs", v1("alone"))
    assert ben.get("/api/v1/jobs/alone")["jobStatus"]["username"] == "ann", "no later one takes its place"


def test_the_list_is_v1s_and_the_latest_comes_first(server: Server, ann: Pai, ben: Pai) -> None:
    submitted(ben, "/api/v1/user/ben/jobs", v1("older"))
    server.clock.advance(2)
    submitted(ben, "/api/v1/user/ben/jobs", v1("newer"))
    mine = ann.get("/api/v1/user/ben/jobs")
    assert [each["name"] for each in mine][:2] == ["newer", "older"]
    assert set(mine[0]) == LINE
    assert mine == ann.get("/api/v1/jobs?username=ben")
    assert (mine[0]["subState"], mine[0]["totalTaskNumber"]) == ("FRAMEWORK_WAITING", 1)
    assert {"ann", "ben"} <= {each["username"] for each in ann.get("/api/v1/jobs")}


def test_a_name_is_taken_once_in_a_namespace_whoever_comes_first(ann: Pai, ben: Pai) -> None:
    submitted(ben, "/api/v1/user/ben/jobs", v1("same"))
    submitted(ann, "/api/v1/user/ann/jobs", v1("same"))
    with ThreadPoolExecutor(8) as pool:
        codes = sorted(
            pool.map(lambda _: ann.call("POST", "/api/v1/user/ann/jobs", json=v1("race")).status_code, range(8))
        )
    assert codes == [202, *[409] * 7]
    assert ann.refused("PUT", "/api/v1/user/ann/jobs/same", json=v1("x"))[:2] == (409, "ConflictJobError")


def test_a_put_submits_under_the_name_of_its_address(ann: Pai) -> None:
    answer = ann.call("PUT", "/api/v1/user/ann/jobs/put-here", json=v1("other"))
    assert (answer.status_code, answer.json()["message"]) == (202, "update job put-here successfully")
    assert answer.headers["location"].endswith("/api/v1/user/ann/jobs/put-here")
    assert ann.get("/api/v1/user/ann/jobs/put-here")["name"] == "put-here"


def test_a_job_of_protocol_v2_is_taken_by_the_same_routes(ann: Pai) -> None:
    answer = ann.call("POST", "/api/v1/user/ann/jobs", content=protocol("v2_job").encode())
    assert (answer.status_code, answer.headers["location"].rpartition("/")[2]) == (202, "v2_job")
    found = ann.get("/api/v1/user/ann/jobs/v2_job/config")
    assert (found["protocolVersion"], found["name"]) == (2, "v2_job")
    broken = protocol("v2_job").replace("type: job", "type: song")
    assert ann.refused("POST", "/api/v1/user/ann/jobs", content=broken.encode())[:2] == (400, "InvalidProtocolError")


def test_anothers_namespace_is_closed_but_to_administrators(server: Server, ann: Pai, ben: Pai) -> None:
    assert ann.refused("POST", "/api/v1/user/ben/jobs", json=v1("intruder"))[:2] == (403, "ForbiddenUserError")
    boss = signed_in(server, "boss", role="admin")
    submitted(boss, "/api/v1/user/ben/jobs", v1("for-ben"))
    assert ben.get("/api/v1/user/ben/jobs/for-ben")["jobStatus"]["username"] == "ben"
    boss.close()


@pytest.mark.parametrize(
    "body",
    [
        {"image": "x", "taskRoles": []},
        v1("a/b"),
        v1("ok", retryCount=-3),
        v1("ok", taskRoles=[{"name": "a", "command": "b", "memoryMB": "much"}]),
        v1("ok", surplus=1),
        [],
    ],
)
def test_what_v1_does_not_allow_is_invalid_parameters(ann: Pai, body: Any) -> None:
    assert ann.refused("POST", "/api/v1/user/ann/jobs", json=body)[:2] == (400, "InvalidParametersError")


def test_counts_above_the_number_of_tasks_are_refused_in_openpais_words(ann: Pai) -> None:
    roles = [{"name": "a", "command": "b", "taskNumber": 1, "minSucceededTaskCount": 2}]
    said = ann.refused("POST", "/api/v1/user/ann/jobs", json=v1("counts", taskRoles=roles))
    assert said == (400, "InvalidParametersError", TOO_MANY_OF_A_ROLE)


def test_the_obsolete_field_is_answered_with_a_warning(ann: Pai) -> None:
    answer = submitted(ann, "/api/v1/user/ann/jobs", v1("warned", killAllOnCompletedTaskNumber=1))
    assert answer.headers["x-warning"] == OBSOLETE_WARNING
    assert "x-warning" not in submitted(ann, "/api/v1/user/ann/jobs", v1("unwarned")).headers


def test_the_configuration_is_the_v1_job_as_json_or_as_yaml(ann: Pai) -> None:
    submitted(ann, "/api/v1/user/ann/jobs", v1("config", retryCount=-2, jobEnvs={"A": "b"}))
    found = ann.get("/api/v1/user/ann/jobs/config/config")
    assert (found["jobName"], found["retryCount"], found["jobEnvs"]) == ("config", -2, {"A": "b"})
    assert found["taskRoles"][0]["memoryMB"] == 100
    answer = ann.call("GET", "/api/v1/jobs/config/config", headers={"Accept": "text/yaml"})
    assert yaml.safe_load(answer.text) == found


def test_a_job_that_is_not_there_is_not_found_in_openpais_words(ann: Pai) -> None:
    for path in ("", "/config", "/ssh"):
        said = ann.refused("GET", f"/api/v1/user/ann/jobs/nowhere{path}")
        assert said == (404, "NoJobError", "Job nowhere is not found.")
    assert ann.refused("DELETE", "/api/v1/jobs/nowhere")[:2] == (404, "NoJobError")
    assert ann.refused("PUT", "/api/v1/jobs/nowhere/executionType", json={"value": "STOP"})[:2] == (404, "NoJobError")


def test_only_owners_stop_and_remove_jobs(ann: Pai, ben: Pai) -> None:
    submitted(ann, "/api/v1/user/ann/jobs", v1("mine"))
    assert ben.refused("DELETE", "/api/v1/user/ann/jobs/mine") == (
        403, "ForbiddenUserError", "User ben is not allowed to remove job mine.",
    )  # fmt: skip
    assert ben.refused("PUT", "/api/v1/user/ann/jobs/mine/executionType", json={"value": "STOP"}) == (
        403, "ForbiddenUserError", "User ben is not allowed to execute job mine.",
    )  # fmt: skip
    bad = ann.refused("PUT", "/api/v1/user/ann/jobs/mine/executionType", json={"value": "PAUSE"})
    assert bad[:2] == (400, "InvalidParametersError")


def test_stopping_and_removing_are_accepted_and_asked_of_control(server: Server, ann: Pai) -> None:
    submitted(ann, "/api/v1/user/ann/jobs", v1("going"))
    job = server.call(server.openpai.jobs.find("ann", "going")).id
    answer = ann.call("PUT", "/api/v1/user/ann/jobs/going/executionType", json={"value": "STOP"})
    assert (answer.status_code, answer.json()) == (202, {"message": "execute job going successfully", "status": 202})
    answer = ann.call("DELETE", "/api/v1/user/ann/jobs/going")
    assert (answer.status_code, answer.json()) == (202, {"message": "deleted job going successfully", "status": 202})
    kinds = [each.kind for each in server.call(server.store.intents(0, 1000)) if each.job == job]
    assert "job.stop-requested" in kinds


def test_tasks_are_told_with_their_ports_and_reached_by_ssh(server: Server, ann: Pai) -> None:
    submitted(ann, "/api/v1/user/ann/jobs", v1("tasks"))
    assert ann.refused("GET", "/api/v1/user/ann/jobs/tasks/ssh") == (
        404, "NoJobSshInfoError", "SSH info of job tasks is not found.",
    )  # fmt: skip
    launcher = Launcher(server)
    task = running("main-1", 0, server.clock.now())
    assert task.placement is not None
    task = msgspec.structs.replace(task, placement=msgspec.structs.replace(task.placement, devices=(0, 2)))
    launcher.write("ann", "tasks", {("main-1", 0): task}, state=JobState.RUNNING, started_at=server.clock.now())
    found = ann.get("/api/v1/user/ann/jobs/tasks")
    assert (found["jobStatus"]["state"], found["jobStatus"]["subState"]) == ("RUNNING", "APPLICATION_RUNNING")
    (told,) = found["taskRoles"]["Main_1"]["taskStatuses"]
    assert set(told) >= TASK
    assert (told["containerPorts"]["http"], told["containerGpus"]) == ("15002,15003", 5)
    reached = ann.get("/api/v1/jobs/tasks/ssh")
    assert [(each["sshIp"], each["sshPort"]) for each in reached["containers"]] == [(told["containerIp"], "15001")]
    assert set(reached["keyPair"]) == {
        "folderPath", "publicKeyFileName", "privateKeyFileName", "privateKeyDirectDownloadLink",
    }  # fmt: skip


def test_owners_fetch_the_key_that_opens_the_tasks_of_a_job_with_ssh(server: Server, ann: Pai, ben: Pai) -> None:
    plugin = {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": {"jobssh": True}}]}
    submitted(ann, "/api/v1/user/ann/jobs", v1("keyed", extras=plugin))
    task = running("main-1", 0, server.clock.now())
    Launcher(server).write("ann", "keyed", {("main-1", 0): task}, state=JobState.RUNNING)
    pair = ann.get("/api/v1/user/ann/jobs/keyed/ssh")["keyPair"]
    link = pair["privateKeyDirectDownloadLink"].removeprefix(server.url)
    assert link == "/api/v1/user/ann/jobs/keyed/ssh/keyFiles/ann~keyed"
    assert ann.call("GET", link).text.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert ann.call("GET", f"{link}.pub").text.startswith("ssh-ed25519 ")
    assert ben.refused("GET", link)[:2] == (403, "ForbiddenUserError")
    assert ann.refused("GET", f"{link}x")[:2] == (404, "NoJobSshInfoError")
    assert ann.refused("GET", link.replace("keyed", "tasks"))[:2] == (404, "NoJobSshInfoError")


READS = ["/jobs", "/user/ann/jobs", "/jobs/open", "/user/ann/jobs/open", "/user/ann/jobs/open/config"]


@pytest.fixture
def anonymous(server: Server) -> Iterator[None]:
    """The site allows anonymous access."""
    server.app.state.openpai_anonymous_reads = True
    yield
    server.app.state.openpai_anonymous_reads = False


@pytest.mark.parametrize("path", READS)
def test_reads_need_a_token(nobody: Pai, path: str) -> None:
    assert nobody.refused("GET", f"/api/v1{path}")[:2] == (401, "UnauthorizedUserError")


def test_anybody_reads_where_the_site_says_so_and_nobody_submits(ann: Pai, nobody: Pai, anonymous: None) -> None:
    submitted(ann, "/api/v1/user/ann/jobs", v1("open"))
    for path in READS:
        assert nobody.get(f"/api/v1{path}")
    assert nobody.refused("POST", "/api/v1/jobs", json=v1("guest"))[:2] == (401, "UnauthorizedUserError")


def test_what_opens_a_registry_is_read_from_the_default_file_system_alone(tmp_path: Path) -> None:
    home = tmp_path / "fs"
    home.mkdir()
    (home / "auth").write_text("registry.test\nme\ns3cret\n")
    (home / "short").write_text("registry.test\n")
    (tmp_path / "outside").write_text("a\nb\nc\n")

    with serving(tmp_path / "front", openpai_fs_uri=f"file://{home}") as server:
        ann = signed_in(server, "ann")
        submitted(ann, "/api/v1/user/ann/jobs", v1("private", authFile="$PAI_DEFAULT_FS_URI/auth"))
        record = server.call(server.openpai.jobs.find("ann", "private"))
        assert "s3cret" not in record.doc
        for name, place in (
            ("short", "/short"),
            ("missing", "/missing"),
            ("outside", f"file://{tmp_path}/outside"),
            ("above", "$PAI_DEFAULT_FS_URI/../outside"),
        ):
            said = ann.refused("POST", "/api/v1/user/ann/jobs", json=v1(name, authFile=place))
            assert said[:2] == (400, "InvalidParametersError")
        ann.close()
