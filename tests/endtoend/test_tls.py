"""With a certificate all connections use TLS: the CLI, uploads, terminals, and the tasks' own calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.endtoend.platform import Platform, one

pytestmark = pytest.mark.timeout(300)


class Certified:
    """A certificate for this machine, and the authority that signed it."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.certificate, self.key = (folder / name for name in ("ca.pem", "server.pem", "server.key"))
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.ca))
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(str(self.key))
        for blob in issued.cert_chain_pems:
            blob.write_to_path(str(self.certificate), append=True)

    def options(self) -> list[str]:
        """The options that `corral up` needs."""
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("tls")
    issued = Certified(folder)
    made = Platform(folder, *issued.options(), ca=issued.ca)
    made.up()
    yield made
    made.down()


def test_a_job_is_sent_followed_and_entered_over_tls(platform: Platform, tmp_path: Path) -> None:
    assert platform.url.startswith("https://127.0.0.1:")
    (tmp_path / "answer").write_text("42\n")
    (tmp_path / "job.yaml").write_text("name: sent\nframework: shell\ncode: .\nroles: {main: {command: cat answer}}\n")
    assert platform.corral("submit", "-f", "job.yaml", folder=tmp_path) == "42\n"
    job = platform.submit(one("entered", "echo up; exec sleep 1000"))
    platform.printed_running(job, "main-0", "up")
    assert platform.corral("exec", "entered", "main-0", "--", "cat", given="through\n") == "through\n"
    assert platform.until(job, lambda now: now["state"] == "running")


def test_tasks_find_each_other_though_nobody_told_them_the_authority(platform: Platform) -> None:
    command = "echo peer $(peer:main-0:host) $(peer:main-1:port:http)"
    job = platform.ran(one("peers", command, barrier=True, role={"replicas": 2, "ports": ["http"]}))
    assert job["state"] == "succeeded", platform.log(job)
    assert platform.log(job, "main-0").startswith("peer 127.0.0.1 ")


def test_who_does_not_trust_the_authority_is_told_how(platform: Platform) -> None:
    stranger = {"CORRAL_URL": platform.url, "CORRAL_TOKEN": "crl_x", "XDG_CONFIG_HOME": "/none"}
    said = platform.refused("ls", code=5, env=stranger)
    assert "CORRAL_CA" in said


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ("no key", "needs both"),
        ("no such file", "cannot be read"),
        ("another key", "cannot be used"),
        ("no certificate", "cannot be used"),
        ("a key with a password", "without a password"),
    ],
)
def test_a_certificate_that_cannot_be_served_is_refused(tmp_path: Path, what: str, hint: str) -> None:
    issued = Certified(tmp_path)
    options = issued.options()
    if what == "no key":
        options = options[:2]
    elif what == "no such file":
        issued.certificate.unlink()
    elif what == "another key":
        trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(str(issued.key))
    elif what == "no certificate":
        issued.certificate.write_text("-----BEGIN CERTIFICATE-----\nnot at all\n")
    else:
        lock(issued.key)
    platform = Platform(tmp_path, *options)
    said = platform.refused("up", *platform.options(), code=2)
    assert hint in said and "--tls-cert" in said
    assert len(said.strip().splitlines()) == 1


def lock(key: Path) -> None:
    """Encrypt a private key with a password."""
    from cryptography.hazmat.primitives import serialization

    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.BestAvailableEncryption(b"password"),
        )
    )


def test_a_plain_call_to_a_secure_port_is_no_answer_and_harms_nobody(platform: Platform) -> None:
    address = platform.url.replace("https:", "http:")
    said = platform.refused("ls", code=5, env={"CORRAL_URL": address, "CORRAL_TOKEN": "crl_none"})
    assert "Traceback" not in said
    assert platform.client.me()["user"]
