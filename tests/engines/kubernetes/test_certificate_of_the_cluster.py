"""The engine knows when the certificate ends that the API of its cluster shows."""

from __future__ import annotations

import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cryptography import x509

from corral.deploy.remote.portal import own_certificate
from corral.engines.base import CertifiedCluster
from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.resources import PODS, Call
from corral.engines.kubernetes.api.response import end_of_certificate
from corral.engines.kubernetes.api.server_version import server_version
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.engine import KubernetesEngine
from corral.kernel.errors import Unavailable
from tests.engines.kubernetes.faulty_server import json, kubeconfig, raw, serving

WATCH = Call("watch", PODS)
ENGINE: type[CertifiedCluster] = KubernetesEngine
"""mypy compares the two: control finds out by the protocol which engines tell it."""


async def test_a_watch_tells_when_the_certificate_of_the_api_ends(tmp_path: Path) -> None:
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    whole = own_certificate("127.0.0.1")
    key.write_bytes(whole)
    certificate = whole[whole.index(b"-----BEGIN CERTIFICATE-----") :]
    chain.write_bytes(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    async with serving(raw(b'{"type": "ADDED"}\n', then="silence"), json({}), tls=context) as server:
        file = kubeconfig(tmp_path, server.url.replace("http:", "https:"))
        document = yaml.safe_load(file.read_text())
        document["clusters"][0]["cluster"]["certificate-authority"] = str(chain)
        file.write_text(yaml.safe_dump(document))
        transport = Transport(kubeconfig_access(str(file)))
        await transport.open()
        try:
            assert transport.certificate_ends is None
            async with transport.stream(WATCH) as chunks:
                assert await anext(chunks)
            made = x509.load_pem_x509_certificate(certificate)
            assert transport.certificate_ends == made.not_valid_after_utc.timestamp()
            await transport.ask(Call("list", PODS, "x"))
            assert transport.certificate_ends is not None, "a short answer does not make it forget"
        finally:
            await transport.close()


@pytest.mark.parametrize(("begins", "ends"), [("Jan  1 00:00:00 2026 GMT", "Jan 31 00:00:00 2026 GMT")])
def test_a_certificate_that_something_renews_every_month_is_not_told(begins: str, ends: str) -> None:
    shown = {"notBefore": begins, "notAfter": ends}
    assert end_of_certificate(answer_with(shown)) is None
    year = shown | {"notAfter": "Jan  1 00:00:00 2027 GMT"}
    assert end_of_certificate(answer_with(year)) == 1798761600.0


def answer_with(certificate: dict[str, str]) -> Any:
    """An answer over a connection whose server showed this certificate."""
    transport = SimpleNamespace(get_extra_info=lambda name: certificate if name == "peercert" else None)
    return SimpleNamespace(connection=SimpleNamespace(transport=transport))


@pytest.mark.parametrize("told", [b"<html>proxy</html>", b"[]"])
async def test_a_version_that_is_no_json_is_a_refusal(tmp_path: Path, told: bytes) -> None:
    async with serving(raw(told)) as server:
        transport = Transport(kubeconfig_access(str(kubeconfig(tmp_path, server.url))))
        await transport.open()
        try:
            with pytest.raises(Unavailable, match="in no JSON"):
                await server_version(transport)
        finally:
            await transport.close()


async def test_a_cluster_without_tls_shows_none(tmp_path: Path) -> None:
    async with serving(raw(b"{}\n", then="silence"), json({})) as server:
        transport = Transport(kubeconfig_access(str(kubeconfig(tmp_path, server.url))))
        await transport.open()
        try:
            async with transport.stream(WATCH) as chunks:
                assert await anext(chunks)
            await transport.ask(Call("list", PODS, "x"))
            assert transport.certificate_ends is None
        finally:
            await transport.close()
