"""A backup is taken and restored by the first control plane that answers; the portal's key comes from the cluster."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from corral.cli.deploy_backup import backup, restore
from corral.cli.exit_codes import OK, REFUSED
from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.backup import HDFS, PARTS
from corral.deploy.hosts.reader import Host
from corral.deploy.remote import backup as taking
from corral.deploy.remote import backup_file
from corral.deploy.remote.ssh import Answer, NotReached
from corral.kernel.errors import CorralError
from tests.deploy.facts import hosts
from tests.deploy.test_functions_of_control_planes import call, seen
from tests.deploy.test_installation import SECTION

THREE = """\
cluster: lab
hosts:
  head1: {address: 10.0.0.1, roles: [control-plane]}
  head2: {address: 10.0.0.2, roles: [control-plane]}
  head3: {address: 10.0.0.3, roles: [control-plane]}
  gpu1: {address: 10.0.0.4, roles: [worker]}
"""
_ALONE = "alone || return"
"""The line before the call of a function that waits for the end of any other."""
KUBECTL = """#!/bin/sh
echo "$*" >>$SEEN
case $* in
  *exec*) echo the store ;;
  *corral-key*) printf a2V5 ;;
  *corral-portal*tls*key*) printf 'S0VZCg==' ;;
  *corral-portal*tls*crt*) printf "$CERTIFICATE" ;;
esac
"""
PUBLIC = "-----BEGIN CERTIFICATE-----\nnew\n-----END CERTIFICATE-----\n"
AUTHORITIES = (
    "ca.crt",
    "ca.key",
    "sa.key",
    "sa.pub",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
)


class Network:
    """SSH in which some hosts do not answer, and the Kubernetes of others does not."""

    def __init__(self, *, lost: set[str], without_api: set[str], hdfs: str = "well") -> None:
        self.lost, self.without_api, self.asked = lost, without_api, list[tuple[str, str]]()
        self._hdfs, self.received = hdfs, b""

    def __call__(self, *_: object) -> Network:
        return self

    async def __aenter__(self) -> Network:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, host: Host, command: str, text: bytes | Iterator[bytes], **_: Any) -> Answer:
        if not isinstance(text, bytes):
            self.asked.append((host.name, "receives"))
            self.received = b"".join(text)
            return Answer(b"", 0)
        lines = text.decode().splitlines()
        called = (
            lines[lines.index(_ALONE) + 1] if _ALONE in lines else next(each for each in lines[::-1] if each != "}")
        )
        self.asked.append((host.name, called.split()[0]))
        if host.name in self.lost:
            raise NotReached(Refusal(f"{host.address} port 22 does not answer", ""))
        if called.startswith("answers") and host.name in self.without_api:
            return Answer(b"The connection to the server was refused", 1)
        if called.startswith("prepare_hdfs_backup") and self._hdfs == "safe mode":
            return Answer(b"rollEdits: Log not rolled. Name node is in safe mode.", 255)
        return Answer(b"ok", 0)

    async def save(self, host: Host, command: str, text: bytes, into: IO[bytes], **_: Any) -> int:
        self.asked.append((host.name, "print_backup"))
        with tarfile.open(fileobj=into, mode="w") as archive:
            of_hdfs = HDFS if self._hdfs == "well" else ()
            for name in of_hdfs if ("prepare_hdfs_backup" in self.asked[-2]) else PARTS:
                entry = tarfile.TarInfo(f"./{name}")
                entry.size = len(name)
                archive.addfile(entry, io.BytesIO(name.encode()))
        return 0


def take(folder: Path, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "Ssh", network)
    assert (
        backup(
            hosts(THREE + SECTION + "kubernetes: {endpoint: 10.0.0.9}\n"), folder / "hosts.yaml", folder / "lab.backup"
        )
        == 0
    )


def test_the_next_control_plane_is_asked_when_the_first_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network = Network(lost={"head1"}, without_api={"head2"})
    take(tmp_path, network, monkeypatch)
    said = capsys.readouterr().err
    assert "head1: 10.0.0.1 port 22 does not answer; asking the next control plane." in said
    assert "head2: head2 cannot ask its Kubernetes: it said The connection to the server was refused; asking" in said
    assert [name for name, function in network.asked if function == "print_backup"] == ["head3"]
    manifest, _ = backup_file.read(tmp_path / "lab.backup", tmp_path / "read")
    assert manifest.cluster == "lab"


def test_one_that_answers_is_asked_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(lost=set(), without_api=set())
    take(tmp_path, network, monkeypatch)
    assert {name for name, _ in network.asked} == {"head1"}


def test_where_none_answers_one_sentence_says_so_and_no_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CorralError, match=r"^10\.0\.0\.3 port 22 does not answer\.$"):
        take(tmp_path, Network(lost={"head1", "head2", "head3"}, without_api=set()), monkeypatch)
    assert not list(tmp_path.iterdir())


def test_a_restore_is_done_by_the_next_control_plane_when_the_first_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take(tmp_path, Network(lost=set(), without_api=set()), monkeypatch)
    network = Network(lost={"head1"}, without_api={"head2"})
    monkeypatch.setattr(taking, "Ssh", network)
    chosen = hosts(THREE + SECTION + "kubernetes: {endpoint: 10.0.0.9}\n")
    where = tmp_path / "hosts.yaml", tmp_path / "lab.backup"
    assert restore(chosen, *where, "lab", "", None) == OK
    assert "head1: 10.0.0.1 port 22 does not answer; asking the next control plane." in capsys.readouterr().err
    assert [name for name, function in network.asked if function == "receives"] == ["head3"]
    assert network.asked[-1] == ("head3", "restore_corral")
    with tarfile.open(fileobj=io.BytesIO(network.received)) as archive:
        assert sorted(archive.getnames()) == ["corral.key", "store.db"]
    network = Network(lost={"head1", "head2", "head3"}, without_api=set())
    monkeypatch.setattr(taking, "Ssh", network)
    with pytest.raises(CorralError, match=r"^10\.0\.0\.3 port 22 does not answer\. Begin it again, or run up\.$"):
        restore(chosen, *where, "lab", "", None)


HADOOP = "hadoop: {master: store1, workers: [store1]}\n"
WITH_HADOOP = (
    THREE + "  store1: {address: 10.0.0.5, roles: [hadoop]}\n" + SECTION + "kubernetes: {endpoint: 10.0.0.9}\n" + HADOOP
)


@pytest.mark.parametrize(
    ("hdfs", "why"),
    [
        (
            "safe mode",
            "store1 cannot gather what a backup has: it said rollEdits: Log not rolled. Name node is in safe mode.",
        ),
        ("odd", "The host sent no hdfs/name.tar."),
        ("lost", "10.0.0.5 port 22 does not answer."),
    ],
)  # fmt: skip
def test_what_keeps_hdfs_from_a_backup_is_told_and_corral_s_parts_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hdfs: str, why: str
) -> None:
    lost = {"store1"} if hdfs == "lost" else set[str]()
    monkeypatch.setattr(taking, "Ssh", Network(lost=lost, without_api=set(), hdfs=hdfs))
    assert backup(hosts(WITH_HADOOP), tmp_path / "hosts.yaml", tmp_path / "lab.backup") == REFUSED
    assert f"HDFS is not in it: {why} Make another backup once that is mended." in capsys.readouterr().err
    manifest, _ = backup_file.read(tmp_path / "lab.backup", tmp_path / "read")
    assert (manifest.has_corral, manifest.has_hdfs) == (True, False)


def test_a_backup_of_both_has_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "Ssh", Network(lost=set(), without_api=set()))
    assert backup(hosts(WITH_HADOOP), tmp_path / "hosts.yaml", tmp_path / "lab.backup") == OK
    manifest, _ = backup_file.read(tmp_path / "lab.backup", tmp_path / "read")
    assert manifest.has_corral and manifest.has_hdfs


@pytest.fixture
def plane(tmp_path: Path) -> Path:
    """A folder in place of a control plane's root."""
    for name in ("bin", "state/deploy", "run", "kubernetes/pki/etcd", "modules"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin/kubectl").write_text(KUBECTL)
    (tmp_path / "bin/kubectl").chmod(0o755)
    for name in AUTHORITIES:
        (tmp_path / "kubernetes/pki" / name).write_text(name)
    return tmp_path


def test_a_control_plane_without_the_portal_s_file_takes_it_from_the_cluster(plane: Path) -> None:
    code, said = call(plane, "prepare_backup corral", CERTIFICATE="Q0VSVAo=")
    assert code == 0, said
    gathered = plane / "state/deploy/backup"
    assert (gathered / "portal.pem").read_text() == "KEY\nCERT\n"
    assert sorted(str(path.relative_to(gathered)) for path in gathered.rglob("*") if path.is_file()) == sorted(PARTS)
    assert all(path.stat().st_mode & 0o77 == 0 for path in gathered.rglob("*"))
    assert [line for line in seen(plane) if "tls\\.key" in line]


@pytest.mark.parametrize(
    ("there", "first"),
    [
        (f"# own\nKEY\n{PUBLIC}", "# own\n"),
        (f"KEY\n{PUBLIC}", ""),
        (f"# own\nOLD\n{PUBLIC.replace('new', 'old')}", ""),
    ],
    ids=["in force", "in force and a company's", "of before"],
)
def test_of_a_file_the_mark_alone_is_taken_and_only_with_the_certificate_in_force(
    plane: Path, there: str, first: str
) -> None:
    (plane / "kubernetes/corral-portal.pem").write_text(there)
    code, said = call(plane, "prepare_backup corral", CERTIFICATE=base64.b64encode(PUBLIC.encode()).decode())
    assert code == 0, said
    gathered = plane / "state/deploy/backup"
    assert (gathered / "portal.pem").read_text() == f"{first}KEY\n{PUBLIC}"
    assert not [each for each in gathered.iterdir() if each.name.startswith("portal.") and each.suffix != ".pem"]


def test_a_cluster_without_the_certificate_gives_no_backup(plane: Path) -> None:
    code, _ = call(plane, "prepare_backup corral", CERTIFICATE="")
    assert code != 0 and not (plane / "state/deploy/backup").exists()
