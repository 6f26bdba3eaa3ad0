"""Why: with replicas, fronts speak to control over a network that others share; whoever has the server's key is kin.

Mutual TLS 1.3 whose authority is derived from the key: both sides derive the same one, sign a certificate of their own
with it that nobody else could have, and trust nothing else. No certificate has to be made, given out or renewed.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from corral.kernel.tokens import derive_key

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NAME: Final = "control.corral.internal"
"""What every control is called in its certificate, at whatever address it is."""
_PURPOSE: Final = "kin"
_BEGIN, _END = datetime(2020, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Both ends may have wrong clocks; what a certificate is worth ends with the key."""


class Kin(NamedTuple):
    """The files of one process: its certificate, that one's key, and the authority that both sides trust."""

    certificate: Path
    key: Path
    authority: Path

    def of_client(self) -> ssl.SSLContext:
        """For asking control, which must show that it has the same key."""
        return self._trusting(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def of_server(self) -> ssl.SSLContext:
        """For answering those only who have the same key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return self._trusting(context)

    def _trusting(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(self.authority)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_kin(key: bytes, folder: Path, role: str) -> Kin:
    """Write what the process `role` needs into its private folder; `key` is the server's."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    elder = Ed25519PrivateKey.from_private_bytes(derive_key(key, _PURPOSE))
    own = Ed25519PrivateKey.generate()
    files = Kin(*(folder / f"{role}.{what}.pem" for what in ("certificate", "key", "authority")))
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(files.certificate, _certificate(own, elder).public_bytes(pem))
    _write(files.key, own.private_bytes(pem, *plain))
    _write(files.authority, _certificate(elder, elder).public_bytes(pem))
    return files


def _certificate(whose: Ed25519PrivateKey, elder: Ed25519PrivateKey) -> x509.Certificate:
    """A certificate of `whose` key signed by the authority; its own is the authority's."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def called(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    authority = whose is elder
    known = x509.SubjectKeyIdentifier.from_public_key
    built = (
        x509.CertificateBuilder()
        .subject_name(called("corral kin" if authority else NAME))
        .issuer_name(called("corral kin"))
        .public_key(whose.public_key())
        .serial_number(1 if authority else x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(known(whose.public_key()), critical=False)
    )
    if not authority:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known(elder.public_key()))
        built = built.add_extension(issuer, critical=False)
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
    return built.sign(elder, None)


def _write(path: Path, data: bytes) -> None:
    """A new private file in place of the one before."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
