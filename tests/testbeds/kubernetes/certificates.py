"""A new certificate authority for each control plane, whose parts authenticate each other by certificates."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Authority:
    """Signs the certificates of one cluster; all files are in `home`, keys readable by their owner only."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("corral-test-authority")
        self.certificate = home / "ca.crt"
        usage = dict.fromkeys(_USES, False) | {"key_cert_sign": True, "crl_sign": True}
        marks = [x509.BasicConstraints(ca=True, path_length=None), x509.KeyUsage(**usage)]
        self.certificate.write_bytes(self._sign(self._key, self._name, *marks, critical=True))

    def server(self, name: str, hosts: Sequence[str]) -> tuple[Path, Path]:
        """Certificate and key of a server with these names and addresses."""
        return self._issue(name, _named(name), ExtendedKeyUsageOID.SERVER_AUTH, hosts)

    def client(self, user: str, groups: Sequence[str] = ()) -> tuple[Path, Path]:
        """Certificate and key of the client `user`, a member of `groups`."""
        return self._issue(user.replace(":", "-"), _named(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def signing_key(self, name: str) -> tuple[Path, Path]:
        """An RSA key for tokens of service accounts: the public half and the private one."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = self._home / f"{name}.pub"
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
        return public, self._write_key(name, key)

    def _issue(
        self, file: str, subject: x509.Name, use: x509.ObjectIdentifier, hosts: Sequence[str]
    ) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        extensions: list[x509.ExtensionType] = [x509.ExtendedKeyUsage([use])]
        if hosts:
            extensions.append(x509.SubjectAlternativeName([_host(host) for host in hosts]))
        certificate = self._home / f"{file}.crt"
        certificate.write_bytes(self._sign(key, subject, *extensions))
        return certificate, self._write_key(file, key)

    def _sign(
        self,
        key: ec.EllipticCurvePrivateKey,
        subject: x509.Name,
        *extensions: x509.ExtensionType,
        critical: bool = False,
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=7))
        for extension in extensions:
            builder = builder.add_extension(extension, critical)
        own, signer = key.public_key(), self._key.public_key()
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _write_key(self, file: str, key: _Key) -> Path:
        path = self._home / f"{file}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return path


def _named(name: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
