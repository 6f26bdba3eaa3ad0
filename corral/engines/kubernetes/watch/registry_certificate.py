"""When the certificate of the cluster's own registry ends.

A registry that answers callers with a certificate alone shows its own to all of them, so the server needs none.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from corral.engines.kubernetes.api.response import told_end

_log = logging.getLogger(__name__)
_BETWEEN: Final = 3600.0
_AFTER_FAILURE: Final = 300.0
_MOST_SECONDS: Final = 10.0


class RegistryCertificate:
    """The certificate that a registry shows, read again each hour."""

    def __init__(self, host: str, port: int, *, after_failure: float = _AFTER_FAILURE) -> None:
        self._host, self._port, self._after_failure = host, port, after_failure
        self.ends: float | None = None
        """When the one that was seen last ends, in seconds since 1970; None as long as none was seen.

        None too for a certificate that something renews by itself (`told_end`).
        """

    async def follow(self) -> None:
        """Read it now and then; one that cannot be read stays as it was, and is tried again sooner."""
        well = True
        while True:
            try:
                async with asyncio.timeout(_MOST_SECONDS):
                    self.ends = told_end(*await _shown(self._host, self._port))
            except (OSError, ValueError) as error:  # of OSError: an error of TLS, and a time that ran out
                if well:
                    _log.warning(
                        "the certificate of the registry at %s:%d was not read: %r", self._host, self._port, error
                    )
                well = False
                await asyncio.sleep(self._after_failure)
            else:
                well = True
                await asyncio.sleep(_BETWEEN)


async def _shown(host: str, port: int) -> tuple[float, float]:
    """When the certificate at an address begins and ends. Raises OSError or ValueError where none is shown."""
    from cryptography import x509

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # one that has ended is read, too
    _, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    if not shown:
        raise ValueError("it shows no certificate")
    try:
        read = x509.load_der_x509_certificate(shown)
    except x509.InvalidVersion as error:
        raise ValueError(f"its certificate is not read: {error}") from None
    return read.not_valid_before_utc.timestamp(), read.not_valid_after_utc.timestamp()
