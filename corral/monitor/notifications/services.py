"""Send messages to the services of the library `apprise`, each in a process of its own that is bounded and guarded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

import msgspec

from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.notifications.destinations import Network
from corral.model.notifications.services import read_service, service_refusal
from corral.monitor.notifications.apprise_child import Outcome, Request
from corral.monitor.notifications.http_post import SECONDS, is_refusal

_START_SECONDS: Final = 45.0
"""Seconds for the start of a process, beside those of the call."""
_MOST_TEXT: Final = 30_000
"""Characters of a text; services cut it to what they take."""
_MOST_OUTCOME: Final = 4096
_AT_ONCE: Final = 2
_PASSED_ON: Final = ("PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ")
"""What a process gets of the environment: no proxies, no home, no secrets."""


def is_installed() -> bool:
    """Whether the library is there (`pip install 'corral[notify]'`)."""
    return find_spec("apprise") is not None


class Services:
    """Sends to services that may be used, to few at the same time."""

    def __init__(self, listed: Sequence[Network] = (), *, seconds: float = SECONDS) -> None:
        """`listed` are private networks that an administrator allows; only these are sent to without encryption."""
        self._listed = tuple(listed)
        self._seconds = seconds
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def send(self, address: str, subject: str, text: str) -> None:
        """Send one message.

        Raises Unavailable if a later try may succeed, InvalidInput if none will. The messages name the scheme alone.
        """
        try:
            service = read_service(address)
        except ValueError as error:
            raise InvalidInput("bad-service", f"This is not the address of a service: {error}.") from None
        if why := service_refusal(service, self._listed):
            raise InvalidInput("service-refused", f"Nothing is sent to {service.shown}: {why}.")
        if not is_installed():
            raise Unavailable(
                "no-apprise", "This server has no library for this service: pip install 'corral[notify]'."
            )
        # A job's text must notify nobody, as a chat would for @everyone.
        asked = Request(
            address, subject, text[:_MOST_TEXT].replace("@", "@\u200b"), list(map(str, self._listed)), self._seconds
        )
        async with self._turn:
            outcome = await self._call(asked, service.shown)
        _judge(service.shown, outcome)

    async def _call(self, asked: Request, shown: str) -> Outcome:
        pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-B", "-m", "corral.monitor.notifications.apprise_child"),
                stdin=pipe, stdout=pipe, stderr=quiet, start_new_session=True,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            )  # fmt: skip
        except OSError as error:
            raise Unavailable("service-failed", f"No process can be started for {shown}: {error.strerror}.") from None
        try:
            async with asyncio.timeout(_START_SECONDS + self._seconds):
                said = await _exchange(process, msgspec.json.encode(asked))
        except TimeoutError:
            raise Unavailable("service-silent", f"{shown} did not answer in time.") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        try:
            return msgspec.json.decode(said, type=Outcome)
        except msgspec.DecodeError:
            raise Unavailable("service-failed", f"The library for {shown} ended without an answer.") from None


async def _exchange(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    """What a process answers to a request."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(ConnectionError):  # it has ended already, without an answer
        process.stdin.write(request)
        await process.stdin.drain()
        process.stdin.close()
    said = b""
    while len(said) < _MOST_OUTCOME and (chunk := await process.stdout.read(_MOST_OUTCOME - len(said))):
        said += chunk
    return said


def _judge(shown: str, outcome: Outcome) -> None:
    if outcome.sent:
        return
    if not outcome.known:
        raise InvalidInput(
            "bad-service", f"The service does not understand this address; see what apprise expects for {shown}."
        )
    if outcome.status == 0:
        raise Unavailable(
            "service-unreachable",
            f"{shown} cannot be reached: no answer came from an address that messages may go to (a public one, or one in a "
            "network that an administrator lists, notify_private).",
        )
    if 300 <= outcome.status < 400:
        raise InvalidInput("service-redirects", f"{shown} answers {outcome.status}, a redirect; check the address.")
    if is_refusal(outcome.status):
        raise InvalidInput("service-refuses", f"{shown} answers {outcome.status}; check the address.")
    raise Unavailable("service-unavailable", f"{shown} did not take the message (it answers {outcome.status}).")
