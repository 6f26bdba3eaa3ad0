"""The engine knows when the certificate ends that the registry of its cluster's own shows."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ssl
import tarfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from corral.control.engine_set import EngineSet
from corral.deploy.remote.registry_keys import registry_keys
from corral.engines.kubernetes.settings import settings_of
from corral.engines.kubernetes.watch.registry_certificate import RegistryCertificate
from corral.kernel.errors import InvalidInput
from tests.engines.kubernetes.engine_harness import Harness, until
from tests.reserved import free_port
from tests.testbeds import registry as testbed
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.daemons import Daemon

HERE = "127.0.0.1"


def certificate(folder: Path, begins: timedelta, ends: timedelta) -> ssl.SSLContext:
    """A server's TLS with a certificate of its own that is valid between these times from now."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "a registry")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now + begins).not_valid_after(now + ends)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "tls.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kept = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "tls.key").write_bytes(key.private_bytes(*kept))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


def end_in(folder: Path) -> float:
    read = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    return read.not_valid_after_utc.timestamp()


@contextlib.asynccontextmanager
async def followed(watched: RegistryCertificate) -> AsyncIterator[None]:
    task = asyncio.create_task(watched.follow())
    try:
        yield
        assert not task.done(), "it goes on whatever it finds"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def listening(port: int, tls: ssl.SSLContext | None) -> AsyncIterator[list[str]]:
    """A server that notes each connection, and answers none."""
    seen: list[str] = []

    async def noted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append("connected")
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(noted, HERE, port, ssl=tls)
    try:
        yield seen
    finally:
        server.close()


@pytest.mark.parametrize("ends", [timedelta(days=400), timedelta(days=-3)])
async def test_the_end_of_a_certificate_is_read_after_it_too(tmp_path: Path, ends: timedelta) -> None:
    port = free_port()
    async with listening(port, certificate(tmp_path, timedelta(days=-400), ends)):
        watched = RegistryCertificate(HERE, port)
        async with followed(watched):
            await until(lambda: watched.ends is not None)
    assert watched.ends == end_in(tmp_path)


async def test_a_registry_that_is_away_and_one_without_tls_are_asked_again(tmp_path: Path) -> None:
    port = free_port()
    watched = RegistryCertificate(HERE, port, after_failure=0.01)
    async with followed(watched):
        async with listening(port, None) as seen:
            await until(lambda: len(seen) > 1)
            assert watched.ends is None
        async with listening(port, certificate(tmp_path, timedelta(), timedelta(days=400))):
            await until(lambda: watched.ends is not None)
    assert watched.ends == end_in(tmp_path)


@pytest.mark.skipif(bool(testbed.missing()), reason=testbed.missing())
async def test_docker_registry_shows_it_to_a_caller_that_it_does_not_let_in(tmp_path: Path) -> None:
    """As `corral deploy up` sets it up: only nodes with their certificate may pull."""
    with tarfile.open(fileobj=io.BytesIO(registry_keys(HERE))) as archive:
        archive.extractall(tmp_path, filter="data")
    port = free_port()
    tls = {
        "certificate": str(tmp_path / "tls.crt"), "key": str(tmp_path / "tls.key"),
        "clientcas": [str(tmp_path / "ca.crt")], "minimumtls": "tls1.2",
    }  # fmt: skip
    config = {
        "version": 0.1, "storage": {"filesystem": {"rootdirectory": str(tmp_path / "images")}},
        "http": {"addr": f"{HERE}:{port}", "tls": tls},
    }  # fmt: skip
    (tmp_path / "config.yml").write_text(yaml.safe_dump(config))
    daemon = Daemon("registry", ["docker-registry", "serve", tmp_path / "config.yml"], tmp_path)
    watched = RegistryCertificate(HERE, port, after_failure=0.05)
    try:
        daemon.start(lambda: True)
        async with followed(watched):
            await until(lambda: watched.ends is not None)
    finally:
        daemon.stop()
    assert watched.ends == end_in(tmp_path)


@pytest.mark.kubernetes
@pytest.mark.timeout(300)
async def test_the_engine_tells_it_and_control_by_the_engine_s_name(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    port = free_port()
    async with listening(port, certificate(tmp_path, timedelta(), timedelta(days=400))):
        async with Harness(control_plane, namespace, tmp_path / "engine", registry=(HERE, port)) as at:
            await until(lambda: at.engine.certificate_ends)
            ends = {"registry": end_in(tmp_path)}
            assert at.engine.certificate_ends == ends, "that of this cluster's API lasts a week"
            engines = EngineSet({"kubernetes": at.engine}, lambda _: None, lambda: None)
            assert engines.certificate_ends() == {}, "control has not opened it"
            engines.away.clear()
            assert engines.certificate_ends() == {("kubernetes", of): end for of, end in ends.items()}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", None),
        ("10.0.0.2:5443", ("10.0.0.2", 5443)),
        ("[fd00::2]:5443", ("fd00::2", 5443)),
        ("Hub.example:443", ("hub.example", 443)),
    ],
)
def test_the_registry_is_host_and_port(text: str, read: tuple[str, int] | None) -> None:
    assert settings_of("u", namespace="n", registry=text).registry == read


@pytest.mark.parametrize(
    "text", ["hub", "hub:", "hub:0", "hub:99999", ":5443", "https://hub:5443", "hub:5443/v2", "me@hub:5443"]
)
def test_other_words_for_it_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cluster_registry is HOST:PORT"):
        settings_of("u", namespace="n", registry=text)
