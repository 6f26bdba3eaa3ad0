"""The authority of the cluster's own registry, with the certificates that it signs once: the registry's, and that of nodes.

The authority's key is forgotten at once, so that nothing else is ever signed.
"""

from __future__ import annotations

import io
import ipaddress
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from corral.deploy.steps.installation import own_line
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, Name

MOST_BYTES: Final = 64 * 1024
"""Bytes of the certificates that a host prints for another."""
LOOPBACK: Final = "127.0.0.1"
"""The address at which the registry is filled."""
_LIFETIME: Final = timedelta(days=825)


def registry_keys(address: str) -> bytes:
    """An archive with the certificates and keys of a registry at this address. Raises CorralError."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise CorralError("no-cryptography", "This installation makes no certificates.") from None
    at = ipaddress.ip_address(address)
    own = [x509.IPAddress(each) for each in dict.fromkeys((at, ipaddress.ip_address(LOOPBACK)))]
    authority, key = _signed("Corral's registry: authority", None, None, [])
    server, server_key = _signed("Corral's registry", authority, key, own)
    client, client_key = _signed("Nodes of Corral's registry", authority, key, [])

    def text_of(certificate: Certificate) -> bytes:
        return certificate.public_bytes(serialization.Encoding.PEM)

    def text_of_key(private: EllipticCurvePrivateKey) -> bytes:
        return private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    line = own_line(address, server.not_valid_after_utc.timestamp()).encode()
    parts = {
        "tls.key": text_of_key(server_key),
        "client.pem": text_of(client) + text_of_key(client_key),
        "ca.crt": text_of(authority),
        "tls.crt": line + text_of(server),
    }
    return _archive(parts)


def _signed(
    name: str, authority: Certificate | None, authority_key: EllipticCurvePrivateKey | None, own: Sequence[GeneralName]
) -> tuple[Certificate, EllipticCurvePrivateKey]:  # fmt: skip
    """A certificate and its key: of the authority itself, of a server with these addresses, or else of clients."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject: Name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # a host's clock may be slow
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None if authority else 0), critical=True)
    )
    if own:
        made = made.add_extension(x509.SubjectAlternativeName(own), critical=False)
    if authority is not None:
        oid = x509.oid.ExtendedKeyUsageOID
        made = made.add_extension(x509.ExtendedKeyUsage([oid.SERVER_AUTH if own else oid.CLIENT_AUTH]), critical=True)
    return made.sign(authority_key or key, hashes.SHA256()), key


def _archive(parts: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, text in parts.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o600
            archive.addfile(member, io.BytesIO(text))
    return made.getvalue()
