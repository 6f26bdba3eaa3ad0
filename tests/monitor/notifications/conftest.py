"""A store with one person, a clock that tests move, receivers on this machine, and a notifier between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from corral.model.facts import Fact
from corral.model.notifications.channels import KEY_SUFFIX, Channel, Outgoing
from corral.model.notifications.destinations import read_networks
from corral.model.notifications.messages import about_code
from corral.model.notifications.signatures import signing_key
from corral.model.notifications.wishes import wishes_of
from corral.model.store_writes import FactWrite, NewJob
from corral.monitor.mail import SmtpMailer
from corral.monitor.notifications.http_post import Poster
from corral.monitor.notifications.notifier import Notifier, Waiting
from corral.monitor.notifications.sender import Sender
from corral.monitor.notifications.services import Services
from corral.store import Store, open_store
from corral.store.notification_outbox import CURSOR
from tests.databases import sqlite_store
from tests.monitor.notifications.receivers import Receiver, receiving
from tests.store.makers import ME, Ticking, batch, new_job
from tests.testbeds.mail_server import MailServer

KEY = b"k" * 32
SIGNING = signing_key(bytes(24))
URL = "https://corral.example.org"


class World:
    """All of it, with short words for what tests do."""

    def __init__(self, store: Store, clock: Ticking, receiver: Receiver, mail: MailServer) -> None:
        self.store, self.clock, self.receiver, self.mail = store, clock, receiver, mail
        self.waiting: list[Waiting] = []
        self.epoch = 0
        self.addresses: dict[str, str] = {}

    def notifier(self, *, mail: bool = True) -> Notifier:
        """A notifier as a control has it; another one is that of the next control."""

        async def opened(channel: Channel) -> tuple[str, str]:
            return self.addresses.get(channel.id, self.receiver.url), SIGNING

        sender = Sender(
            clock=self.clock,
            key=KEY,
            poster=Poster(read_networks("127.0.0.0/8"), seconds=60.0),
            services=Services(read_networks("127.0.0.0/8")),
            mailer=SmtpMailer(self.mail.url, "corral@example.org") if mail else None,
            open_channel=opened,
            url=URL,
        )
        return Notifier(
            self.store, sender, self.clock, cursor=CURSOR, waiting=lambda: self.waiting, wishes_of=wishes_of
        )

    async def add(self, name: str, kind: str, *events: str, user: str = "ann", **fields: Any) -> Channel:
        """A verified channel; the message with its code counts as sent."""
        shown = f"{user}@example.org" if kind == "mail" else "http://…"
        at = self.clock.now()
        given: dict[str, Any] = {"created_at": at, "code_at": at, "codes": 1, "verified_at": at} | fields
        made = Channel(f"c-{name}", user, name, kind, shown, events, **given)
        code = Outgoing(f"code/{name}", user, made.id, name, about_code(user, name, at))
        await self.store.add_channel(made, {made.id: "", made.id + KEY_SUFFIX: ""}, code)
        if made.verified_at is not None:
            queued = [each for each in await self.store.due_messages(at, 99) if each.channel == made.id]
            await self.store.note_messages([each.id for each in queued], "sent")
        return made

    async def job(self, name: str, **fields: Any) -> NewJob:
        """A job that was submitted."""
        made = new_job(name, created_at=self.clock.now(), **fields)
        await self.store.submit(made)
        return made

    async def tell(self, job: NewJob, kind: str, message: str = "it happened", **data: object) -> None:
        """Something happens to a job, as control writes it."""
        fact = FactWrite(job.id, self.clock.now(), Fact(kind, message, data=data))
        await self.store.commit(batch(self.epoch, facts=(fact,)))

    async def run(self, notifier: Notifier) -> None:
        """One look, until what it sends is sent or refused."""
        await notifier.look()
        await notifier.settle()

    async def states(self, user: str = "ann") -> list[tuple[str, str, int]]:
        """Subject, state and tries of a person's messages without codes, the oldest first."""
        items = (await self.store.messages_of(user)).items
        return [(each.subject, each.state, each.tries) for each in reversed(items) if each.event != "code"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = Ticking()
    store = await open_store(sqlite_store(tmp_path), clock=clock)
    mail = MailServer()
    listening = await mail.serve()
    async with receiving() as receiver:
        made = World(store, clock, receiver, mail)
        lease = await store.lead(ME)
        assert lease is not None
        made.epoch = lease.epoch
        yield made
    listening.close()
    await store.close()
