"""The file of a cluster's backup: only its owner reads it, and one that was altered or cut off is refused."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from corral.cli.deploy_backup import restore
from corral.cli.deploy_running import restore_command
from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.backup import MANIFEST, NAME_NODE, PARTS, manifest_of
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote import backup, backup_file, backup_hdfs
from corral.deploy.remote.ssh import NotReached
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound
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
        restore(chosen, tmp_path / "hosts.yaml", file, "lab", "", None)
    with pytest.raises(InvalidInput, match=r"is of the cluster lab: name it with --from-cluster"):
        restore(chosen, tmp_path / "hosts.yaml", file, "other", "", None)
    with pytest.raises(InvalidInput, match="has Corral alone, and the list has no section corral: add one"):
        restore(hosts(f"cluster: lab\n{LIST}"), tmp_path / "hosts.yaml", file, "lab", "", None)


CORRAL = "corral: {host: gpu1, image: 'corral:1', postgresql: 'postgres:17'}\n"
HADOOP = "hadoop: {master: gpu1, workers: [gpu2]}\n"


class Given:
    """What was given back, in place of hosts that would be asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kept: bool = False) -> None:
        self.parts: list[str] = []
        self._kept = kept
        monkeypatch.setattr(backup, "give_back", self.corral)
        monkeypatch.setattr(backup_hdfs, "give_back_hdfs", self.hdfs)

    async def corral(self, *_: object) -> str:
        """Take Corral's store."""
        self.parts.append("corral")
        return "the database of before is corral_before_1"

    async def hdfs(self, *_: object, asked: bool) -> str | None:
        """Take HDFS' image, or leave the one that is there."""
        self.parts.append("hdfs asked" if asked else "hdfs")
        return None if self._kept and not asked else "2 of 2 DataNodes are there, and 0 blocks are missing"


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A backup of Corral and of HDFS."""
    parts = {name: tmp_path / "all" / name for name in (*PARTS, NAME_NODE)}
    for path in parts.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    backup_file.write(tmp_path / "both.backup", "lab", MADE, parts)
    return tmp_path / "both.backup"


def whole_list() -> Hosts:
    text = LIST.replace("[worker]", "[worker, hadoop]")
    return hosts(f"cluster: lab\n{text}{CORRAL}{HADOOP}")


@pytest.mark.parametrize(
    ("only", "parts", "told", "untold"),
    [
        (None, ["corral", "hdfs"], ["newer tasks are ended", "unless the NameNode has that HDFS still"], []),
        ("corral", ["corral"], ["newer tasks are ended"], ["HDFS"]),
        (
            "hdfs",
            ["hdfs asked"],
            [f"HDFS goes back to {MADE}: files written since then are lost"],
            ["Corral", "unless"],
        ),
    ],
)
def test_one_part_is_restored_alone_where_it_is_named(
    both: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    only: str | None, parts: list[str], told: list[str], untold: list[str],
) -> None:  # fmt: skip
    given = Given(monkeypatch)
    assert restore(whole_list(), both.with_name("hosts.yaml"), both, "lab", "", only) == 0
    said = capsys.readouterr().err
    assert given.parts == parts
    assert all(each in said for each in told) and not any(each in said for each in untold)


def test_an_hdfs_that_is_there_is_left_as_it_is_and_that_is_said(
    both: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Given(monkeypatch, kept=True)
    assert restore(whole_list(), both.with_name("hosts.yaml"), both, "lab", "", None) == 0
    said = capsys.readouterr().err
    assert "HDFS is there, and is left as it is: --only hdfs restores it all the same." in said
    assert "HDFS has the files" not in said


def test_losses_are_told_before_the_name_is_asked_for_and_another_name_restores_nothing(
    both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Given(monkeypatch)
    listed = both.with_name("hosts.yaml")
    listed.write_text(f"cluster: lab\n{LIST.replace('[worker]', '[worker, hadoop]')}{CORRAL}{HADOOP}")
    words = [str(both), str(listed)]
    done = CliRunner().invoke(restore_command, words, input="lap\n", standalone_mode=False)
    assert isinstance(done.exception, InvalidInput) and given.parts == []
    assert 0 < done.output.index("files written since then are lost") < done.output.index("The name of the cluster")
    done = CliRunner().invoke(restore_command, words, input="lab\n", standalone_mode=False)
    assert done.exception is None and given.parts == ["corral", "hdfs"]


def test_a_part_without_its_section_is_left_out_and_named(
    both: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = Given(monkeypatch)
    bare = hosts(f"cluster: lab\n{LIST}{CORRAL}")
    assert restore(bare, both.with_name("hosts.yaml"), both, "lab", "", None) == 0
    assert "HDFS is not restored: the list has no section hadoop." in capsys.readouterr().err
    assert restore(whole_list(), both.with_name("hosts.yaml"), file, "lab", "", None) == 0
    assert "lab.backup has no HDFS: that is left as it is." in capsys.readouterr().err
    assert given.parts == ["corral", "corral"]
    with pytest.raises(InvalidInput, match="has no HDFS"):
        restore(whole_list(), both.with_name("hosts.yaml"), file, "lab", "", "hdfs")
    with pytest.raises(InvalidInput, match="has Corral and HDFS, and the list has no section hadoop: add one"):
        restore(bare, both.with_name("hosts.yaml"), both, "lab", "", "hdfs")


def test_an_hdfs_that_does_not_come_up_names_the_way_to_begin_again(
    both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, asked: bool) -> str | None:
        raise NotReached(Refusal("gpu1 cannot bring HDFS up", ""))

    Given(monkeypatch)
    monkeypatch.setattr(backup_hdfs, "give_back_hdfs", fails)
    with pytest.raises(CorralError, match=r"^gpu1 cannot bring HDFS up.*begin it again with --only hdfs"):
        restore(whole_list(), both.with_name("hosts.yaml"), both, "lab", "", None)


def test_a_backup_of_hadoop_alone_has_the_image_of_hdfs_and_nothing_of_corral(tmp_path: Path) -> None:
    (tmp_path / "name.tar").write_bytes(b"image")
    file = tmp_path / "lab.backup"
    backup_file.write(file, "lab", MADE, {NAME_NODE: tmp_path / "name.tar"})
    manifest, found = backup_file.read(file, tmp_path / "read")
    assert (manifest.has_hdfs, manifest.has_corral, set(found)) == (True, False, {NAME_NODE})
    with pytest.raises(InvalidInput, match="has HDFS alone, and the list has no section hadoop: add one"):
        restore(hosts(f"cluster: lab\n{LIST}"), tmp_path / "hosts.yaml", file, "lab", "", None)
    with pytest.raises(InvalidInput, match="its parts are not those of a backup"):
        manifest_of(manifest.text().replace(b"hdfs/name.tar", b"hdfs/odd.tar"))
