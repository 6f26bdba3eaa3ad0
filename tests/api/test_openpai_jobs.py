"""OpenPAI's job fields and error codes stay unchanged, because scripts depend on them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import yaml

from corral.model.accounts import Group
from corral.model.exits import classify
from corral.model.facts import Fact
from corral.model.outcome import Trigger
from corral.model.runs import Retries, TaskRun
from corral.model.states import JobState, TaskState
from tests.api.harness import START, Server
from tests.api.openpai_jobs import Caller, Launcher, calling, history, over, protocol, refused, running

ROLE = "task-role"
SUMMARY = {
    "debugId", "name", "username", "state", "subState", "executionType", "tags", "retries", "retryDetails",
    "retryDelayTime", "submissionTime", "createdTime", "launchedTime", "completedTime", "appExitCode", "virtualCluster",
    "totalGpuNumber", "totalTaskNumber", "totalTaskRoleNumber", "jobPriority",
}  # fmt: skip
STATUS = {
    "username", "state", "subState", "executionType", "retries", "retryDetails", "retryDelayTime", "submissionTime",
    "createdTime", "launchedTime", "completedTime", "attemptId", "attemptState", "appId", "appProgress",
    "appTrackingUrl", "appCreatedTime", "appLaunchedTime", "appCompletedTime", "appExitCode", "appExitSpec",
    "appExitDiagnostics", "appExitMessages", "appExitTriggerMessage", "appExitTriggerTaskRoleName",
    "appExitTriggerTaskIndex", "appExitType", "virtualCluster",
}  # fmt: skip
TASK = {
    "taskIndex", "taskUid", "taskState", "containerId", "containerIp", "containerNodeName", "containerPorts",
    "containerGpus", "containerLog", "containerExitCode", "containerExitSpec", "containerExitDiagnostics", "retries",
    "accountableRetries", "createdTime", "launchedTime", "completedTime", "attemptId", "attemptState",
    "currentAttemptCreatedTime", "currentAttemptLaunchedTime", "currentAttemptCompletedTime", "hived",
}  # fmt: skip


@pytest.fixture
def ann(server: Server) -> Iterator[Caller]:
    with calling(server, "ann") as caller:
        yield caller


@pytest.fixture(scope="module")
def launcher(server: Server) -> Launcher:
    return Launcher(server)


def test_a_submitted_job_is_accepted_and_found_under_the_name_that_it_came_with(ann: Caller) -> None:
    answer = ann.submit(protocol("My_First_Job"))
    assert (answer.status_code, answer.json()) == (
        202,
        {"message": "update job My_First_Job successfully", "status": 202},
    )
    found = ann.get("/api/v2/jobs/ann~My_First_Job")
    assert found["name"] == "My_First_Job"
    assert found["debugId"] == hashlib.md5(b"ann~My_First_Job").hexdigest()
    assert ann.get("/rest-server/api/v2/jobs/ann~My_First_Job") == found


def test_corrals_own_api_finds_a_job_under_that_name_too(server: Server, ann: Caller) -> None:
    ann.submit(protocol("Known_to_both"))
    with server.client("ann") as client:
        found = client.job("Known_to_both")
        assert found["id"] == client.job("ann~Known_to_both")["id"] == client.job(found["name"])["id"]


def test_a_name_of_255_characters_is_taken_and_one_of_256_is_not(ann: Caller) -> None:
    longest = "N" * 255
    assert ann.submit(protocol(longest)).status_code == 202
    assert ann.get(f"/api/v2/jobs/ann~{longest}")["name"] == longest
    refused(ann.submit(protocol("N" * 256)), 400, "InvalidProtocolError")


def test_names_that_differ_only_in_capitals_are_two_jobs(ann: Caller) -> None:
    assert ann.submit(protocol("Case_x")).status_code == 202
    assert ann.submit(protocol("case-x")).status_code == 202
    assert ann.get("/api/v2/jobs/ann~Case_x")["name"] == "Case_x"
    assert ann.get("/api/v2/jobs/ann~case-x")["name"] == "case-x"


def test_the_fields_of_a_line_and_of_a_detail_are_openpais(ann: Caller) -> None:
    ann.submit(protocol("fields", instances=2, gpu=1, extras="{hivedScheduler: {jobPriorityClass: prod}}"))
    line = next(each for each in ann.get("/api/v2/jobs") if each["name"] == "fields")
    assert set(line) == SUMMARY
    assert line["state"] == "WAITING" and line["subState"] == "AttemptCreationPending"
    assert line["executionType"] == "START" and line["virtualCluster"] == "default"
    assert (line["totalTaskNumber"], line["totalGpuNumber"], line["totalTaskRoleNumber"]) == (2, 2, 1)
    assert line["submissionTime"] == line["createdTime"] == round(START * 1000)
    assert line["jobPriority"] == "prod"
    assert line["retryDetails"] == {"user": 0, "platform": 0, "resource": 0}
    assert line["launchedTime"] is line["completedTime"] is line["appExitCode"] is line["retryDelayTime"] is None
    detail = ann.get("/api/v2/jobs/ann~fields")
    assert set(detail) == {"debugId", "name", "tags", "jobPriority", "jobStatus", "taskRoles"}
    assert set(detail["jobStatus"]) == STATUS
    role = detail["taskRoles"]["Task_Role"]
    assert role["taskRoleStatus"] == {"name": "Task_Role"}
    assert [task["taskIndex"] for task in role["taskStatuses"]] == [0, 1]
    assert set(role["taskStatuses"][0]) == TASK
    assert role["taskStatuses"][0]["taskState"] == "WAITING"


def test_a_configuration_is_json_under_the_name_of_yaml(ann: Caller) -> None:
    assert ann.submit(protocol("As_json")).status_code == 202
    answer = ann.http.get("/api/v2/jobs/ann~As_json/config")
    assert answer.headers["content-type"] == "text/yaml; charset=utf-8"
    assert answer.json()["name"] == "As_json" and answer.json()["taskRoles"]["Task_Role"]["instances"] == 1


def test_a_job_is_steered_by_forms_too(ann: Caller) -> None:
    assert ann.submit(protocol("By_form")).status_code == 202
    where = "/api/v2/jobs/ann~By_form"
    assert ann.http.put(f"{where}/tag", data={"value": "from a form"}).status_code == 200
    assert "from a form" in ann.get(where)["tags"]
    assert ann.http.put(f"{where}/executionType", data={"value": "STOP"}).status_code == 202
    refused(ann.http.put(f"{where}/executionType", data={"other": "STOP"}), 400, "InvalidParametersError")


def test_a_name_that_is_taken_is_a_conflict_even_when_its_job_is_over(
    server: Server, ann: Caller, launcher: Launcher
) -> None:
    assert ann.submit(protocol("Once")).status_code == 202
    refused(ann.submit(protocol("Once")), 409, "ConflictJobError", "Job name ann~Once already exists.")
    ended = classify(0)
    launcher.write("ann", "Once", {}, state=JobState.COMPLETED, completion=ended, ended_at=START + 5)
    refused(ann.submit(protocol("Once")), 409, "ConflictJobError", "Job name ann~Once already exists.")
    with calling(server, "bert") as other:
        assert other.submit(protocol("Once")).status_code == 202


def test_of_concurrent_submissions_of_one_name_exactly_one_is_accepted(ann: Caller) -> None:
    text = protocol("Raced")
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: ann.submit(text), range(24)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 23
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"ConflictJobError"}
    assert len([line for line in ann.get("/api/v2/jobs", keyword="Raced") if line["name"] == "Raced"]) == 1


def test_a_broken_protocol_is_refused_by_its_name(ann: Caller) -> None:
    refused(ann.submit("- just\n- a list\n"), 400, "InvalidProtocolError")
    refused(ann.submit("name: [unclosed"), 400, "InvalidProtocolError")
    refused(ann.submit(protocol("x").replace("dockerImage: image", "dockerImage: none")), 400, "InvalidProtocolError")
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    refused(ann.submit(bomb), 400, "InvalidProtocolError")
    text = protocol("x").replace("name: x", "name: 'not a name!'")
    refused(ann.submit(text), 400, "InvalidProtocolError")


def test_a_virtual_cluster_that_is_not_there_is_named(ann: Caller) -> None:
    text = protocol("nowhere", more="defaults: {virtualCluster: moon}\n")
    refused(ann.submit(text), 400, "NoVirtualClusterError", "Virtual cluster moon is not found.")


def test_a_virtual_cluster_that_is_not_granted_is_forbidden(server: Server, ann: Caller) -> None:
    server.call(server.store.put_group(Group("owners", queues=("default",))))
    try:
        text = protocol("not-mine")
        words = "User ann is not allowed to do operation in default"
        refused(ann.submit(text), 403, "ForbiddenUserError", words)
    finally:
        server.call(server.store.remove_group("owners"))


def test_a_storage_that_is_not_there_is_named(ann: Caller) -> None:
    text = protocol("stored", extras="{storages: [{name: nowhere}]}")
    refused(ann.submit(text), 404, "NoStorageError", "Storage nowhere is not found.")


def test_more_than_there_is_may_be_asked_for(ann: Caller) -> None:
    assert ann.submit(protocol("huge", instances=1000, gpu=8)).status_code == 202


def test_a_job_that_is_not_there_is_named_by_every_operation(ann: Caller) -> None:
    words = "Job ann~Nothing is not found."
    base = "/api/v2/jobs/ann~Nothing"
    for path in ("", "/config", "/ssh", "/events", "/attempts/0", "/job-attempts", "/job-attempts/0"):
        refused(ann.http.get(base + path), 404, "NoJobError", words)
    refused(ann.put(f"{base}/executionType", "STOP"), 404, "NoJobError", words)
    refused(ann.put(f"{base}/tag", "x"), 404, "NoJobError", words)
    refused(ann.http.request("DELETE", f"{base}/tag", json={"value": "x"}), 404, "NoJobError", words)
    refused(ann.http.get("/api/v2/jobs/without-owner"), 404, "NoJobError", "Job without-owner is not found.")


def test_nothing_of_jobs_is_shown_without_a_token(server: Server, ann: Caller) -> None:
    ann.submit(protocol("Hidden"))
    with calling(server, "ann") as nobody:
        nobody.http.headers.pop("Authorization")
        words = "Guest is not allowed to do this operation."
        for path in ("/api/v2/jobs", "/api/v2/jobs/ann~Hidden", "/api/v2/jobs/ann~Hidden/config"):
            refused(nobody.http.get(path), 401, "UnauthorizedUserError", words)
        refused(nobody.submit(protocol("x")), 401, "UnauthorizedUserError", words)
        nobody.http.headers["Authorization"] = "Bearer nonsense"
        refused(nobody.http.get("/api/v2/jobs"), 401, "UnauthorizedUserError", "Your token is invalid.")


def test_the_config_is_the_protocol_with_its_secrets_masked(ann: Caller, server: Server) -> None:
    text = protocol("Secretive", more="secrets: {password: hunter2hunter2}\n")
    assert ann.submit(text).status_code == 202
    answer = ann.http.get("/api/v2/jobs/ann~Secretive/config")
    assert answer.headers["content-type"].startswith("text/yaml")
    assert "hunter2hunter2" not in answer.text
    config = yaml.safe_load(answer.text)
    assert config["secrets"] == "******"
    assert config["name"] == "Secretive" and config["taskRoles"]["Task_Role"]["commands"] == ["echo hello"]
    stored = server.call(server.openpai.jobs.find("ann", "Secretive"))
    assert "hunter2hunter2" not in stored.doc


@pytest.mark.parametrize("name", ["1e5", "0o17", "007", "null", "yes", "12"])
def test_a_config_can_be_submitted_as_it_came(ann: Caller, name: str) -> None:
    assert ann.submit(protocol(f"'{name}'")).status_code == 202
    config = ann.http.get(f"/api/v2/jobs/ann~{name}/config").text
    refused(ann.submit(config), 409, "ConflictJobError")
    assert yaml.safe_load(config)["name"] == name


def test_a_job_in_another_language_is_listed_and_has_no_config(server: Server, ann: Caller) -> None:
    with server.client("ann") as client:
        client.submit('{"name": "plain", "framework": "shell", "roles": {"worker": {"command": "true"}}}')
    assert any(line["name"] == "plain" for line in ann.get("/api/v2/jobs"))
    assert list(ann.get("/api/v2/jobs/ann~plain")["taskRoles"]) == ["worker"]
    words = "Config of job ann~plain is not found."
    refused(ann.http.get("/api/v2/jobs/ann~plain/config"), 404, "NoJobConfigError", words)
    refused(ann.submit(protocol("plain")), 409, "ConflictJobError")


def test_ssh_information_is_never_there(ann: Caller) -> None:
    ann.submit(protocol("Reached"))
    words = "SSH info of job ann~Reached is not found."
    refused(ann.http.get("/api/v2/jobs/ann~Reached/ssh"), 404, "NoJobSshInfoError", words)


def test_a_running_and_an_ended_job_are_told_with_tasks_and_exit_specs(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Told", instances=2, gpu=1))
    tasks = {(ROLE, index): running(ROLE, index, START) for index in (0, 1)}
    launcher.write("ann", "Told", tasks, state=JobState.RUNNING, started_at=START + 1)
    detail = ann.get("/api/v2/jobs/ann~Told")
    assert (detail["jobStatus"]["state"], detail["jobStatus"]["subState"]) == ("RUNNING", "AttemptRunning")
    assert detail["jobStatus"]["launchedTime"] == round((START + 1) * 1000)
    task = detail["taskRoles"]["Task_Role"]["taskStatuses"][1]
    assert (task["taskState"], task["containerIp"], task["containerNodeName"]) == ("RUNNING", "10.0.0.1", "n1")
    assert task["containerPorts"] == {"ssh": "15001", "http": "15002,15003"}
    assert task["containerGpus"] == "1"
    where = "/api/v2/jobs/ann~Told/attempts/0/taskRoles/Task_Role/taskIndex/1/attempts/0/logs"
    assert task["containerLog"] == where

    failed = classify(139, "it went wrong")
    ends = {key: over(each, failed, START + 9) for key, each in tasks.items()}
    why = Trigger("1 task failed, and minFailed is 1", ROLE, 1)
    completion = msgspec.structs.replace(failed, trigger=why)
    launcher.write("ann", "Told", ends, state=JobState.COMPLETED, completion=completion, ended_at=START + 9)
    status = ann.get("/api/v2/jobs/ann~Told")["jobStatus"]
    assert (status["state"], status["subState"], status["attemptState"]) == ("FAILED", "Completed", "FAILED")
    assert status["completedTime"] == status["appCompletedTime"] == round((START + 9) * 1000)
    assert status["appExitCode"] == 139 and status["appExitType"] == "Failed"
    assert status["appExitSpec"] == {
        "code": 139,
        "phrase": "ContainerSigSegvReceived",
        "issuer": "USER_CONTAINER",
        "causer": "UNKNOWN",
        "type": "UNKNOWN_FAILURE",
        "stage": "RUNNING",
        "behavior": "UNKNOWN",
        "reaction": "RETRY_TO_MAX",
        "reason": "The program reached for memory that is not its own",
        "repro": ["Read through a null pointer"],
        "solution": ["Read the end of the task's log", "Correct the program and submit the job anew"],
    }
    assert status["appExitMessages"] == {"container": "it went wrong", "runtime": None, "launcher": None}
    assert status["appExitTriggerMessage"] == "1 task failed, and minFailed is 1"
    assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == ("Task_Role", 1)


@pytest.mark.parametrize(
    ("state", "code", "word", "sub_state"),
    [
        (JobState.CREATION_PENDING, None, "WAITING", "AttemptCreationPending"),
        (JobState.CREATION_REQUESTED, None, "WAITING", "AttemptCreationRequested"),
        (JobState.PREPARING, None, "WAITING", "AttemptPreparing"),
        (JobState.RUNNING, None, "RUNNING", "AttemptRunning"),
        (JobState.DELETION_PENDING, -210, "STOPPING", "AttemptDeletionPending"),
        (JobState.DELETION_PENDING, 1, "RUNNING", "AttemptDeletionPending"),
        (JobState.DELETION_PENDING, -220, "STOPPING", "AttemptDeletionPending"),
        (JobState.DELETING, 1, "RUNNING", "AttemptDeleting"),
        (JobState.ATTEMPT_COMPLETED, 1, "RUNNING", "AttemptCompleted"),
        (JobState.COMPLETED, 0, "SUCCEEDED", "Completed"),
        (JobState.COMPLETED, -210, "STOPPED", "Completed"),
        (JobState.COMPLETED, 7, "FAILED", "Completed"),
    ],
)
def test_states_are_told_as_openpai_tells_them_in_list_filter_and_detail(
    ann: Caller, launcher: Launcher, state: JobState, code: int | None, word: str, sub_state: str
) -> None:
    name = f"state-{state}-{code if code is not None else 'none'}".replace("--", "-minus-")
    ann.submit(protocol(name))
    completion = None if code is None else classify(code)
    ended = START + 7 if state in (JobState.ATTEMPT_COMPLETED, JobState.COMPLETED) else None
    launcher.write("ann", name, {}, state=state, completion=completion, ended_at=ended)
    status = ann.get(f"/api/v2/jobs/ann~{name}")["jobStatus"]
    assert (status["state"], status["subState"]) == (word, sub_state)
    found = [line for line in ann.get("/api/v2/jobs", state=word) if line["name"] == name]
    assert [(line["state"], line["subState"]) for line in found] == [(word, sub_state)]
    others = ",".join({"WAITING", "RUNNING", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED"} - {word})
    assert all(line["name"] != name for line in ann.get("/api/v2/jobs", state=others))


def test_a_job_between_two_attempts_tells_how_long_it_waits(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Backing-off"))
    launcher.write(
        "ann",
        "Backing-off",
        {},
        state=JobState.ATTEMPT_COMPLETED,
        completion=classify(251),
        ended_at=START + 10,
        wake_at=START + 130,
        retries=Retries(3, 1),
    )
    line = next(each for each in ann.get("/api/v2/jobs") if each["name"] == "Backing-off")
    assert line["retryDelayTime"] == 120
    assert (line["retries"], line["retryDetails"]) == (3, {"user": 1, "platform": 2, "resource": 0})
    assert line["completedTime"] is None


def test_a_job_is_stopped_and_started_by_its_owner_and_administrators_only(server: Server, ann: Caller) -> None:
    ann.submit(protocol("Steered"))
    where = "/api/v2/jobs/ann~Steered/executionType"
    with calling(server, "bert") as other:
        words = "User bert is not allowed to execute job ann~Steered."
        refused(other.put(where, "STOP"), 403, "ForbiddenUserError", words)
        refused(other.put(where, "START"), 403, "ForbiddenUserError", words)
    for bad in ("PAUSE", "", 3, None):
        refused(ann.put(where, bad), 400, "InvalidParametersError")
    answer = ann.put(where, "STOP")
    assert (answer.status_code, answer.json()) == (202, {"message": "execute job Steered successfully", "status": 202})
    with calling(server, "root") as administrator:
        assert administrator.put(where, "STOP").status_code == 202
    assert ann.put(where, "START").status_code == 202
    kinds = [event["reason"] for event in ann.get("/api/v2/jobs/ann~Steered/events")["data"]]
    assert kinds.count("JobStopRequested") == 2


def test_a_job_that_is_over_is_started_anew_and_stopping_it_changes_nothing(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Done"))
    launcher.write("ann", "Done", {}, state=JobState.COMPLETED, completion=classify(0), ended_at=START + 5)
    where = "/api/v2/jobs/ann~Done"
    assert ann.put(f"{where}/executionType", "STOP").status_code == 202
    assert ann.put(f"{where}/executionType", "START").status_code == 202
    reasons = [event["reason"] for event in ann.get(f"{where}/events")["data"]]
    assert reasons == ["JobRestartRequested", "JobSubmitted"]


def test_tags_are_given_shown_filtered_and_taken(server: Server, ann: Caller) -> None:
    for name in ("Tagged-a", "Tagged-b", "Tagged-c"):
        ann.submit(protocol(name))
    where = "/api/v2/jobs/ann~Tagged-a/tag"
    answer = ann.put(where, "night shift")
    assert answer.status_code == 200
    assert answer.json() == {"message": "Add tag night shift for job ann~Tagged-a successfully."}
    assert ann.put(where, "night shift").status_code == 200
    ann.put("/api/v2/jobs/ann~Tagged-b/tag", "day")
    assert ann.get("/api/v2/jobs/ann~Tagged-a")["tags"] == ["night shift"]

    def names(**query: str) -> list[str]:
        return [line["name"] for line in ann.get("/api/v2/jobs", keyword="Tagged-", **query)]

    assert sorted(names(tagsContain="night shift,day")) == ["Tagged-a", "Tagged-b"]
    assert sorted(names(tagsNotContain="day")) == ["Tagged-a", "Tagged-c"]
    assert names(tagsContain="day", tagsNotContain="night shift") == ["Tagged-b"]
    with calling(server, "bert") as other:
        words = "User bert is not allowed to {} job ann~Tagged-a."
        refused(other.put(where, "x"), 403, "ForbiddenUserError", words.format("add tag to"))
        taken = other.http.request("DELETE", where, json={"value": "night shift"})
        refused(taken, 403, "ForbiddenUserError", words.format("delete tag from"))
    for bad in ("a,b", "", 7, "openpai:legacy", "openpai:x"):
        refused(ann.put(where, bad), 400, "InvalidParametersError")
    legacy = ann.http.request("DELETE", where, json={"value": "openpai:legacy"})
    refused(legacy, 400, "InvalidParametersError")
    deleted = ann.http.request("DELETE", where, json={"value": "night shift"})
    assert deleted.json() == {"message": "Delete tag night shift from job ann~Tagged-a successfully."}
    again = ann.http.request("DELETE", where, json={"value": "night shift"})
    refused(again, 404, "NoTagError", "Tag night shift is not found for job ann~Tagged-a .")
    assert ann.get("/api/v2/jobs/ann~Tagged-a")["tags"] == []


def test_retries_after_the_job_made_room_are_the_platforms(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Made_room"))
    launcher.write("ann", "Made_room", {}, attempt=3, retries=Retries(1, 1), yield_retries=2)
    (line,) = ann.get("/api/v2/jobs", keyword="Made_room")
    for told in (line, ann.get("/api/v2/jobs/ann~Made_room")["jobStatus"]):
        assert told["retries"] == 3
        assert told["retryDetails"] == {"user": 1, "platform": 2, "resource": 0}
    most = ann.get("/api/v2/jobs", order="retries,DESC", limit="1")
    assert most[0]["retries"] >= 3


def test_attempts_of_a_job_and_of_its_tasks_are_told_from_what_is_kept(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Tried"))
    record = launcher.record("ann", "Tried")
    first = over(running(ROLE, 0, START), classify(137, "killed"), START + 5)
    second = over(running(ROLE, 0, START, attempt=1), classify(1, "again"), START + 8)
    failed = classify(1, "again")
    ending = Fact("job.ending", "it ends", data={"code": 1, "attempt": 0, "completion": failed})
    queued = Fact("job.queued", "it waits", data={"attempt": 1})
    now = {(ROLE, 0): running(ROLE, 0, START + 20)}
    launcher.write(
        "ann",
        "Tried",
        now,
        attempts=(
            history(record.id, first),
            history(record.id, second),
            history(record.id, now[ROLE, 0], job_attempt=1),
        ),
        facts=(ending, queued),
        state=JobState.RUNNING,
        attempt=1,
        started_at=START + 21,
        retries=Retries(1, 1),
    )
    where = "/api/v2/jobs/ann~Tried"
    assert ann.get(where)["jobStatus"]["attemptId"] == 1
    past = ann.get(f"{where}/attempts/0")
    assert past["jobStatus"]["state"] == "RUNNING"
    assert (past["jobStatus"]["attemptId"], past["jobStatus"]["attemptState"]) == (0, "FAILED")
    assert past["jobStatus"]["appExitCode"] == 255
    assert past["jobStatus"]["appCompletedTime"] == round((START + 8) * 1000)
    line = past["taskRoles"]["Task_Role"]["taskStatuses"][0]
    assert set(line) == TASK
    assert (line["taskState"], line["containerExitCode"], line["retries"]) == ("FAILED", 255, 1)
    for bad in ("2", "-1", "x"):
        refused(ann.http.get(f"{where}/attempts/{bad}"), 404, "NoJobError")

    task = ann.get(f"{where}/attempts/0/taskRoles/Task_Role/taskIndex/0/attempts")
    latest_first = [(run["attemptId"], run["containerExitCode"]) for run in task["attempts"]]
    assert latest_first == [(1, 255), (0, 137)], "as OpenPAI has them"
    assert (task["username"], task["jobName"], task["jobAttemptId"]) == ("ann", "Tried", 0)
    assert task["createdTime"] < task["completedTime"] == round((START + 8) * 1000)
    assert task["attempts"][1]["containerExitSpec"]["phrase"] == "ContainerSigKillReceived"
    current = ann.get(f"{where}/attempts/1/taskRoles/Task_Role/taskIndex/0/attempts")
    assert [run["attemptState"] for run in current["attempts"]] == ["RUNNING"]
    for bad in (
        "0/taskRoles/none/taskIndex/0",
        "0/taskRoles/Task_Role/taskIndex/5",
        "9/taskRoles/Task_Role/taskIndex/0",
    ):
        refused(ann.http.get(f"{where}/attempts/{bad}/attempts"), 404, "NoTaskError")

    assert ann.http.get(f"{where}/job-attempts/healthz").status_code == 200
    attempts = ann.get(f"{where}/job-attempts")
    assert [(each["attemptIndex"], each["state"], each["isLatest"]) for each in attempts] == [
        (1, "RUNNING", True),
        (0, "FAILED", False),
    ], "the latest, then those before it"
    assert ann.get(f"{where}/job-attempts/0") == attempts[1]
    assert ann.http.get(f"{where}/jobAttempts/healthz").status_code == 200
    assert ann.get(f"{where}/jobAttempts") == attempts
    assert ann.get(f"{where}/jobAttempts/1") == attempts[0]
    assert attempts[1]["exitCode"] == 255 and attempts[1]["exitDiagnostics"]["diagnosticsSummary"] == "again"
    words = "JobAttemptId 7 is not found in ann~Tried."
    refused(ann.http.get(f"{where}/job-attempts/7"), 404, "NoJobError", words)
    refused(ann.http.get(f"{where}/attempts/7"), 404, "NoJobError", words)


def test_a_job_that_gave_up_its_guarantee_is_told_to_be_lazily_preempted(ann: Caller, launcher: Launcher) -> None:
    said = "taskRoles: {Task_Role: {affinityGroupName: band, skuType: K80, skuNum: 1}}"
    ann.submit(protocol("Lazy", gpu=1, extras=f"{{hivedScheduler: {{lazyPreemptionEnable: true, {said}}}}}"))
    where = "/api/v2/jobs/ann~Lazy"
    task = {(ROLE, 0): running(ROLE, 0, START)}
    launcher.write("ann", "Lazy", task, state=JobState.RUNNING, started_at=START + 1, placed_at=START)

    def hived() -> dict[str, object]:
        found: dict[str, object] = ann.get(where)["taskRoles"]["Task_Role"]["taskStatuses"][0]["hived"]
        return found

    assert hived() == {"affinityGroupName": "ann~Lazy/band", "lazyPreempted": None, "lazyPreemptionStatus": None}
    told = Fact("job.guarantee-lost", "It continues as a guest, without its guarantee.")
    launcher.write("ann", "Lazy", task, facts=(told,), state=JobState.RUNNING, started_at=START + 1, placed_at=START)
    assert hived()["lazyPreempted"] is True
    assert hived()["lazyPreemptionStatus"] == {
        "preemptor": "It continues as a guest, without its guarantee.",
        "preemptionTime": "2027-01-15T08:00:00.000Z",
    }


def groups_of(caller: Caller, name: str, extras: str) -> set[str | None]:
    """The affinity groups of a job's tasks, as the API shows them."""
    assert caller.submit(protocol(name, instances=2, gpu=1, extras=extras)).status_code == 202
    tasks = caller.get(f"/api/v2/jobs/ann~{name}")["taskRoles"]["Task_Role"]["taskStatuses"]
    assert len(tasks) == 2
    return {task["hived"]["affinityGroupName"] for task in tasks}


def test_an_affinity_group_is_named_by_its_job_and_a_gang_without_one_is_in_the_default(ann: Caller) -> None:
    named = "taskRoles: {Task_Role: {affinityGroupName: band, skuType: K80, skuNum: 1}}"
    assert groups_of(ann, "Banded", f"{{hivedScheduler: {{{named}}}}}") == {"ann~Banded/band"}
    assert groups_of(ann, "Banded_alone", f"{{gangAllocation: false, hivedScheduler: {{{named}}}}}") == {
        "ann~Banded_alone/band"
    }
    assert groups_of(ann, "Ganged", "") == {"ann~Ganged/default"}
    assert groups_of(ann, "Alone", "{gangAllocation: false}") == {None}


def test_what_ended_before_it_ran_was_launched_when_it_ended(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Never_ran"))
    end, stopped = START + 30, classify(-210, "stopped")
    task = TaskRun(ROLE, 0, TaskState.COMPLETED, created_at=START, ended_at=end, completion=stopped)
    launcher.write("ann", "Never_ran", {(ROLE, 0): task}, state=JobState.COMPLETED, completion=stopped, ended_at=end)
    at = round(end * 1000)
    detail = ann.get("/api/v2/jobs/ann~Never_ran")
    status, (told,) = detail["jobStatus"], detail["taskRoles"]["Task_Role"]["taskStatuses"]
    (line,) = ann.get("/api/v2/jobs", keyword="Never_ran")
    assert line["launchedTime"] == line["completedTime"] == at
    assert status["launchedTime"] == status["appLaunchedTime"] == status["completedTime"] == at
    assert told["launchedTime"] == told["currentAttemptLaunchedTime"] == told["completedTime"] == at


def test_events_come_latest_first_and_by_type(ann: Caller, launcher: Launcher) -> None:
    ann.submit(protocol("Eventful"))
    facts = (
        Fact("task.started", "it runs", ROLE, 0, "x.0.task-role.0.0"),
        Fact("task.exited", "it exited with 3", ROLE, 0, "x.0.task-role.0.0", {"code": 3}),
    )
    launcher.write("ann", "Eventful", {}, facts=facts)
    where = "/api/v2/jobs/ann~Eventful/events"
    found = ann.get(where)
    assert found["totalCount"] == 3 == len(found["data"])
    assert [event["reason"] for event in found["data"]] == ["TaskExited", "TaskStarted", "JobSubmitted"]
    assert [event["type"] for event in found["data"]] == ["Warning", "Normal", "Normal"]
    task = found["data"][0]
    assert (task["taskroleName"], task["taskIndex"]) == ("Task_Role", 0)
    assert set(task) == {
        "uid", "frameworkName", "podUid", "taskroleName", "taskName", "taskIndex", "type", "reason", "message",
        "firstTimestamp", "lastTimestamp", "count", "sourceComponent", "sourceHost",
    }  # fmt: skip
    assert ann.get(where, type="Warning")["totalCount"] == 1
    assert ann.get(where, type="Loud") == {"totalCount": 0, "data": []}
