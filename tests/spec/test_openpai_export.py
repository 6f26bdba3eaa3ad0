"""Files of an OpenPAI cluster's export are recognized by their content under any name, or reported as unknown."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from corral.compat.openpai.language.cluster_export import Export, finished, read_export
from corral.compat.openpai.language.cluster_import import Site, site_of
from corral.spec.cluster import ClusterDocument
from corral.spec.queue import QueueDocument
from corral.spec.storage import StorageDocument

HASH = "ab" * 64


def export_of(**files: Any) -> Export:
    """The export's files by kind; `a__yaml` stands for `a.yaml`, and `___` for the dot of a folder's name."""
    named = {name.replace("___", "/").replace("__", "."): value for name, value in files.items()}
    return read_export(
        {name: (value if isinstance(value, str) else json.dumps(value)).encode() for name, value in named.items()}
    )


def site(export: Export, engine: str = "local") -> Site:
    return site_of(export, engine=engine)


def notes(found: Site) -> dict[str, str]:
    return {f"{note.kind}/{note.name}": note.message for note in found.notes}


def kept(**values: str) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def test_answers_of_the_rest_api_are_known_by_what_is_in_them() -> None:
    found = export_of(
        a__json=[{"username": "ann", "grouplist": ["default"], "email": "a@x", "admin": False, "extension": {"k": 1}}],
        b__json=[{"groupname": "g", "externalName": "ext", "extension": {"acls": {"virtualClusters": ["vc"]}, "k": 2}}],
        c__json={"storages": [{"name": "data", "share": False, "volumeName": "pv"}]},
        d__json={"name": "data", "type": "nfs", "share": False, "volumeName": "pv", "data": {"server": "s", "path": "/p"}},
        e__json={"totalCount": 1, "data": [{"username": "ann", "name": "j", "state": "running"}]},
    )  # fmt: skip
    ann, group = found.users["ann"], found.groups["g"]
    assert (ann.groups, ann.email, ann.admin, ann.password_hash, ann.extension) == (
        ("default",),
        "a@x",
        False,
        "",
        {"k": 1},
    )
    assert (group.external_name, group.queues, group.extension) == ("ext", ("vc",), {"k": 2})
    assert found.storages["data"]["data"] == {"server": "s", "path": "/p"}
    assert found.states == {("ann", "j"): "RUNNING"}
    assert found.unknown == []


def test_secrets_of_the_first_release_have_virtual_clusters_where_later_ones_have_groups() -> None:
    values = kept(username="ann", password=HASH, admin="true", virtualCluster="default,research", githubPAT="x")
    old = {"kind": "Secret", "metadata": {"name": "616e6e", "namespace": "pai-user"}, "data": values}
    found = export_of(users__yaml=old)
    ann = found.users["ann"]
    assert (ann.groups, ann.admin, ann.password_hash) == (("default", "research"), True, HASH)
    assert found.groups["research"].queues == ("research",)


def test_what_two_files_say_of_one_account_is_put_together() -> None:
    told = {"username": "ann", "grouplist": ["a"], "email": "a@x"}
    secret = {"kind": "Secret", "metadata": {"name": "616e6e", "namespace": "pai-user-v2"},
              "data": kept(username="ann", password=HASH, grouplist='["a"]', email="", extension="{}")}  # fmt: skip
    for files in ({"a__json": [told], "b__json": secret}, {"a__json": secret, "b__json": [told]}):
        ann = export_of(**files).users["ann"]
        assert (ann.email, ann.password_hash) == ("a@x", HASH)


def test_jobs_are_whose_their_file_or_folder_says_and_stand_as_the_list_says() -> None:
    job = "protocolVersion: 2\nname: one\ntype: job\ntaskRoles: {}\n"
    found = export_of(
        **{"jobs___ann~one__yaml": job, "bob___x__yaml": job, "y__yaml": job,
           "v1__json": {"jobName": "old", "image": "i", "taskRoles": []}},
        list__json=[{"username": "ann", "name": "one", "state": "FAILED"}],
    )  # fmt: skip
    assert sorted((job.user, job.name, job.state) for job in found.jobs) == [
        ("", "old", ""), ("", "one", ""), ("ann", "one", "FAILED"), ("bob", "one", ""),
    ]  # fmt: skip
    assert finished("FAILED")
    assert not finished("")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "hello"),
        ("a.yaml", "just: something"),
        ("a.yaml", "a: [1, 2"),
        ("a.json", "{"),
        ("a.yaml", ""),
        ("a.yaml", "kind: ConfigMap\nmetadata: {name: x}\n"),
        (
            "a.json",
            '{"kind": "Secret", "metadata": {"namespace": "pai-user-token", "name": "zz"}, "data": {"a": "eHg="}}',
        ),
        ("a.json", '{"kind": "Secret", "metadata": {"namespace": "pai-user-v2"}, "data": {"username": "!"}}'),
        ("a.json", '{"kind": "Secret", "metadata": {}, "data": {"username": "YQ==", "grouplist": "Ww=="}}'),
        ("a.yaml", "&a [*a]"),
    ],
)
def test_what_is_nothing_known_is_named_with_the_reason(name: str, text: str) -> None:
    found = read_export({name: text.encode()})
    ((path, why),) = found.unknown
    assert path == name
    assert why
    assert "\n" not in why


LAYOUT: dict[str, Any] = {
    "machine-sku": {
        "GPU": {"mem": 64, "gpu": {"type": "k80", "count": 4}, "cpu": {"vcore": 16}},
        "NEW": {"mem": "32GB", "computing-device": {"type": "nvidia.com/gpu", "model": "a100", "count": 8},
                "cpu": {"vcore": 8}},
    },
    "machine-list": [
        {"hostname": "master", "machine-type": "GPU", "pai-master": "true"},
        {"hostname": "one", "machine-type": "GPU", "pai-worker": "true"},
        {"hostname": "two", "machine-type": "NEW", "pai-worker": "true"},
        {"hostname": "three", "machine-type": "ODD", "pai-worker": "true"},
    ],
}  # fmt: skip


def test_without_hived_the_workers_of_the_layout_are_the_nodes() -> None:
    found = site(export_of(layout__yaml=LAYOUT))
    (cluster,) = found.documents
    assert isinstance(cluster, ClusterDocument)
    nodes = cluster.free_nodes
    assert sorted(nodes) == ["one", "two"]
    assert (nodes["one"].cpu, nodes["one"].memory, nodes["one"].devices.count) == ("16", "64Gi", 4)
    assert (nodes["two"].memory, nodes["two"].devices.model) == ("32G", "a100")
    assert set(notes(found)) == {"machine/master", "machine/three"}
    elsewhere = site(export_of(layout__yaml=LAYOUT), "kubernetes")
    assert elsewhere.documents == []
    assert "layout/layout.yaml" in notes(elsewhere)


def test_virtual_clusters_of_the_yarn_era_are_queues_with_their_capacity_as_weight() -> None:
    services = {
        "rest-server": {},
        "hadoop-resource-manager": {"virtualClusters": {"a": {"capacity": 40}, "b": {}, "bad name": {}}},
    }
    found = site(export_of(services__yaml=services))
    queues = {each.name: each.weight for each in found.documents if isinstance(each, QueueDocument)}
    assert queues == {"a": 40.0, "b": 1.0}
    assert set(notes(found)) == {"queue/bad name"}


def test_a_hived_configuration_that_cannot_be_is_said() -> None:
    bad = "physicalCluster: {cellTypes: {}, physicalCells: [{cellType: NONE}]}\nvirtualClusters: {}\n"
    found = site(export_of(services__yaml={"hivedscheduler": {"config": bad}}))
    assert found.documents == []
    assert "cannot be taken" in notes(found)["hived/hivedscheduler"]


def pair(name: str, spec: dict[str, Any], **labels: str) -> list[dict[str, Any]]:
    meta = {"name": name, "labels": labels}
    return [
        {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": f"v-{name}"}},
        {"kind": "PersistentVolume", "metadata": {"name": f"v-{name}"}, "spec": spec},
    ]


VOLUMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nfs": (
        {"nfs": {"server": "s", "path": "/p"}, "mountOptions": ["ro"], "accessModes": ["ReadOnlyMany"]},
        {"type": "nfs", "server": "s", "path": "/p", "mountOptions": ["ro"], "readOnly": True},
    ),
    "samba": (
        {"flexVolume": {"driver": "microsoft.com/smb", "secretRef": {"name": "k"},
                        "options": {"source": "//s/share", "mountoptions": "vers=3.0,ro"}}},
        {"type": "samba", "address": "//s/share", "secretName": "k", "mountOptions": ["vers=3.0", "ro"]},
    ),
    "file": (
        {"azureFile": {"shareName": "sh", "secretName": "k"}},
        {"type": "azureFile", "shareName": "sh", "secretName": "k"},
    ),
    "blob": (
        {"flexVolume": {"driver": "azure/blobfuse", "secretRef": {"name": "k"}, "options": {"container": "c"}}},
        {"type": "azureBlob", "containerName": "c", "secretName": "k"},
    ),
    "dshuttle": (
        {"csi": {"driver": "dshuttle", "volumeAttributes": {"path": "/x"}}},
        {"type": "dshuttle", "attributes": {"path": "/x"}},
    ),
    "csi": ({"csi": {"driver": "d.example"}}, {"type": "other", "driver": "d.example"}),
    "here": ({"hostPath": {"path": "/srv/x"}}, {"type": "folder", "path": "/srv/x"}),
    "odd": ({"glusterfs": {}}, {"type": "pvc", "claim": "odd"}),
}  # fmt: skip


@pytest.mark.parametrize("name", VOLUMES)
def test_a_volume_is_the_storage_that_it_is(name: str) -> None:
    spec, expected = VOLUMES[name]
    found = site(export_of(pv__json={"kind": "List", "items": pair(name, spec)}))
    (storage,) = found.documents
    assert isinstance(storage, StorageDocument)
    told = storage.to_document()
    assert expected.items() <= told.items()
    assert told["share"] is True
    assert ("secret/k" in notes(found)) == ("secretName" in expected)


def test_a_label_makes_each_users_own_folder_and_a_claim_without_its_volume_stays_one() -> None:
    (own, _), claim = pair("own", {}, share="false"), pair("x", {"nfs": {"server": "s", "path": "/p"}}, share="False")
    found = site(export_of(a__json={"kind": "List", "items": [own, *claim]}))
    told = {each.name: each for each in found.documents if isinstance(each, StorageDocument)}
    assert (told["own"].type, told["own"].claim, told["own"].share) == ("pvc", "own", False)
    assert told["x"].share is False
    assert "storage/own" in notes(found)


def test_storages_of_the_rest_api_lose_their_passwords() -> None:
    answer = {"name": "s", "share": True, "volumeName": "v", "type": "samba", "secretName": "k",
              "data": {"address": "//h/s", "username": "u", "password": "a very secret word"}}  # fmt: skip
    found = site(export_of(a__json=answer))
    (storage,) = found.documents
    assert isinstance(storage, StorageDocument)
    assert (storage.address, storage.secret_name) == ("//h/s", "k")
    assert "a very secret word" not in json.dumps(storage.to_document()) + json.dumps(notes(found))


def test_openid_connect_of_the_configuration_becomes_settings_and_no_password_is_taken() -> None:
    services = {
        "rest-server": {"jwt-secret": "a secret that is long enough", "rate-limit-api-per-min": 5},
        "authentication": {
            "OIDC": True,
            "OIDC-type": "AAD",
            "AAD": {
                "wellKnownURL": "https://login.example/{tenantID}/v2.0/.well-known/openid-configuration",
                "tenantID": "t-1", "clientID": "c-1", "clientSecret": "do not print",
            },
            "group-manager": {
                "admin-group": {"groupname": "bosses", "externalName": "ext-bosses"},
                "default-group": {"groupname": "default", "extension": {"acls": {"virtualClusters": ["default"]}}},
                "grouplist": [{"groupname": "more"}],
            },
        },
    }  # fmt: skip
    user = {"kind": "Secret", "metadata": {"name": "616e6e", "namespace": "pai-user-v2"},
            "data": kept(username="ann", password=HASH, grouplist="[]", email="", extension="{}")}  # fmt: skip
    export = export_of(services__yaml=services, u__json=user)
    found = site(export)
    assert found.issuer == "https://login.example/t-1/v2.0"
    assert found.settings == {
        "CORRAL_OPENPAI_CALLS_PER_MINUTE": "5",
        "CORRAL_OIDC_ISSUER": "https://login.example/t-1/v2.0",
        "CORRAL_OIDC_CLIENT_ID": "c-1",
        "CORRAL_OIDC_GROUPS_CLAIM": "groups",
        "CORRAL_OIDC_ADMIN_GROUPS": "ext-bosses",
        "CORRAL_OIDC_CLIENT_SECRET_FILE": "FILE",
    }
    assert found.jwt_secret == "a secret that is long enough"
    assert export.users["ann"].password_hash == "", "it is derived from what everybody can know"
    assert sorted(export.groups) == ["bosses", "default", "more"]
    assert export.groups["bosses"].admin
    assert "do not print" not in json.dumps([*found.settings.values(), *notes(found).values()])


@pytest.mark.parametrize("secret", ["pai-secret", "HelloPAI", "short"])
def test_a_secret_that_everybody_knows_is_not_taken(secret: str) -> None:
    found = site(export_of(s__yaml={"rest-server": {"jwt-secret": secret}}))
    assert found.jwt_secret == ""
    assert "secret/jwt-secret" in notes(found)
