"""Turn API server answers and connection failures into bytes, an error or a retry.

Nothing here repeats or waits; `transport` does.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import aiohttp

from corral.engines.kubernetes.api.backoff import retry_after
from corral.engines.kubernetes.api.errors import WEBHOOK, IdleTimeout, read_status, refusal
from corral.engines.kubernetes.api.resources import Call
from corral.kernel.errors import CorralError, Unavailable

CHUNK_BYTES: Final = 2**18
"""Bytes read at once: few enough to stay in the processor's cache until they are decoded."""
_RENEWED_DAYS: Final = 90


@dataclass(slots=True)
class Request:
    """One request to send, and whether it was sent."""

    call: Call
    params: dict[str, str]
    body: bytes | None
    content: str
    silence_seconds: float | None
    """Seconds without a byte after which the connection counts as dead; None leaves it to the call's deadline."""
    in_flight: bool = False
    """Whether the server may be processing it now."""


class RetryableError(Exception):
    """The call failed with `error` and may be retried after `after` seconds at the earliest."""

    def __init__(self, error: CorralError, *, sent: bool, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.sent = sent
        self.after = after
        error.details["sent"] = sent


def end_of_certificate(answer: aiohttp.ClientResponse) -> float | None:
    """When the certificate ends that the server showed, in seconds since 1970.

    None without TLS, and for a short answer, which has let go of its connection already; those of watches have it.
    """
    transport = answer.connection.transport if answer.connection is not None else None
    shown = transport.get_extra_info("peercert") if transport is not None else None
    if not shown:
        return None
    return told_end(ssl.cert_time_to_seconds(shown["notBefore"]), ssl.cert_time_to_seconds(shown["notAfter"]))


def told_end(begins: float, ends: float) -> float | None:
    """The end of a certificate that is valid between these times, in seconds since 1970.

    None where it lasts less than `_RENEWED_DAYS`: what makes such ones renews them by itself, and kubeadm's last a year.
    """
    return float(ends) if ends - begins >= _RENEWED_DAYS * 86400 else None


async def read_all(call: Call, answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Read the whole body. Raises Unavailable when it is larger than `most` bytes."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        size += len(chunk)
        if size > most:
            raise Unavailable(
                "kubernetes-answer-too-large", f"The cluster's answer to {call} is larger than {most} bytes."
            )
        chunks.append(chunk)
    return b"".join(chunks)


async def read_chunks(call: Call, answer: aiohttp.ClientResponse, idle: float) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises Unavailable when the connection fails."""
    try:
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise unreachable(call, error, idle) from None


def failure(call: Call, answer: aiohttp.ClientResponse, body: bytes) -> CorralError | RetryableError:
    """Classify an unsuccessful answer: an error, or `RetryableError` if the call may be retried."""
    status = read_status(answer.status, body)
    asked = status.details.retry_after_seconds if status.details else 0.0
    after = retry_after(answer.headers)
    after = asked or None if after is None else after
    error = refusal(call, status, retry_after=1.0 if after is None else after)
    passing = answer.status >= 500 and isinstance(error, Unavailable) and error.code != WEBHOOK
    if answer.status == 429 or passing:
        return RetryableError(error, sent=answer.status != 429, after=after)
    return error


def unreachable(call: Call, error: Exception, silence: float | None) -> Unavailable:
    """Return the Unavailable for a failed connection. Its message has no addresses or headers."""
    if isinstance(error, aiohttp.SocketTimeoutError):
        return IdleTimeout(
            "kubernetes-silent", f"The cluster fell silent for {silence or 0:g} s while asked to {call}."
        )
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "it cannot be verified"
        sentence = f"The cluster's certificate is not accepted, so Corral could not {call}: {why}."
        return Unavailable("kubernetes-certificate", sentence)
    why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return Unavailable("kubernetes-unreachable", f"The cluster could not be reached to {call} ({why}).")
