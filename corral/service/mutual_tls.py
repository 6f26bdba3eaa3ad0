"""Mutual TLS between fronts and control, from a certificate authority derived from the server's key.

With replicas, fronts reach control over a shared network. Both sides derive the same authority, sign a certificate of
their own with it, and trust nothing else (TLS 1.3 only). No certificate has to be created, distributed or renewed.
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
"""Name of every control in its certificate, whatever its address."""
_PURPOSE: Final = "kin"
"""Must not change: processes of other versions derive the same authority from it."""
_BEGIN, _END = datetime(2020, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Certificates practically never expire, because clocks may be wrong; changing the key invalidates them."""


class TlsFiles(NamedTuple):
    """The files of one process: its certificate, its private key, and the authority that both sides trust."""

    certificate: Path
    key: Path
    authority: Path

    def client_context(self) -> ssl.SSLContext:
        """TLS context for calls to control, which must prove that it has the same key."""
        return self._trusting(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def server_context(self) -> ssl.SSLContext:
        """TLS context for control, which answers only clients that prove they have the same key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return self._trusting(context)

    def _trusting(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(self.authority)
        context.load_cert_chain(self.certificate, self.key)
        return context


def write_tls_files(key: bytes, folder: Path, role: str) -> TlsFiles:
    """Write the files of the process `role` into its private folder; `key` is the server's."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    authority_key = Ed25519PrivateKey.from_private_bytes(derive_key(key, _PURPOSE))
    own = Ed25519PrivateKey.generate()
    files = TlsFiles(*(folder / f"{role}.{what}.pem" for what in ("certificate", "key", "authority")))
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(files.certificate, _certificate(own, authority_key).public_bytes(pem))
    _write(files.key, own.private_bytes(pem, *plain))
    _write(files.authority, _certificate(authority_key, authority_key).public_bytes(pem))
    return files


def _certificate(whose: Ed25519PrivateKey, authority_key: Ed25519PrivateKey) -> x509.Certificate:
    """A certificate for the key `whose`, signed by `authority_key`; self-signed if both are the same."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def called(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    authority = whose is authority_key
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
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known(authority_key.public_key()))
        built = built.add_extension(issuer, critical=False)
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
    return built.sign(authority_key, None)


def _write(path: Path, data: bytes) -> None:
    """Replace a file by a new one of mode 0600."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
