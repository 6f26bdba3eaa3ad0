"""Storages in OpenPAI's API: those that groups grant, with their defaults, and never a credential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.api.harness import Server

DOCUMENTS = """
kind: Storage
name: data
type: nfs
server: filer.example.org
path: /export/data
mountOptions: [vers=4.1]
---
kind: Storage
name: home
type: samba
address: //srv.example.org/homes/all
secretName: smb-key
share: false
---
kind: Storage
name: blobs
type: azureBlob
containerName: pictures
accountName: acme
secretName: blob-key
readOnly: true
---
kind: Storage
name: files
type: azureFile
shareName: docs
accountName: acme
secretName: file-key
---
kind: Storage
name: fast
type: dshuttle
attributes: {path: /cache}
---
kind: Storage
name: scratch
type: folder
path: /srv/scratch
"""
PROTOCOL = """
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: image, uri: "debian:12"}}]
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}
    commands: ["true"]
{extras}
"""


@pytest.fixture(scope="module", autouse=True)
def granted(server: Server) -> None:
    """Carol's first group grants data and home, her second one scratch; Dave has none."""
    with client(server, "root", role="admin") as root:
        applied = root.post(f"{server.url}/api/v3/documents", content=DOCUMENTS)
        assert applied.status_code == 200, applied.text
        for name, storages in (("readers", ["data", "home", "gone"]), ("testers", ["scratch"]), ("nobodies", [])):
            acls = {"acls": {"virtualClusters": ["default"], "storageConfigs": storages}}
            assert root.post("/groups", json={"groupname": name, "extension": acls}).status_code == 201
        for name, groups in (("carol", ["readers", "testers"]), ("dave", ["nobodies"])):
            server.token(name)
            assert root.put(f"/users/{name}/grouplist", json={"grouplist": groups}).status_code == 201
    server.call(server.store.put_setting("engine.local.container_runtime", "docker"))


def client(server: Server, user: str, *, role: str = "user") -> httpx2.Client:
    headers = {"Authorization": f"Bearer {server.token(user, role=role)}"}
    return httpx2.Client(base_url=f"{server.url}/api/v2", headers=headers, trust_env=False)


@pytest.fixture
def carol(server: Server) -> Iterator[httpx2.Client]:
    with client(server, "carol") as made:
        yield made


@pytest.fixture
def dave(server: Server) -> Iterator[httpx2.Client]:
    with client(server, "dave") as made:
        yield made


@pytest.fixture
def root(server: Server) -> Iterator[httpx2.Client]:
    with client(server, "root", role="admin") as made:
        yield made


def refused(answer: httpx2.Response) -> tuple[int, str, str]:
    body = answer.json()
    assert set(body) == {"code", "message"}
    return answer.status_code, body["code"], body["message"]


def test_a_user_sees_the_storages_that_groups_grant_and_the_first_of_each_is_a_default(carol: httpx2.Client) -> None:
    found = carol.get("/storages").json()
    assert found == {
        "storages": [
            {"name": "data", "share": True, "volumeName": "data", "default": True},
            {"name": "home", "share": False, "volumeName": "home", "default": False},
            {"name": "scratch", "share": True, "volumeName": "scratch", "default": True},
        ]
    }
    defaults = carol.get("/storages?default=true").json()["storages"]
    assert [each["name"] for each in defaults] == ["data", "scratch"]


def test_who_was_granted_none_sees_none_and_administrators_see_all(dave: httpx2.Client, root: httpx2.Client) -> None:
    assert dave.get("/storages").json() == {"storages": []}
    names = [each["name"] for each in root.get("/storages").json()["storages"]]
    assert names == ["blobs", "data", "fast", "files", "home", "scratch"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "data",
            {
                "type": "nfs",
                "data": {"server": "filer.example.org", "path": "/export/data"},
                "mountOptions": ["vers=4.1"],
            },
        ),
        (
            "home",
            {
                "share": False,
                "type": "samba",
                "data": {"address": "//srv.example.org/homes/all"},
                "secretName": "smb-key",
            },
        ),
        (
            "blobs",
            {
                "type": "azureBlob",
                "data": {"containerName": "pictures", "accountName": "acme"},
                "readOnly": True,
                "secretName": "blob-key",
            },
        ),
        (
            "files",
            {"type": "azureFile", "data": {"shareName": "docs", "accountName": "acme"}, "secretName": "file-key"},
        ),
        ("fast", {"type": "dshuttle", "data": {"path": "/cache"}}),
        ("scratch", {"type": "unknown", "data": {"path": "/srv/scratch"}}),
    ],
)
def test_a_storage_is_told_by_its_type(root: httpx2.Client, name: str, told: dict[str, Any]) -> None:
    expected = {"name": name, "volumeName": name, "share": True, "default": False, "readOnly": False, **told}
    assert root.get(f"/storages/{name}").json() == expected


def test_a_storage_of_others_and_one_that_is_not_there_are_refused(carol: httpx2.Client, dave: httpx2.Client) -> None:
    assert carol.get("/storages/data").json()["default"] is True
    assert refused(dave.get("/storages/data")) == (
        403,
        "ForbiddenUserError",
        "User dave is not allowed to access data.",
    )
    assert refused(carol.get("/storages/absent")) == (404, "NoStorageError", "Storage absent is not found.")


def test_the_deprecated_addresses_tell_the_same(carol: httpx2.Client) -> None:
    configs = carol.get("/storage/config").json()
    assert [each["name"] for each in configs] == ["data", "home", "scratch"]
    assert carol.get("/storage/config/home").json() == {
        "name": "home",
        "default": False,
        "servers": ["home"],
        "mountInfos": [{"mountPoint": "/mnt/home", "path": "${PAI_USER_NAME}", "server": "home", "permission": "rw"}],
    }
    assert [each["name"] for each in carol.get("/storage/config?names=data&names=home").json()] == ["data", "home"]
    assert carol.get("/storage/server/data").json() == {
        "spn": "data",
        "type": "nfs",
        "data": {"address": "filer.example.org", "rootPath": "/export/data"},
        "extension": {},
    }
    samba = carol.get("/storage/server?names=home").json()
    assert samba[0]["data"] == {"address": "srv.example.org", "rootPath": "homes/all", "domain": ""}
    assert refused(carol.get("/storage/config/blobs")) == (404, "NoStorageError", "Config not found.")
    assert refused(carol.get("/storage/server/absent")) == (404, "NoStorageError", "Server not found.")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("part", ["config", "config/data", "server", "server/data"])
def test_the_first_storages_are_not_changed_by_their_old_addresses(
    root: httpx2.Client, carol: httpx2.Client, method: str, part: str
) -> None:
    before = root.get("/storages").json()
    words = "Storages are documents here: apply one of kind Storage (corral apply FILE), or remove it."
    body = {"name": "data", "spn": "data"}
    assert refused(root.request(method, f"/storage/{part}", json=body)) == (501, "NotImplementedError", words)
    assert refused(carol.request(method, f"/storage/{part}", json=body))[:2] == (403, "ForbiddenUserError")
    assert root.get("/storages").json() == before


def submitted(http: httpx2.Client, name: str, extras: str = "") -> httpx2.Response:
    text = PROTOCOL.format(name=name, extras=extras)
    return http.post("/jobs", content=text, headers={"Content-Type": "text/yaml"})


def storages_of(server: Server, http: httpx2.Client, name: str) -> list[dict[str, str]]:
    found = http.get(f"{server.url}/api/v3/jobs/{name}").json()
    storages: list[dict[str, str]] = found["document"]["spec"]["storages"]
    return storages


@pytest.mark.parametrize("name", ["blobs", "absent", "gone"])
def test_a_job_with_a_storage_of_others_or_of_nobody_is_refused_alike(carol: httpx2.Client, name: str) -> None:
    answer = submitted(carol, f"bad-{name}", f"extras: {{storages: [{{name: {name}}}]}}")
    assert refused(answer) == (404, "NoStorageError", f"Storage {name} is not found.")


def test_a_job_has_the_storages_that_it_names_where_it_says(server: Server, carol: httpx2.Client) -> None:
    asked = "extras: {storages: [{name: home, mountPath: /root/mine}, {name: data}]}"
    assert submitted(carol, "named", asked).status_code == 202
    found = [
        (each["name"], each["mountPath"] or f"/mnt/{each['name']}") for each in storages_of(server, carol, "named")
    ]
    assert found == [("home", "/root/mine"), ("data", "/mnt/data")]


def test_a_job_that_names_no_storage_in_its_list_has_the_users_defaults(server: Server, carol: httpx2.Client) -> None:
    assert submitted(carol, "defaults", "extras: {storages: []}").status_code == 202
    assert [each["name"] for each in storages_of(server, carol, "defaults")] == ["data", "scratch"]


def test_a_job_without_a_list_of_storages_has_none(server: Server, carol: httpx2.Client) -> None:
    assert submitted(carol, "none").status_code == 202
    assert storages_of(server, carol, "none") == []


def test_the_defaults_of_who_has_none_are_none(server: Server, dave: httpx2.Client) -> None:
    assert submitted(dave, "nothing", "extras: {storages: []}").status_code == 202
    assert storages_of(server, dave, "nothing") == []
