"""Send mail through one SMTP server.

A temporary refusal raises Unavailable, so that the caller can try again. A permanent refusal raises InvalidInput.
"""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from typing import Protocol
from urllib.parse import unquote, urlsplit

from corral.kernel.errors import InvalidInput, Unavailable

_SECONDS = 20.0
_PORTS = {"smtp": 25, "smtps": 465}
_FOR_GOOD = 500
"""SMTP reply codes from this one on are permanent refusals."""


class Mailer(Protocol):
    """Sends one message to one person."""

    async def send(self, to: str, subject: str, text: str) -> None:
        """Send one message.

        Raises Unavailable if a later try may succeed, InvalidInput if none will.
        """
        ...


class SmtpMailer:
    """Client of an SMTP server: `smtp://HOST[:PORT]` (STARTTLS where the server offers it) or `smtps://HOST[:PORT]`."""

    def __init__(self, server: str, sender: str, *, password: str = "") -> None:
        """Parse the server's address; it may have a user name before the host, whose password is `password`.

        Raises InvalidInput `bad-mail-server` for any other address, or without a sender.
        """
        parts = urlsplit(server)
        if parts.scheme not in _PORTS or not parts.hostname or not sender:
            raise InvalidInput(
                "bad-mail-server", "mail_server must read smtp://HOST:PORT or smtps://HOST:PORT, and mail_from be set."
            )
        self._encrypted = parts.scheme == "smtps"
        self._host, self._port = parts.hostname, parts.port or _PORTS[parts.scheme]
        self._user, self._password, self._sender = unquote(parts.username or ""), password, sender

    async def send(self, to: str, subject: str, text: str) -> None:
        """Send one message; see `Mailer`."""
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._sender, _line(to), _line(subject)
        message.set_content(text)
        await asyncio.to_thread(self._deliver, message)

    def _deliver(self, message: EmailMessage) -> None:
        try:
            with self._connected() as server:
                if self._user:
                    server.login(self._user, self._password)
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            code, words = next(iter(error.recipients.values()), (_FOR_GOOD, "there is no recipient"))
            raise _refused(code, words) from None
        except smtplib.SMTPResponseException as error:
            raise _refused(error.smtp_code, error.smtp_error) from None
        except (OSError, smtplib.SMTPException) as error:
            where = f"{self._host}:{self._port}"
            raise Unavailable("mail-unavailable", f"The mail server {where} does not answer: {error}") from None

    def _connected(self) -> smtplib.SMTP:
        if self._encrypted:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self._host, self._port, timeout=_SECONDS, context=context)
        server = smtplib.SMTP(self._host, self._port, timeout=_SECONDS)
        try:
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
        except BaseException:
            server.close()
            raise
        return server


def _refused(code: int, words: bytes | str) -> InvalidInput | Unavailable:
    said = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    sentence = f"The mail server refuses: {code} {said[:200]}"
    return InvalidInput("mail-refused", sentence) if code >= _FOR_GOOD else Unavailable("mail-unavailable", sentence)


def _line(text: str) -> str:
    """Join the text into one line, as a mail header requires."""
    return " ".join(text.split())
