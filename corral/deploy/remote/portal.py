"""The portal's key and certificate, read or made where they are sent, and its one-time sign-in link."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from corral.deploy.hosts.reader import Host
from corral.deploy.remote.ssh import NotReached, Ssh, as_root
from corral.deploy.steps.installation import is_address, own_line
from corral.deploy.steps.outcome import last_error
from corral.deploy.steps.script import question_of
from corral.deploy.steps.step import Portal
from corral.kernel.errors import CorralError, InvalidInput, NotFound

_MOST_BYTES: Final = 64 * 1024
"""Bytes of a certificate's file, or of its key's."""
_LIFETIME: Final = timedelta(days=825)
_FUNCTIONS: Final = Path(__file__).with_name("do.sh")
_LINK: Final = re.compile(r"https://[^\s#]{1,300}/sign-in#link=[A-Za-z0-9_-]{20,200}")
_SECONDS: Final = 300


def chain_at(path: Path) -> str:
    """The certificates of a file. Raises NotFound or InvalidInput."""
    found = "\n".join(re.findall("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", _read(path), re.DOTALL))
    if not found:
        raise InvalidInput("odd-certificate", f"{path} has no certificate (PEM).")
    return found + "\n"


def portal_text(portal: Portal, folder: Path) -> bytes:
    """The portal's key and certificate in PEM; those of the list are relative to `folder`. Raises CorralError."""
    if not portal.certificate:
        return own_certificate(portal.address)
    certificate, key = (folder / Path(each).expanduser() for each in (portal.certificate, portal.key))
    text, chain = _read(key), chain_at(certificate)
    if "ENCRYPTED" in text:
        raise InvalidInput("locked-key", f"{key} asks for a password: write the key without one (openssl pkey).")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError):
        raise InvalidInput("odd-key", f"{key} is not the private key of {certificate}.") from None
    return f"{text.rstrip()}\n{chain}".encode()


def own_certificate(address: str) -> bytes:
    """A new key, and a certificate of it for this address, signed by itself. Raises CorralError."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise CorralError(
            "no-cryptography", "This installation makes no certificates: name one in the list (corral.certificate)."
        ) from None
    import ipaddress

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "Corral")])
    own = x509.IPAddress(ipaddress.ip_address(address)) if is_address(address) else x509.DNSName(address)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # a browser's clock may be slow
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([own]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    line = own_line(address, made.not_valid_after_utc.timestamp())
    return line.encode() + private + made.public_bytes(pem)


async def first_link(ssh: Ssh, host: Host, namespace: str) -> str:
    """A one-time sign-in link for the administrator; "" once one has signed in. It is in no log. Raises CorralError."""
    script = question_of(_FUNCTIONS.read_text(encoding="utf-8"), "print_link", namespace)
    try:
        answer = await ssh.ask(host, f"{as_root(host)}sh -s", script, most=_MOST_BYTES, seconds=_SECONDS)
    except NotReached as error:
        raise CorralError("no-link", f"{host.name} made no sign-in link: {error.refusal.message}.") from None
    text = answer.output.decode(errors="replace").strip()
    if answer.code or (text and not _LINK.fullmatch(text)):
        why = "it ended with an error" if _LINK.search(text) else last_error(text)
        raise CorralError("no-link", f"{host.name} made no sign-in link: {why}.")
    return text


def _read(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("no-such-file", f"There is no file {path}.") from None
    except OSError as error:
        raise InvalidInput("unreadable-file", f"{path} cannot be read: {error.strerror}.") from None
    if len(text) > _MOST_BYTES:
        raise InvalidInput("large-file", f"{path} is longer than {_MOST_BYTES >> 10} KiB.")
    return text.decode(errors="replace")
