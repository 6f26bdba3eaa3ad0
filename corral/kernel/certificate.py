"""The first certificate of a chain in PEM, and its fingerprint."""

from __future__ import annotations

import base64
import hashlib

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def first_certificate(chain: str) -> str:
    """The first certificate of a chain, which is the server's own; "" where there is none."""
    _, begin, rest = chain.partition(_BEGIN)
    body, end, _ = rest.partition(_END)
    return f"{begin}{body}{end}" if end else ""


def fingerprint(chain: str) -> str:
    """The SHA-256 of the first certificate of a chain, as browsers show it. Raises ValueError where it is damaged."""
    body = "".join(first_certificate(chain).removeprefix(_BEGIN).removesuffix(_END).split())
    digest = hashlib.sha256(base64.b64decode(body, validate=True)).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
