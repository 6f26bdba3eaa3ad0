"""Why: what a connection or the API server did is turned into bytes, a refusal, or "try again" in one place.

Nothing here repeats or waits: `transport` does.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import aiohttp

from corral.engines.kubernetes.refusals import WEBHOOK, Silent, read_status, refusal
from corral.engines.kubernetes.resources import Call
from corral.engines.kubernetes.waiting import retry_after
from corral.kernel.errors import CorralError, Unavailable

CHUNK_BYTES: Final = 2**18
"""Read at once: few enough to stay in the processor's cache until they are decoded."""


@dataclass(slots=True)
class Request:
    """One request as it will be sent, and whether it was."""

    call: Call
    params: dict[str, str]
    body: bytes | None
    content: str
    silence_seconds: float | None
    """After how long without a byte the connection counts as dead; None leaves it to the call's deadline."""
    in_flight: bool = False
    """Whether it may be with the server right now."""


class Again(Exception):
    """The call failed with `error` and may be tried again, at the earliest `after` seconds from now."""

    def __init__(self, error: CorralError, *, sent: bool, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.sent = sent
        self.after = after
        error.details["sent"] = sent


async def read_all(call: Call, answer: aiohttp.ClientResponse, most: int) -> bytes:
    """The whole body; raises Unavailable for one that is larger than anything Corral asks for."""
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
    """The body as it arrives; a connection that fails is the house's Unavailable."""
    try:
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise unreachable(call, error, idle) from None


def failure(call: Call, answer: aiohttp.ClientResponse, body: bytes) -> CorralError | Again:
    """What an answer that is no success means."""
    status = read_status(answer.status, body)
    asked = status.details.retry_after_seconds if status.details else 0.0
    after = retry_after(answer.headers)
    after = asked or None if after is None else after
    error = refusal(call, status, retry_after=1.0 if after is None else after)
    passing = answer.status >= 500 and isinstance(error, Unavailable) and error.code != WEBHOOK
    if answer.status == 429 or passing:
        return Again(error, sent=answer.status != 429, after=after)
    return error


def unreachable(call: Call, error: Exception, silence: float | None) -> Unavailable:
    """The house's error for a connection that failed; what it was about is told without addresses or headers."""
    if isinstance(error, aiohttp.SocketTimeoutError):
        return Silent("kubernetes-silent", f"The cluster fell silent for {silence or 0:g} s while asked to {call}.")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "it cannot be verified"
        sentence = f"The cluster's certificate is not accepted, so Corral could not {call}: {why}."
        return Unavailable("kubernetes-certificate", sentence)
    why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    return Unavailable("kubernetes-unreachable", f"The cluster could not be reached to {call} ({why}).")
