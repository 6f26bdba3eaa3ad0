"""A backup is taken by the first control plane that answers; the portal's key then comes from the cluster."""

from __future__ import annotations

import base64
import io
import tarfile
from pathlib import Path
from typing import IO, Any

import pytest

from corral.cli.deploy_backup import backup
from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.backup import PARTS
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

    def __init__(self, *, lost: set[str], without_api: set[str]) -> None:
        self.lost, self.without_api, self.asked = lost, without_api, list[tuple[str, str]]()

    def __call__(self, *_: object) -> Network:
        return self

    async def __aenter__(self) -> Network:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, host: Host, command: str, text: bytes, **_: Any) -> Answer:
        called = next(
            line for line in reversed(text.decode().splitlines()) if line and line not in ("}", "main </dev/null 2>&1")
        )
        self.asked.append((host.name, called.split()[0]))
        if host.name in self.lost:
            raise NotReached(Refusal(f"{host.address} port 22 does not answer", ""))
        if called.startswith("answers") and host.name in self.without_api:
            return Answer(b"The connection to the server was refused", 1)
        return Answer(b"ok", 0)

    async def save(self, host: Host, command: str, text: bytes, into: IO[bytes], **_: Any) -> int:
        self.asked.append((host.name, "print_backup"))
        with tarfile.open(fileobj=into, mode="w") as archive:
            for name in PARTS:
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
