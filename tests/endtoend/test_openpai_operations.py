"""Each of the 44 operations of OpenPAI's description on a real server: its status, its answer's form, and its effect.

The two of OpenID Connect need a provider: see `test_openid_sign_in`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.api.openpai_description import Description
from tests.endtoend.openpai_site import PASSWORD, Site
from tests.endtoend.platform import Platform

JOBS = "/api/v2/jobs"
ONE = "/api/v2/jobs/{user}~{job}"
TASK = ONE + "/attempts/{jobAttemptId}/taskRoles/{taskRoleName}/taskIndex/{taskIndex}/attempts"


@pytest.fixture(scope="module")
def site(data_folder: Path) -> Iterator[Site]:
    """A server of its own: under root, its folder must be readable by the tasks' accounts."""
    with tempfile.TemporaryDirectory(prefix="corral-openpai-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        server = Platform(folder, *([] if os.geteuid() == 0 else ["--trust-users"]))
        server.up()
        made = Site(server, Description(data_folder))
        yield made
        made.close()
        server.down()


@pytest.fixture(scope="module")
def done(site: Site) -> dict[str, str]:
    """A job of two tasks that has succeeded."""
    names = site.submit("Done_1", "echo told; echo warned >&2", instances=2)
    site.until(names, "SUCCEEDED")
    return names


@pytest.fixture
def running(site: Site) -> Iterator[dict[str, str]]:
    """A job that runs until it is stopped."""
    names = site.submit(f"runs_{len(site.called)}", "sleep 1000", gpu=1)
    site.until(names, "RUNNING")
    yield names
    if site.job(names)["jobStatus"]["executionType"] == "START":
        site.call("PUT", ONE + "/executionType", json={"value": "STOP"}, status=202, **names)
    site.until(names, "STOPPED")


def test_get_cluster_info(site: Site) -> None:
    found = site.call("GET", "/api/v2/info", token="")
    assert (found["launcherType"], found["authnMethod"]) == ("k8s", "basic")


def test_get_tokens(site: Site) -> None:
    token = site.sign_in("alice")
    assert token in site.call("GET", "/api/v2/tokens")["tokens"]


def test_delete_token(site: Site) -> None:
    token = site.sign_in("alice")
    assert site.call("DELETE", "/api/v2/tokens/{which}", which=token)["message"] == "revoke successfully"
    assert site.call("GET", "/api/v2/tokens", token=token, status=401)["code"] == "UnauthorizedUserError"
    assert token not in site.call("GET", "/api/v2/tokens")["tokens"]


def test_create_application_token(site: Site) -> None:
    made = site.call("POST", "/api/v2/tokens/application")
    assert made["application"] is True
    assert site.call("GET", JOBS, token=made["token"]) == site.call("GET", JOBS)
    answer = site.http.get("/api/v2/tokens", headers={"Authorization": f"Bearer {made['token']}"})
    assert answer.status_code == 403
    assert answer.json() == {
        "code": "ForbiddenUserError",
        "message": "Applications are not allowed to do this operation.",
    }


def test_basic_login(site: Site) -> None:
    told = {"username": "alice", "password": PASSWORD, "expiration": 60}
    signed = site.call("POST", "/api/v2/authn/basic/login", json=told, token="")
    assert (signed["user"], signed["admin"]) == ("alice", False)
    wrong = site.call("POST", "/api/v2/authn/basic/login", json=told | {"password": "wrong one"}, token="", status=400)
    assert wrong == {"code": "IncorrectPasswordError", "message": "Password is incorrect."}


def test_basic_logout(site: Site) -> None:
    token = site.sign_in("alice")
    site.call("DELETE", "/api/v2/authn/basic/logout", token=token)
    site.call("GET", "/api/v2/tokens", token=token, status=401)


def test_create_user_and_get_all_user(site: Site) -> None:
    user = {"username": "Bob.1", "password": PASSWORD, "email": "", "extension": {"sshKeys": []}}
    site.call("POST", "/api/v2/users", json=user, token=site.admin, status=201)
    assert "Bob.1" in {each["username"] for each in site.call("GET", "/api/v2/users")}
    again = site.call("POST", "/api/v2/users", json=user, token=site.admin, status=409)
    assert again["code"] == "ConflictUserError"
    site.call("POST", "/api/v2/users", json=user, status=403)


def test_update_user(site: Site) -> None:
    change = {"data": {"username": "alice", "email": "other@example.com"}, "patch": True}
    site.call("PUT", "/api/v2/users", json=change, token=site.admin, status=201)
    assert site.call("GET", "/api/v2/users/{user}", user="alice")["email"] == "other@example.com"


def test_update_user_self(site: Site) -> None:
    site.call("POST", "/api/v2/users", json={"username": "carol", "password": PASSWORD}, token=site.admin, status=201)
    token = site.sign_in("carol")
    data = {"username": "carol", "oldPassword": PASSWORD, "newPassword": "another one"}
    site.call("PUT", "/api/v2/users/me", json={"data": data, "patch": True}, token=token, status=201)
    site.sign_in("carol", "another one")


def test_get_user(site: Site) -> None:
    found = site.call("GET", "/api/v2/users/{user}", user="alice")
    assert (found["username"], found["admin"]) == ("alice", False)
    assert site.call("GET", "/api/v2/users/{user}", user="nobody", status=404)["code"] == "NoUserError"


def test_delete_user(site: Site) -> None:
    site.call("POST", "/api/v2/users", json={"username": "dora", "password": PASSWORD}, token=site.admin, status=201)
    site.call("DELETE", "/api/v2/users/{user}", user="dora", token=site.admin)
    site.call("GET", "/api/v2/users/{user}", user="dora", status=404)
    refused = site.call("DELETE", "/api/v2/users/{user}", user=_admin(site), token=site.admin, status=403)
    assert refused["code"] == "RemoveAdminError"


def test_update_user_group_and_delete_user_group(site: Site) -> None:
    _group(site, "joined")
    path, body = "/api/v2/users/{user}/group/", {"groupname": "joined"}
    site.call("PUT", path, json=body, user="alice", token=site.admin, status=201)
    assert "joined" in site.call("GET", "/api/v2/users/{user}", user="alice")["grouplist"]
    site.call("DELETE", path, json=body, user="alice", token=site.admin, status=201)
    assert "joined" not in site.call("GET", "/api/v2/users/{user}", user="alice")["grouplist"]


def test_update_user_grouplist(site: Site) -> None:
    _group(site, "listed")
    path = "/api/v2/users/{user}/grouplist/"
    before = site.call("GET", "/api/v2/users/{user}", user="alice")["grouplist"]
    site.call("PUT", path, json={"grouplist": [*before, "listed"]}, user="alice", token=site.admin, status=201)
    assert site.call("GET", "/api/v2/users/{user}", user="alice")["grouplist"] == [*before, "listed"]
    site.call("PUT", path, json={"grouplist": before}, user="alice", token=site.admin, status=201)


def test_create_group_and_get_all_group(site: Site) -> None:
    _group(site, "made")
    assert "made" in {each["groupname"] for each in site.call("GET", "/api/v2/groups")}
    site.call("POST", "/api/v2/groups", json={"groupname": "mine"}, status=403)


def test_update_group(site: Site) -> None:
    _group(site, "changed")
    change = {"data": {"groupname": "changed", "description": "another"}, "patch": True}
    site.call("PUT", "/api/v2/groups", json=change, token=site.admin, status=201)
    assert site.call("GET", "/api/v2/groups/{group}", group="changed")["description"] == "another"


def test_get_group(site: Site) -> None:
    assert site.call("GET", "/api/v2/groups/{group}", group="default")["groupname"] == "default"
    assert site.call("GET", "/api/v2/groups/{group}", group="nothing", status=404)["code"] == "NoGroupError"


def test_delete_group(site: Site) -> None:
    _group(site, "removed")
    site.call("DELETE", "/api/v2/groups/{group}", group="removed", token=site.admin, status=201)
    site.call("GET", "/api/v2/groups/{group}", group="removed", status=404)


def test_get_group_members(site: Site) -> None:
    found = site.call("GET", "/api/v2/groups/{group}/userlist", group="default", token=site.admin)
    assert "alice" in {each["username"] for each in found}
    site.call("GET", "/api/v2/groups/{group}/userlist", group="default", status=403)


def test_list_virtual_clusters(site: Site) -> None:
    assert "default" in site.call("GET", "/api/v2/virtual-clusters")


def test_get_virtual_cluster(site: Site, running: dict[str, str]) -> None:
    found = site.call("GET", "/api/v2/virtual-clusters/{vc}", vc="default")
    assert found["resourcesUsed"]["GPUs"] == 1
    none = site.call("GET", "/api/v2/virtual-clusters/{vc}", vc="nothing", status=404)
    assert none["code"] == "NoVirtualClusterError"


def test_get_storages_and_get_storage(site: Site) -> None:
    storage = {"kind": "Storage", "name": "datasets", "type": "nfs", "server": "nfs.example", "path": "/data"}
    site.platform.corral("apply", "-", given=yaml.safe_dump(storage))
    group = {"groupname": "readers", "extension": {"acls": {"storageConfigs": ["datasets"]}}}
    site.call("POST", "/api/v2/groups", json=group, token=site.admin, status=201)
    path = "/api/v2/storages/{storage}"
    assert site.call("GET", path, storage="datasets", status=403)["code"] == "ForbiddenUserError"
    joined = {"groupname": "readers"}
    site.call("PUT", "/api/v2/users/{user}/group/", json=joined, user="alice", token=site.admin, status=201)
    assert [each["name"] for each in site.call("GET", "/api/v2/storages")["storages"]] == ["datasets"]
    found = site.call("GET", path, storage="datasets")
    assert (found["type"], found["data"]["server"], found["data"]["path"]) == ("nfs", "nfs.example", "/data")
    assert site.call("GET", path, storage="nothing", status=404)["code"] == "NoStorageError"


def test_create_job(site: Site, done: dict[str, str]) -> None:
    assert site.job(done)["jobStatus"]["state"] == "SUCCEEDED"
    text = "{protocolVersion: 2, name: broken, type: job}"
    refused = site.call("POST", JOBS, content=text, status=400)
    assert refused["code"] == "InvalidProtocolError"
    config = yaml.safe_load(site.call("GET", ONE + "/config", **done)) | {"secrets": {"key": "another"}}
    assert site.call("POST", JOBS, content=yaml.safe_dump(config), status=409)["code"] == "ConflictJobError"


def test_list_jobs(site: Site, done: dict[str, str]) -> None:
    found = site.call("GET", JOBS, query={"keyword": "Done", "withTotalCount": "true"})
    (line,) = found["data"]
    assert found["totalCount"] == 1
    told = (line["name"], line["username"], line["state"], line["totalTaskNumber"])
    assert told == ("Done_1", "alice", "SUCCEEDED", 2)


def test_get_job(site: Site, done: dict[str, str]) -> None:
    found = site.job(done)
    assert found["jobStatus"]["appExitCode"] == 0
    tasks = found["taskRoles"]["worker"]["taskStatuses"]
    assert [(task["taskIndex"], task["taskState"], task["containerExitCode"]) for task in tasks] == [
        (0, "SUCCEEDED", 0),
        (1, "SUCCEEDED", 0),
    ]
    assert site.call("GET", ONE, user="alice", job="nothing", status=404)["code"] == "NoJobError"


def test_get_job_at_an_attempt(site: Site, done: dict[str, str]) -> None:
    path = ONE + "/attempts/{jobAttemptId}"
    assert site.call("GET", path, jobAttemptId=0, **done)["jobStatus"]["attemptId"] == 0
    site.call("GET", path, jobAttemptId=7, status=404, **done)


def test_get_job_config(site: Site, done: dict[str, str]) -> None:
    config = yaml.safe_load(site.call("GET", ONE + "/config", **done))
    assert (config["name"], config["secrets"]) == ("Done_1", "******")
    assert config["extras"] == {"submitFrom": "tests"}


def test_update_job_execution_type(site: Site, running: dict[str, str]) -> None:
    path = ONE + "/executionType"
    assert site.call("PUT", path, json={"value": "PAUSE"}, status=400, **running)["code"] == "InvalidParametersError"
    site.call("PUT", path, json={"value": "STOP"}, status=202, **running)
    stopped = site.until(running, "STOPPED")
    assert stopped["jobStatus"]["executionType"] == "STOP"
    assert stopped["jobStatus"]["appExitCode"] == -210


def test_add_tag_and_delete_tag(site: Site, done: dict[str, str]) -> None:
    site.call("PUT", ONE + "/tag", json={"value": "good"}, **done)
    assert site.job(done)["tags"] == ["good"]
    assert [each["name"] for each in site.call("GET", JOBS, query={"tagsContain": "good"})] == ["Done_1"]
    assert site.call("PUT", ONE + "/tag", json={"value": "a,b"}, status=400, **done)["code"] == "InvalidParametersError"
    site.call("DELETE", ONE + "/tag", json={"value": "good"}, **done)
    assert site.job(done)["tags"] == []


def test_get_events(site: Site, done: dict[str, str]) -> None:
    found = site.call("GET", ONE + "/events", **done)
    assert found["totalCount"] == len(found["data"])
    warnings = site.call("GET", ONE + "/events", query={"type": "Warning"}, **done)
    assert {each["type"] for each in warnings["data"]} <= {"Warning"}


def test_get_job_attempts_healthz(site: Site, done: dict[str, str]) -> None:
    site.call("GET", ONE + "/job-attempts/healthz", **done)


def test_get_job_attempts_and_get_job_attempt(site: Site, done: dict[str, str]) -> None:
    (attempt,) = site.call("GET", ONE + "/job-attempts", **done)
    path = ONE + "/job-attempts/{attemptIndex}"
    assert site.call("GET", path, attemptIndex=0, **done) == attempt
    site.call("GET", path, attemptIndex=7, status=404, **done)


def test_get_task(site: Site, done: dict[str, str]) -> None:
    names = {**done, "jobAttemptId": 0, "taskRoleName": "worker"}
    found = site.call("GET", TASK, taskIndex=1, **names)
    (attempt,) = found["attempts"]
    assert (attempt["attemptState"], attempt["containerExitCode"]) == ("SUCCEEDED", 0)
    site.call("GET", TASK, taskIndex=7, status=404, **names)


def test_get_task_logs(site: Site, done: dict[str, str]) -> None:
    names = {**done, "jobAttemptId": 0, "taskRoleName": "worker", "taskIndex": 0}
    found = site.call("GET", TASK + "/{taskAttemptId}/logs", taskAttemptId=0, **names)
    said = {each["name"]: httpx2.get(each["uri"], trust_env=False).text for each in found["locations"]}
    assert (said["stdout"], said["stderr"]) == ("told\n", "warned\n")
    assert sorted(said["all"].splitlines()) == ["told", "warned"]
    site.call("GET", TASK + "/{taskAttemptId}/logs", taskAttemptId=7, status=404, **names)


def test_get_k8s_nodes(site: Site) -> None:
    found = site.call("GET", "/api/v2/kubernetes/nodes", token=site.admin)
    names = {node["metadata"]["name"] for node in found["items"]}
    assert len(names) == len(site.platform.client.nodes()["items"])
    site.call("GET", "/api/v2/kubernetes/nodes", status=403)


def test_get_k8s_pods(site: Site, running: dict[str, str]) -> None:
    found = site.call("GET", "/api/v2/kubernetes/pods", token=site.admin)
    assert [pod["status"]["phase"] for pod in found["items"]] == ["Running"]
    site.call("GET", "/api/v2/kubernetes/pods", status=403)


def test_get_alerts(site: Site) -> None:
    assert isinstance(site.call("GET", "/api/v2/alerts"), list)


def test_every_operation_is_called(site: Site, request: pytest.FixtureRequest) -> None:
    """The last test of this file: every operation was called, unless only some tests ran."""
    if request.session.testscollected < len([name for name in globals() if name.startswith("test_")]):
        return
    operations = {f"{method} {path}" for method, path in site.description.operations}
    assert len(operations) == 44
    with_a_provider = {"GET /api/v2/authn/oidc/login", "GET /api/v2/authn/oidc/logout"}
    assert operations - site.called == with_a_provider


def _admin(site: Site) -> str:
    return str(site.platform.client.me()["user"])


def _group(site: Site, name: str) -> None:
    group: dict[str, Any] = {"groupname": name, "description": "", "externalName": "", "extension": {}}
    site.call("POST", "/api/v2/groups", json=group, token=site.admin, status=201)
