"""Storages are declared in documents and named by jobs; a refusal lists the valid choices."""

from __future__ import annotations

from typing import Any

import pytest

from corral.model.configuration import canonical, configuration_of, to_document
from corral.spec.configuration_file import identity, load_document
from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job
from corral.spec.short_form_writer import short_form
from corral.spec.storage import StorageDocument


def storage(**fields: Any) -> StorageDocument:
    (document,) = load_document({"kind": "Storage", "name": "data", **fields})
    assert isinstance(document, StorageDocument)
    return document


def job(**fields: Any) -> dict[str, Any]:
    return {"name": "j", "roles": {"main": {"command": ["true"]}}, **fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "nfs", "server": "filer.example.org", "path": "/export/data", "mountOptions": ["vers=4.1"]},
        {"type": "samba", "address": "//srv/share", "secretName": "smb"},
        {"type": "azureFile", "shareName": "s", "accountName": "a", "secretName": "k"},
        {"type": "azureBlob", "containerName": "c", "secretName": "k", "readOnly": True},
        {"type": "dshuttle", "attributes": {"path": "/x"}},
        {"type": "folder", "path": "/srv/data", "share": False},
        {"type": "uri", "uri": "s3://bucket/data"},
        {"type": "uri", "uri": "hdfs://name:9000/data"},
        {"type": "pvc"},
        {"type": "other", "hostPath": "/mnt/lustre"},
        {"type": "samba", "hostPath": "/mnt/smb"},
    ],
)
def test_a_storage_reads_back_as_it_was_written(fields: dict[str, Any]) -> None:
    document = storage(**fields)
    written = to_document(document)
    assert written == {"apiVersion": "corral.dev/v1alpha1", "kind": "Storage", "name": "data", **fields}
    (again,) = load_document(written)
    assert canonical(again) == canonical(document)
    assert identity(document) == ("Storage", "data")
    assert configuration_of([document]).storages == {"data": document}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"type": "nfs", "server": "filer"}, "path: missing; a storage of type nfs needs it"),
        ({"type": "nfs", "path": "/x"}, "server: missing"),
        ({"type": "nfs", "server": "filer", "path": "x"}, "not an absolute path"),
        ({"type": "nfs", "server": "filer", "path": "/x/../etc"}, "not an absolute path"),
        ({"type": "nfs", "server": "-o", "path": "/x"}, "not a host"),
        ({"type": "nfs", "server": "filer", "path": "/x", "uri": "s3://b/x"}, "uri: a storage of type nfs has none"),
        ({"type": "nfs", "server": "filer", "path": "/x", "mountOptions": ["a,b"]}, "one mount option"),
        ({"type": "samba", "address": "srv/share"}, "expected //SERVER/SHARE"),
        ({"type": "uri", "uri": "http://x/y"}, "expected s3://"),
        ({"type": "uri", "uri": "s3://key:secret@bucket/x"}, "no user, password"),
        ({"type": "folder", "path": "/srv", "hostPath": "/srv"}, "hostPath"),
        ({"type": "other"}, "say hostPath, or the CSI driver"),
        ({"type": "nsf", "server": "a", "path": "/x"}, "expected one of nfs"),
        ({"type": "pvc", "clam": "x"}, "unknown field"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as refused:
        storage(**fields)
    assert said in str(refused.value)


def test_a_job_names_storages_and_where_it_finds_them() -> None:
    document = load_job(job(storages=["data", {"name": "home", "mountPath": "/home/me/"}, {"name": ""}]))
    assert [(use.name, use.where) for use in document.spec.storages[:2]] == [
        ("data", "/mnt/data"),
        ("home", "/home/me"),
    ]
    assert document.spec.storages[2].name == ""
    short = short_form(document)
    assert short["storages"] == ["data", {"name": "home", "mountPath": "/home/me"}, ""]
    assert load_job(short).to_json() == document.to_json()
    assert load_job(document.to_document()).to_json() == document.to_json()


@pytest.mark.parametrize(
    ("storages", "said"),
    [
        (["data", {"name": "data"}], "two storages have the path"),
        ([{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x/"}], "two storages have the path"),
        ([{"name": "a", "mountPath": "/"}], "nothing can be mounted at"),
        ([{"name": "a", "mountPath": "/proc/self"}], "nothing can be mounted at"),
        ([{"name": "a", "mountPath": "here"}], "not an absolute path"),
        ([{"name": "a", "mountPath": "/data:U"}], "would be read as an option"),
        ([{"name": "a", "mountPath": "/x/../../etc"}], "not an absolute path"),
        ([{"name": "", "mountPath": "/x"}], "only a storage that is named"),
        ([{"mountPath": "/x"}], "name: missing"),
        (["a b"], "beginning with a letter or digit"),
    ],
)
def test_a_path_that_nothing_can_be_mounted_at_is_refused(storages: list[Any], said: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_job(job(storages=storages))
    assert said in str(refused.value)


def test_a_queue_may_be_closed() -> None:
    (queue,) = load_document({"kind": "Queue", "name": "q", "closed": True})
    assert to_document(queue)["closed"] is True
