"""Import an OpenPAI cluster by one command from files as OpenPAI's tools print them."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.endtoend.platform import Platform

SECRET = "a secret of the old cluster, long enough"
PASSWORDS = {"ann": "old-password", "Bob.B": "another-password"}
HIVED = """
physicalCluster:
  skuTypes:
    V100: {gpu: 1, cpu: 4, memory: 8Gi}
  cellTypes:
    V100-NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}
    V100-POOL: {childCellType: V100-NODE, childCellNumber: 2}
  physicalCells:
  - {cellType: V100-POOL, cellChildren: [{cellAddress: worker1}, {cellAddress: worker2}]}
virtualClusters:
  default:
    virtualCells: [{cellType: V100-POOL.V100-NODE, cellNumber: 1}]
  prod:
    virtualCells: [{cellType: V100-POOL.V100-NODE, cellNumber: 1}]
"""
JOB = """
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: image, uri: "ubuntu:22.04"}}]
taskRoles:
  worker:
    {{instances: 1, dockerImage: image, resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}, commands: ["{command}"]}}
{more}
"""


def kept(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(namespace: str, name: str, **values: str) -> dict[str, Any]:
    meta = {"name": name.encode().hex(), "namespace": namespace}
    return {"kind": "Secret", "metadata": meta, "data": {key: kept(value) for key, value in values.items()}}


def openpais_hash(user: str, password: str) -> str:
    salt = hashlib.md5(user.encode()).hexdigest()
    return hashlib.pbkdf2_hmac("sha512", password.encode(), salt.encode(), 10_000, 64).hex()


def user(name: str, groups: list[str], **extension: Any) -> dict[str, Any]:
    return secret(
        "pai-user-v2", name, username=name, password=openpais_hash(name, PASSWORDS.get(name, "no password")),
        email=f"{name}@corp.example", grouplist=json.dumps(groups), extension=json.dumps(extension),
    )  # fmt: skip


def group(name: str, queues: list[str], storages: list[str], *, admin: bool = False) -> dict[str, Any]:
    acls = {"acls": {"admin": admin, "virtualClusters": queues, "storageConfigs": storages}}
    return secret(
        "pai-group", name, groupname=name, description=f"of {name}", externalName="", extension=json.dumps(acls)
    )


def signed(user: str, *, application: bool = True, key: str = SECRET) -> str:
    claims = {"username": user, "application": application, "iat": 1_600_000_000}
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(key))


def volumes() -> list[dict[str, Any]]:
    def claim(name: str, **labels: str) -> dict[str, Any]:
        return {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "labels": labels},
            "spec": {"volumeName": f"{name}-pv"},
        }

    def volume(name: str, **spec: Any) -> dict[str, Any]:
        return {"kind": "PersistentVolume", "metadata": {"name": f"{name}-pv"}, "spec": spec}

    flex = {
        "driver": "azure/blobfuse",
        "options": {"container": "blobs", "mountoptions": "-o a=1,-o b=2"},
        "secretRef": {"name": "key"},
    }
    return [
        claim("data"),
        volume("data", nfs={"server": "filer.example", "path": "/export/data"}, mountOptions=["nfsvers=4.1"]),
        claim("home", share="false"), volume("home", nfs={"server": "filer.example", "path": "/export/home"}),
        claim("blob"), volume("blob", flexVolume={**flex, "options": {"container": "blobs", "mountoptions": "ro"}}),
        claim("odd"), volume("odd", nfs={"server": "bad host", "path": "relative"}),
    ]  # fmt: skip


def write(folder: Path, *, secret_text: str = SECRET, tokens: bool = False) -> Path:
    """Write a cluster's files, under the usual file names."""
    export = folder / "export"
    (export / "jobs").mkdir(parents=True)
    services = {
        "cluster": {"common": {"cluster-id": "pai"}},
        "rest-server": {
            "jwt-secret": secret_text,
            "rate-limit-list-job-per-min": 90,
            "default-pai-admin-username": "chief",
        },
        "hivedscheduler": {"config": HIVED},
        "webportal": {"server-port": 9286},
        "marketplace-db": {"x": 1},
        "authentication": {
            "OIDC": False,
            "group-manager": {"admin-group": {"groupname": "admingroup", "extension": {"acls": {"admin": True}}}},
        },
    }
    layout = {
        "machine-sku": {"V100": {"mem": 64, "gpu": {"type": "v100", "count": 4}, "cpu": {"vcore": 16}}},
        "machine-list": [
            {"hostname": each, "hostip": f"10.0.0.{at}", "machine-type": "V100", "pai-worker": "true"}
            for at, each in enumerate(("worker1", "worker2", "worker3"))
        ],
    }
    (export / "services-configuration.yaml").write_text(json.dumps(services))
    (export / "layout.yaml").write_text(json.dumps(layout))
    users = [
        user("ann", ["default", "research"], sshKeys=[]),
        user("Bob.B", ["default", "admingroup"]),
        user("bad name", []),
    ]
    (export / "users.json").write_text(json.dumps({"kind": "List", "items": users}))
    groups = [
        group("default", ["default"], []),
        group("research", ["prod"], ["data", "home"]),
        group("admingroup", [], [], admin=True),
    ]
    (export / "groups.json").write_text(json.dumps({"kind": "List", "items": groups}))
    (export / "storages.json").write_text(json.dumps({"kind": "List", "items": volumes()}))
    if tokens:
        told = {
            "a": signed("ann"),
            "b": signed("ann", application=False),
            "c": signed("ann", key="another key that is somebody else's"),
        }
        (export / "tokens.json").write_text(json.dumps(secret("pai-user-token", "ann", **told)))
    states = [
        {"username": "ann", "name": name, "state": state}
        for name, state in (("live", "RUNNING"), ("old", "SUCCEEDED"), ("masked", "WAITING"))
    ]
    (export / "jobs.json").write_text(json.dumps({"totalCount": 3, "data": states}))
    for name, more in (("live", ""), ("old", ""), ("masked", 'secrets: "******"')):
        (export / "jobs" / f"ann~{name}.yaml").write_text(JOB.format(name=name, command="sleep 600", more=more))
    v1 = {"jobName": "first", "image": "ubuntu:22.04", "taskRoles": [{"name": "w", "command": "sleep 600"}]}
    (export / "jobs" / "ann").mkdir()
    (export / "jobs" / "ann" / "first.json").write_text(json.dumps(v1))
    (export / "jobs" / "nobodys.yaml").write_text(JOB.format(name="nobodys", command="true", more=""))
    (export / "notes.txt").write_text("for us")
    return export


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(
        tmp_path_factory.mktemp("import"), "--trust-users", cluster=_machine(tmp_path_factory.mktemp("machine"))
    )
    made.up()
    yield made
    made.down()


def _machine(folder: Path) -> Path:
    file = folder / "cluster.yaml"
    file.write_text("kind: Storage\nname: spare\ntype: folder\npath: /srv\n")
    return file


def imported(server: Platform, export: Path, *words: str, code: int = 4) -> dict[str, Any]:
    return dict(json.loads(server.corral("openpai", "import", str(export), *words, "-o", "json", code=code)))


def results(told: dict[str, Any]) -> dict[str, str]:
    return {f"{each['kind']}/{each['name']}": each["result"] for each in told["items"]}


FIRST = {
    "cluster/local": "created", "queue/default": "created", "queue/prod": "created",
    "storage/data": "created", "storage/home": "created", "storage/blob": "created", "storage/odd": "left",
    "group/default": "created", "group/research": "created", "group/admingroup": "created",
    "user/ann": "created", "user/Bob.B": "created", "user/bad name": "refused", "user/chief": "left",
    "secret/jwt-secret": "created",
    "job/ann~live": "created", "job/ann~first": "created",
    "job/ann~old": "left", "job/ann~masked": "refused", "job/nobodys": "refused",
    "machine/worker3": "left", "service/marketplace-db": "left", "file/notes.txt": "left",
}  # fmt: skip


def test_a_trial_tells_all_and_changes_nothing_then_it_is_done_and_doing_it_again_changes_nothing(
    server: Platform, tmp_path: Path
) -> None:
    export = write(tmp_path)
    trial = imported(server, export, "--dry-run")
    assert FIRST.items() <= results(trial).items()
    assert [each["name"] for each in server.client.documents()["items"]] == ["spare"]
    assert "ann" not in [each["name"] for each in server.client.users()["items"]]

    done = imported(server, export)
    assert FIRST.items() <= results(done).items()
    assert done["settings"] == {"CORRAL_OPENPAI_LISTS_PER_MINUTE": "90"}
    again = results(imported(server, export))
    assert {name: result for name, result in again.items() if result in ("created", "changed", "kept")} == {}
    assert again["user/ann"] == again["group/research"] == again["storage/data"] == again["job/ann~live"] == "unchanged"

    api = f"{server.url}/api/v2"
    for name, password in PASSWORDS.items():
        signed_in = httpx2.post(f"{api}/authn/basic/login", json={"username": name, "password": password})
        assert signed_in.status_code == 200, signed_in.text
        assert signed_in.json()["admin"] is (name == "Bob.B")
    shown = httpx2.get(f"{api}/users/ann", headers={"Authorization": f"Bearer {server.client.token}"}).json()
    assert shown["email"] == "ann@corp.example"
    assert set(shown["grouplist"]) == {"default", "research"}
    assert set(shown["virtualCluster"]) == {"default", "prod"}
    home = server.client.configuration("storage", "home")["document"]
    assert (home["type"], home["server"], home["path"], home["share"]) == (
        "nfs",
        "filer.example",
        "/export/home",
        False,
    )
    live = server.client.job("ann~live")
    assert live["user"] == "ann"


def test_a_password_is_hashed_anew_when_it_first_fits(server: Platform, tmp_path: Path) -> None:
    imported(server, write(tmp_path))
    login = {"user": "ann", "password": "a wrong password"}
    assert httpx2.post(f"{server.url}/api/v3/login", json=login).status_code == 401
    for _ in range(2):
        assert (
            httpx2.post(f"{server.url}/api/v3/login", json={**login, "password": PASSWORDS["ann"]}).status_code == 200
        )
    with sqlite3.connect(server.data / "corral.db") as store:
        (stored,) = store.execute("SELECT password_hash FROM users WHERE name = 'ann'").fetchone()
    assert stored.startswith("$argon2id$")
    assert results(imported(server, write(tmp_path / "again")))["user/ann"] == "unchanged", "it is not put back"


def test_an_old_application_token_opens_until_it_is_revoked(server: Platform, tmp_path: Path) -> None:
    imported(server, write(tmp_path))
    api, old = f"{server.url}/api/v2", signed("ann")
    bearer = {"Authorization": f"Bearer {old}"}
    assert httpx2.get(f"{api}/jobs", headers=bearer).status_code == 200
    assert httpx2.get(f"{api}/jobs", auth=("ann", old)).status_code == 200
    assert httpx2.get(f"{api}/tokens", headers=bearer).json()["code"] == "ForbiddenUserError", "it is an application's"
    for bad in (
        signed("ann", key="somebody else's secret, quite long"),
        signed("nobody"),
        signed("ann", application=False),
    ):
        assert httpx2.get(f"{api}/jobs", headers={"Authorization": f"Bearer {bad}"}).status_code == 401

    login = httpx2.post(f"{api}/authn/basic/login", json={"username": "ann", "password": PASSWORDS["ann"]}).json()
    hers = {"Authorization": f"Bearer {login['token']}"}
    assert old in httpx2.get(f"{api}/tokens", headers=hers).json()["tokens"]
    assert httpx2.delete(f"{api}/tokens/{old}", headers=hers).status_code == 200
    assert httpx2.get(f"{api}/jobs", headers=bearer).status_code == 401


def test_with_exported_tokens_only_those_are_good_and_a_public_secret_is_not_taken(tmp_path: Path) -> None:
    server = Platform(tmp_path, "--trust-users", cluster=_machine(tmp_path))
    server.up()
    try:
        told = imported(server, write(tmp_path, secret_text="pai-secret", tokens=True))
        assert results(told)["secret/jwt-secret"] == "left"
        assert sorted(each["result"] for each in told["items"] if each["kind"] == "token") == [
            "created",
            "created",
            "left",
        ]
        good, never_seen = signed("ann"), signed("Bob.B")
        assert httpx2.get(f"{server.url}/api/v2/jobs", headers={"Authorization": f"Bearer {good}"}).status_code == 200
        assert (
            httpx2.get(f"{server.url}/api/v2/jobs", headers={"Authorization": f"Bearer {never_seen}"}).status_code
            == 401
        )
    finally:
        server.down()


def test_what_differs_here_stays_unless_it_is_replaced(server: Platform, tmp_path: Path) -> None:
    imported(server, write(tmp_path))
    server.client.change_user("ann", groups=["default"])
    export = write(tmp_path / "again")
    told = imported(server, export)
    assert results(told)["user/ann"] == "kept"
    assert (
        next(each for each in told["items"] if each["name"] == "ann")["message"]
        == "It is here already, with other groups."
    )
    assert results(imported(server, export, "--replace"))["user/ann"] == "changed"
    assert server.client.user("ann")["groups"] == ["default", "research"]


def test_only_administrators_bring_over_and_nothing_secret_is_printed_or_logged(
    server: Platform, tmp_path: Path
) -> None:
    export = write(tmp_path)
    printed = server.corral("openpai", "import", str(export), code=4)
    logs = "".join(file.read_text() for file in (server.data / "logs").iterdir())
    for hidden in (SECRET, openpais_hash("ann", PASSWORDS["ann"])):
        assert hidden not in printed + logs
    token = httpx2.post(f"{server.url}/api/v3/login", json={"user": "ann", "password": PASSWORDS["ann"]}).json()[
        "token"
    ]
    refused = server.refused("openpai", "import", str(export), env={"CORRAL_URL": server.url, "CORRAL_TOKEN": token})
    assert "administrators-only" in refused


def test_an_export_that_can_be_brought_over_whole_ends_with_0(server: Platform, tmp_path: Path) -> None:
    told = [{"username": "whole", "grouplist": ["default"], "email": "w@corp.example", "extension": {}}]
    (tmp_path / "users.json").write_text(json.dumps(told))
    assert results(imported(server, tmp_path, code=0)) == {"user/whole": "created"}
    printed = server.corral("openpai", "import", str(tmp_path), code=0)
    assert "Done: 1 unchanged." in printed


def test_an_empty_folder_is_refused_in_a_sentence(server: Platform, tmp_path: Path) -> None:
    assert "There are no files" in server.refused("openpai", "import", str(tmp_path), code=2)
