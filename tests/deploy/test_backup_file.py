"""The file of a cluster's backup: only its owner reads it, and one that was altered or cut off is refused."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.cli.deploy_backup import restore
from corral.deploy.hosts.backup import MANIFEST, PARTS, manifest_of
from corral.deploy.remote import backup_file
from corral.kernel.errors import Conflict, InvalidInput, NotFound
from tests.deploy.facts import LIST, hosts

MADE = "2026-11-28T22:00:00Z"
Members = dict[str, bytes]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    parts = tmp_path / "parts"
    for name in PARTS:
        (parts / name).parent.mkdir(parents=True, exist_ok=True)
        (parts / name).write_text(f"content of {name}")
    backup_file.write(tmp_path / "lab.backup", "lab", MADE, {name: parts / name for name in PARTS})
    return tmp_path / "lab.backup"


def test_a_backup_is_its_owner_s_alone_and_lists_its_parts_with_their_hashes(file: Path, tmp_path: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    manifest, found = backup_file.read(file, tmp_path / "read")
    assert (manifest.cluster, manifest.made, set(found)) == ("lab", MADE, set(PARTS))
    for name, path in found.items():
        assert path.read_text() == f"content of {name}"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == manifest.parts[name].digest
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Conflict, match="is there already"):
        backup_file.write(file, "lab", MADE, found)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def members_of(file: Path) -> Members:
    with tarfile.open(file) as archive:
        return {each.name: (archive.extractfile(each) or io.BytesIO()).read() for each in archive}


def rewrite(file: Path, members: Members) -> None:
    with tarfile.open(file, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def _flip(members: Members) -> None:
    members["store.db"] = b"C" + members["store.db"][1:]


def _grow(members: Members) -> None:
    members["corral.key"] += b"!"


def _drop(members: Members) -> None:
    del members["pki/ca.key"]


def _add(members: Members) -> None:
    members["../../etc/passwd"] = b"root::0:0"


def _no_manifest(members: Members) -> None:
    del members[MANIFEST]


def _other_kind(members: Members) -> None:
    members[MANIFEST] = b'{"kind": "Hosts"}'


def _fewer_parts(members: Members) -> None:
    document = json.loads(members[MANIFEST])
    del document["parts"]["pki/ca.key"], members["pki/ca.key"]
    members[MANIFEST] = json.dumps(document).encode()


def _deep(members: Members) -> None:
    members[MANIFEST] = b"[" * 30000 + b"]" * 30000


@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (_flip, "store.db is not as its manifest says"),
        (_grow, "corral.key is not as its manifest says"),
        (_drop, "pki/ca.key is not as its manifest says"),
        (_add, "passwd is not as its manifest says"),
        (_no_manifest, "not a backup of a cluster"),
        (_other_kind, "another kind"),
        (_fewer_parts, "not those of a backup"),
        (_deep, "no manifest that can be read"),
    ],
)
def test_a_backup_that_was_altered_is_refused(
    file: Path, tmp_path: Path, alter: Callable[[Members], None], says: str
) -> None:
    members = members_of(file)
    alter(members)
    rewrite(file, members)
    with pytest.raises(InvalidInput, match=says):
        backup_file.read(file, tmp_path / "read")
    assert not (tmp_path / "etc").exists()


def test_a_backup_that_was_cut_off_or_is_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    for size in (0, 100, 700, len(whole) // 2):
        file.write_bytes(whole[:size])
        with pytest.raises(InvalidInput):
            backup_file.read(file, tmp_path / "read")
    with pytest.raises(NotFound):
        backup_file.read(tmp_path / "none", tmp_path / "read")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"kind": "ClusterBackup", "version": 2}',
        b'{"kind": "ClusterBackup", "version": 1, "parts": {}}',
    ],
)
def test_a_manifest_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="no manifest that can be read"):
        manifest_of(text)


def test_what_a_control_plane_sends_needs_every_part(tmp_path: Path) -> None:
    rewrite(tmp_path / "sent.tar", {f"./{name}": b"x" for name in PARTS[1:]})
    with pytest.raises(InvalidInput, match=r"sent no store\.db"):
        backup_file.unpack(tmp_path / "sent.tar", tmp_path / "parts")


def test_a_backup_of_another_cluster_is_refused_before_a_host_is_asked(file: Path, tmp_path: Path) -> None:
    section = "corral: {host: gpu1, image: 'corral:1', postgresql: 'postgres:17'}\n"
    chosen = hosts(f"cluster: other\n{LIST}{section}")
    with pytest.raises(InvalidInput, match="repeat that name"):
        restore(chosen, tmp_path / "hosts.yaml", file, "lab", "")
    with pytest.raises(InvalidInput, match=r"is of the cluster lab: name it with --from-cluster"):
        restore(chosen, tmp_path / "hosts.yaml", file, "other", "")
    with pytest.raises(InvalidInput, match="add the section corral"):
        restore(hosts(f"cluster: lab\n{LIST}"), tmp_path / "hosts.yaml", file, "lab", "")
