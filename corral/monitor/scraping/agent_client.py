"""Ask one agent for what it measures, within a time and a size. Redirects are not followed, because they are refused."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import Unavailable
from corral.model.metrics.agent_page import MOST_BYTES, PATH
from corral.monitor.scraping.addresses import Address

SECONDS: Final = 5.0
"""Seconds in which an agent must have answered."""
_MOST_HEAD: Final = 65_536
_MOST_TOKEN: Final = 4096
_MOST_SENTENCE: Final = 1000
"""Bytes of an agent's sentence."""


class Target(NamedTuple):
    """The agent at one network address."""

    address: Address
    ip: str

    def __str__(self) -> str:
        ip = f"[{self.ip}]" if ":" in self.ip else self.ip
        return f"{self.address}" if self.ip == self.address.host else f"{self.address} ({ip})"


async def ask(target: Target, token: str, seconds: float = SECONDS) -> bytes:
    """The body of an agent's answer.

    Raises Unavailable, with one sentence, if it does not answer in time and as agents do.
    """
    status, body = await _answer(target, token, "GET", PATH, MOST_BYTES, seconds)
    if status == 401 and target.address.engine:
        message = "It does not know the token that the server gave it: does another program listen at its port?"
        raise Unavailable("agent-refuses", message)
    if status == 401:
        raise Unavailable("agent-refuses", "It does not know the token of the server's `agents_token_file`.")
    if status != 200:
        raise Unavailable("agent-refuses", f"It answers with the status {status}.")
    return body


async def post(target: Target, token: str, path: str, seconds: float) -> str:
    """Ask an agent to do something; its sentence when it is done.

    Raises Unavailable with the agent's sentence if it refuses or fails, or if it does not answer as agents do.
    """
    status, body = await _answer(target, token, "POST", path, _MOST_SENTENCE, seconds)
    said = "".join(letter for letter in body.decode(errors="replace").strip() if letter.isprintable())
    if status != 200:
        raise Unavailable("agent-refuses", said or f"It answers with the status {status}.")
    return said


async def _answer(target: Target, token: str, method: str, path: str, most: int, seconds: float) -> tuple[int, bytes]:
    try:
        async with asyncio.timeout(seconds):
            return await _asked(target, token, method, path, most)
    except TimeoutError:
        raise Unavailable("agent-silent", f"It did not answer within {seconds:g} s.") from None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise _not_understood() from None
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or type(error).__name__
        raise Unavailable("agent-silent", f"It cannot be reached over TLS: {reason}.") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else type(error).__name__
        raise Unavailable("agent-silent", f"It cannot be reached: {reason}.") from None


def read_token(path: Path | None) -> str:
    """The token of a file; "" without one. Raises Unavailable for a file that has none."""
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_TOKEN).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise Unavailable("agent-token", "The file of the agents' token cannot be read.") from None
    if not re.fullmatch(r"[!-~]+", token):
        raise Unavailable("agent-token", "The file of the agents' token has no token of one word.")
    return token


async def _asked(target: Target, token: str, method: str, path: str, most: int) -> tuple[int, bytes]:
    address = target.address
    tls = ssl.create_default_context() if address.encrypted else None
    name = address.host if tls else None
    reader, writer = await asyncio.open_connection(
        target.ip, address.port, ssl=tls, server_hostname=name, limit=_MOST_HEAD
    )
    try:
        host = f"[{address.host}]" if ":" in address.host else address.host
        lines = [f"{method} {address.path}{path} HTTP/1.1", f"Host: {host}:{address.port}", "Connection: close"]
        if method == "POST":
            lines.append("Content-Length: 0")
        if token:
            lines.append(f"Authorization: Bearer {token}")
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        await writer.drain()
        status, length = _status(await reader.readuntil(b"\r\n\r\n"), most)
        return status, await reader.readexactly(length)
    finally:
        writer.transport.abort()


def _status(head: bytes, most: int) -> tuple[int, int]:
    """The status and the length of the body after a head; of a refusal only a short body is read.

    Raises Unavailable for a head that is no agent's.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    found = re.match(r"HTTP/1\.[01] (\d{3})(?: |$)", first)
    if found is None:
        raise _not_understood()
    told = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("content-length:")]
    known = len(told) == 1 and re.fullmatch(r"[0-9]{1,15}", told[0]) is not None
    if found[1] != "200":
        return int(found[1]), int(told[0]) if known and int(told[0]) <= _MOST_SENTENCE else 0
    if not known:
        raise Unavailable("agent-not-understood", "It does not say how long its answer is.")
    if int(told[0]) > most:
        size = f"{most // 2**20} MiB" if most >= 2**20 else f"{most} bytes"
        raise Unavailable("agent-too-much", f"It answers with more than {size}.")
    return 200, int(told[0])


def _not_understood() -> Unavailable:
    return Unavailable("agent-not-understood", "Its answer is not that of a node's agent.")
