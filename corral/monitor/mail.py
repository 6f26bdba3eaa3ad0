"""Why: people want to hear of their jobs where they are not looking; a company's own mail server is what everybody has.

Mail is handed to one server over SMTP. What it refuses for now is tried again by whoever calls; what it refuses for good
is said once.
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
"""From this reply code on a server will not change its mind."""


class Mailer(Protocol):
    """Sends one message to one person."""

    async def send(self, to: str, subject: str, text: str) -> None:
        """Hand the message over.

        Raises Unavailable when that may be possible later, InvalidInput when it never will be.
        """
        ...


class SmtpMailer:
    """Mail by a server: `smtp://HOST[:PORT]` (encrypted where the server offers it) or `smtps://HOST[:PORT]`."""

    def __init__(self, server: str, sender: str, *, password: str = "") -> None:
        """A user name may stand before the host; its password is given apart.

        Raises InvalidInput for an address that is none of these.
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
        """Hand the message over; see `Mailer`."""
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
    """Text that stays one line of a message's head."""
    return " ".join(text.split())
