"""Owners are mailed the state changes that their job files ask for, once, through a real SMTP server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from corral.compat.openpai.language.names import PROTOCOL
from corral.compat.openpai.mail_notices import Notices
from corral.kernel.errors import InvalidInput, Unavailable
from corral.kernel.ids import JobId
from corral.model.accounts import User
from corral.model.exits import NODE_LOST
from corral.model.notifications.channels import Channel, Outgoing, Wishes
from corral.model.notifications.messages import about_code
from corral.model.notifications.wishes import wishes_of
from corral.model.records import ENDED_PHASES
from corral.monitor.mail import SmtpMailer
from tests.control.harness import House, PaperEngine, short
from tests.spec.openpai_files import job_file, role_of
from tests.testbeds.mail_server import MailServer

ADDRESS = "ada@example.org"
ALL = dict.fromkeys(("running", "succeeded", "failed", "stopped", "retried"), True)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[MailServer]:
    made = MailServer()
    listening = await made.serve()
    yield made
    listening.close()
    await listening.wait_closed()


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    await house.open()
    await house.store.add_user(User("ada", email=ADDRESS))
    await house.begin()
    yield house
    await house.close()


@pytest_asyncio.fixture
async def notices(house: House, server: MailServer) -> Notices:
    made = Notices(house.control, SmtpMailer(server.url, "corral@example.org"))
    assert await made.look() == 0
    return made


def text(name: str, asked: dict[str, bool], **more: object) -> str:
    role = role_of(extraContainerOptions={"shmMB": 0})
    return job_file(name=name, taskRoles={"worker": role}, extras={"jobStatusChangeNotification": asked}, **more)


async def ended(house: House, job: JobId, code: int) -> None:
    await house.until(job, "running")
    (attempt,) = [each for each in house.engine.running if each.startswith(f"{job}.")]
    house.engine.end(attempt, code)
    await house.until(job, *ENDED_PHASES)


async def test_every_change_that_is_asked_for_is_mailed_once(
    house: House, notices: Notices, server: MailServer
) -> None:
    job = await house.submit(text("My_Job", ALL))
    await house.until(job, "running")
    (first,) = house.engine.running
    house.engine.end(first, NODE_LOST)
    async with house.patience():
        while not (set(house.engine.running) - {first}):
            await house.store.wakeup.wait(0.05)
    await ended(house, job, 0)
    assert await notices.look() == 3
    assert server.subjects == ["Job ada~My_Job: running", "Job ada~My_Job: retried", "Job ada~My_Job: succeeded"]
    assert all(f"To: {ADDRESS}" in message for message in server.messages)
    assert await notices.look() == 0


async def test_what_is_not_asked_for_is_not_mailed(house: House, notices: Notices, server: MailServer) -> None:
    await ended(house, await house.submit(text("quiet", {"failed": True, "running": False})), 0)
    await ended(house, await house.submit(text("loud", {"failed": True})), 3)
    await ended(house, await house.submit(short("ours")), 0)
    assert await notices.look() == 1
    assert server.subjects == ["Job ada~loud: failed"]


async def test_a_server_that_is_away_is_asked_again_and_nothing_is_lost(
    house: House, notices: Notices, server: MailServer
) -> None:
    server.answer = "451 later"
    await ended(house, await house.submit(text("job", {"succeeded": True})), 0)
    for _ in range(2):
        with pytest.raises(Unavailable, match="451 later"):
            await notices.look()
    server.answer = "250 ok"
    later = Notices(house.control, SmtpMailer(server.url, "corral@example.org"))
    assert await later.look() == 1
    assert server.subjects == ["Job ada~job: succeeded"]


async def test_a_recipient_that_is_refused_for_good_holds_up_nobody(
    house: House, notices: Notices, server: MailServer
) -> None:
    server.answer = "550 nobody here"
    await ended(house, await house.submit(text("one", {"succeeded": True})), 0)
    assert await notices.look() == 0
    server.answer = "250 ok"
    await ended(house, await house.submit(text("two", {"succeeded": True})), 0)
    assert await notices.look() == 1
    assert server.subjects == ["Job ada~two: succeeded"]


async def test_an_owner_with_a_verified_channel_is_told_there_instead(
    house: House, notices: Notices, server: MailServer
) -> None:
    at = house.clock.now()
    channel = Channel("c1", "ada", "hook", "webhook", "https://x/…", created_at=at, code_at=at, verified_at=at)
    await house.store.add_channel(channel, {}, Outgoing("code/1", "ada", "c1", "hook", about_code("ada", "hook", at)))
    job = await house.submit(text("job", {"succeeded": True, "running": False}))
    await ended(house, job, 0)
    assert await notices.look() == 0
    record = await house.store.find_job(job)
    assert record is not None and wishes_of(record.doc) == Wishes(("succeeded",))


@pytest.mark.parametrize("said", ["jobStatusChangeNotification {", '["jobStatusChangeNotification"]'])
async def test_a_job_whose_annotations_make_no_sense_holds_up_nobody(
    house: House, notices: Notices, server: MailServer, said: str
) -> None:
    odd = short("odd", annotations={PROTOCOL: said})
    await ended(house, await house.submit(odd), 0)
    await ended(house, await house.submit(text("job", {"succeeded": True})), 0)
    assert await notices.look() == 1
    assert server.subjects == ["Job ada~job: succeeded"]


async def test_a_message_that_cannot_be_made_holds_up_nobody(
    house: House, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send(*_: object) -> None:
        raise IndexError("an address that the library cannot read")

    monkeypatch.setattr(notices._mailer, "send", send)
    await ended(house, await house.submit(text("job", {"succeeded": True})), 0)
    assert await notices.look() == 0


@pytest.mark.parametrize(("url", "sender"), [("http://x", "a@b"), ("smtp://", "a@b"), ("smtp://x", "")])
def test_an_address_that_is_none_is_refused(url: str, sender: str) -> None:
    with pytest.raises(InvalidInput, match="mail_server"):
        SmtpMailer(url, sender)


async def test_a_head_of_several_lines_is_one(server: MailServer) -> None:
    await SmtpMailer(server.url, "corral@example.org").send("a@b\r\nBcc: c@d", "hello\nX-Evil: 1", "text")
    (message,) = server.messages
    assert "\nX-Evil" not in message and "\nBcc" not in message
