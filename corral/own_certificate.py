"""The server's own certificate, as tasks are told to trust it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from corral.kernel.certificate import first_certificate
from corral.settings import Settings


def own_certificate(settings: Settings) -> str:
    """The certificate (PEM) that tasks accept alone from the server; "" without TLS, or where they reach something else.

    With an advertised URL it is the server's own if it names the host of that URL: a proxy there shows another one.
    """
    if settings.tls_certificate is None:
        return ""
    certificate = first_certificate(settings.tls_certificate.read_text())
    if not settings.advertise:
        return certificate
    advertised = urlsplit(settings.advertise)
    own = advertised.scheme == "https" and names(certificate, advertised.hostname or "")
    return certificate if own else ""


def names(certificate: str, host: str) -> bool:
    """Whether a certificate (PEM) is for this DNS name or IP address. Raises ValueError for what is no certificate."""
    from cryptography import x509

    own = x509.load_pem_x509_certificate(certificate.encode())
    try:
        found = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    try:
        return ipaddress.ip_address(host) in found.get_values_for_type(x509.IPAddress)
    except ValueError:
        labels = host.lower().split(".")
        wanted = {".".join(labels), ".".join(["*", *labels[1:]])}
        return any(name.lower() in wanted for name in found.get_values_for_type(x509.DNSName))
