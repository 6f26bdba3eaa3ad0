"""What a certificate is for, and which one tasks are told to accept alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from corral.kernel.certificate import fingerprint, first_certificate
from corral.own_certificate import names, own_certificate
from corral.settings import Settings

END = datetime(2030, 1, 2, tzinfo=UTC)


def certificate(*alternatives: x509.GeneralName) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab.example")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, END - timedelta(days=9), END)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def test_a_certificate_is_for_the_names_and_addresses_that_it_lists() -> None:
    import ipaddress

    found = certificate(
        x509.DNSName("Lab.example"), x509.DNSName("*.ai.example"), x509.IPAddress(ipaddress.ip_address("fd00::1"))
    )
    assert all(names(found, host) for host in ("lab.example", "LAB.example", "a.ai.example", "fd00:0::1"))
    assert not any(names(found, host) for host in ("ai.example", "a.b.ai.example", "fd00::2", "example", ""))
    assert not names(certificate(), "lab.example"), "a common name counts for nothing"
    with pytest.raises(ValueError, match="PEM"):
        names("none", "lab.example")


def test_the_fingerprint_is_that_of_the_first_of_a_chain() -> None:
    one, two = certificate(), certificate()
    assert first_certificate(f"# mine\n{one}{two}") == one.strip() and first_certificate("none") == ""
    known = x509.load_pem_x509_certificate(one.encode()).fingerprint(hashes.SHA256())
    assert fingerprint(one + two) == known.hex(":").upper()


@pytest.mark.parametrize(
    ("advertise", "told"),
    [
        ("", True),
        ("https://lab.example:30443", True),
        ("https://other.example", False),
        ("http://lab.example", False),
    ],
)
def test_tasks_accept_the_servers_own_certificate_alone_where_it_is_for_the_advertised_host(
    tmp_path: Path, advertise: str, told: bool
) -> None:
    own = certificate(x509.DNSName("lab.example"))
    file = tmp_path / "chain.pem"
    file.write_text(own + certificate())
    settings = Settings(tls_certificate=file, tls_key=file, advertise=advertise)
    assert own_certificate(settings).strip() == (own.strip() if told else "")
    assert own_certificate(Settings(advertise=advertise)) == ""
