"""Mail owners of OpenPAI jobs when their job starts, succeeds, fails, stops or is retried, if the job asks for it.

Owners with verified channels are told there instead, because the translation of the file asks for that.

The leader reads stored events in order. Its position is stored too, so a new leader continues there. After a crash a
message may be sent twice, but none is lost. Mails never influence scheduling.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import structlog

from corral.compat.openpai.language.names import NAME, PROTOCOL
from corral.control.loop import Control
from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.model.records import EventRecord
from corral.model.store_writes import JobRecord
from corral.monitor.mail import Mailer

log = structlog.get_logger()

REACHED: Final = "notices-seq"
"""The setting with the seq of the last event that was processed."""
ASKED: Final = "jobStatusChangeNotification"
_EVERY_SECONDS: Final = 2.0
_AT_ONCE: Final = 500
_TRIES: Final = 30
"""Tries for one message before it is given up, so that it cannot block all later ones for good."""


class Notices:
    """Sends the mails that jobs ask for."""

    def __init__(self, control: Control, mailer: Mailer, *, every_seconds: float = _EVERY_SECONDS) -> None:
        self._control, self._mailer, self._every = control, mailer, every_seconds
        self._tries = 0

    async def run(self) -> None:
        """Look for new events every two seconds until cancelled."""
        await self._control.ready.wait()
        while True:
            try:
                await self.look()
            except Unavailable as error:
                log.warning("a notice has to wait", code=error.code, message=error.message)
            await asyncio.sleep(self._every)

    async def look(self) -> int:
        """Mail the events since the last look; returns the number of messages.

        Raises Unavailable when the mail server or the store is away; the rest is mailed at a later look.
        """
        store = self._control.store
        reached = await store.setting(REACHED)
        if reached is None:  # events before mail was set up are not mailed
            await store.put_setting(REACHED, await store.last_seq())
            return 0
        sent = 0
        while events := await store.events(int(reached), _AT_ONCE):
            try:
                for event in events:
                    sent += await self._tell(event)
                    reached = event.seq
            finally:
                await store.put_setting(REACHED, reached)
        return sent

    async def _tell(self, event: EventRecord) -> int:
        """Mail one event if its job asks for it; returns the number of messages."""
        if event.kind not in ("job.started", "job.retried", "job.completed"):
            return 0
        record = await self._control.store.find_job(event.job)
        if record is None or ASKED not in record.doc:
            return 0
        word, notes = _word(event, record), _annotations(record)
        if not word or _asked(notes).get(word) is not True:
            return 0
        user = await self._control.store.user(record.user)
        if user is None or not user.email or record.user in await self._control.store.users_with_channels():
            return 0
        return await self._send(user.email, record, word, event, str(notes.get(NAME, record.name)))

    async def _send(self, to: str, record: JobRecord, word: str, event: EventRecord, name: str) -> int:
        subject = f"Job {record.user}~{name}: {word}"
        text = (
            f"{name} of {record.user} in the virtual cluster {record.queue}: {word}.\n\n{event.at}: {event.message}\n"
        )
        try:
            await self._mailer.send(to, subject, text)
        except InvalidInput as error:
            log.warning("a notice was refused", job=record.id, code=error.code, message=error.message)
            return 0
        except CorralError:
            self._tries += 1
            if self._tries < _TRIES:
                raise
            log.warning("a notice is given up", job=record.id, tries=self._tries)
            self._tries = 0
            return 0
        except Exception:  # an address is any text of its owner, and control must go on
            log.exception("a notice could not be sent", job=record.id)
            return 0
        self._tries = 0
        return 1


def _word(event: EventRecord, record: JobRecord) -> str:
    """OpenPAI's word for the change; "" when it has none."""
    if event.kind == "job.retried":
        return "retried"
    if event.kind == "job.started":
        return "" if event.data.get("attempt") else "running"
    return record.phase if record.phase in ("succeeded", "failed", "stopped") else ""


def _annotations(record: JobRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.doc)["metadata"].get("annotations", {})
    return found


def _asked(notes: dict[str, Any]) -> dict[str, Any]:
    """The changes that the job's file asks to be mailed."""
    text = str(notes.get(PROTOCOL, ""))
    try:
        protocol = json.loads(text) if ASKED in text else {}
    except (ValueError, RecursionError):  # users can write any annotations
        return {}
    extras = protocol.get("extras") if isinstance(protocol, dict) else None
    asked = extras.get(ASKED) if isinstance(extras, dict) else None
    return asked if isinstance(asked, dict) else {}
