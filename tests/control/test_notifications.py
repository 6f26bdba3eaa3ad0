"""A control tells people of their jobs: what runs, ends and waits under a real loop, with sealed addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from corral.control.notifications import mailer_of, notifier_of, notify, waiting_jobs
from corral.kernel.errors import InvalidInput
from corral.model.notifications.channels import KEY_SUFFIX, Channel, Outgoing
from corral.model.notifications.destinations import read_networks
from corral.model.notifications.messages import about_code
from corral.model.notifications.signatures import signing_key
from corral.model.records import ENDED_PHASES
from corral.monitor.notifications.notifier import Notifier
from corral.service.secret_box import SecretBox
from tests.control.harness import House, PaperEngine, short
from tests.monitor.notifications.receivers import Receiver, receiving

KEY = b"k" * 32


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    await house.open()
    await house.begin()
    yield house
    await house.close()


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def notifier(house: House, receiver: Receiver, *events: str, waiting: int = 0) -> Notifier:
    """The notifier of the house's control, for ada's one channel, which is sealed as the service seals it."""
    at, box = house.clock.now(), SecretBox(KEY)
    channel = Channel("c1", "ada", "hook", "webhook", "…", events, waiting, created_at=at, code_at=at, verified_at=at)
    values = {"c1": receiver.url, "c1" + KEY_SUFFIX: signing_key(bytes(24))}
    sealed = {name: box.seal(channel.owner, name, value) for name, value in values.items()}
    code = Outgoing("code/1", "ada", "c1", "hook", about_code("ada", "hook", at))
    await house.store.add_channel(channel, sealed, code)
    made = notifier_of(house.control, key=KEY, secret_box=box, listed=read_networks("127.0.0.0/8"))
    await look(made)
    receiver.requests.clear()
    return made


async def look(made: Notifier) -> None:
    await made.look()
    await made.settle()


async def test_a_job_that_starts_and_fails_is_told(house: House, receiver: Receiver) -> None:
    made = await notifier(house, receiver, "started", "failed")
    job = await house.submit(short("train"))
    await house.until(job, "running")
    (attempt,) = house.engine.running
    house.engine.end(attempt, 3)
    await house.until(job, *ENDED_PHASES)
    await look(made)
    assert [request.json["subject"] for request in receiver.requests] == [
        "Job ada~train started",
        "Job ada~train failed",
    ]
    assert "3" in receiver.requests[1].json["text"]


async def test_a_job_that_waits_is_told_with_the_schedulers_reason(house: House, receiver: Receiver) -> None:
    made = await notifier(house, receiver, waiting=60)
    job = await house.submit(short("wide", replicas=3, devices=4))
    await house.explained(job)
    (waits,) = waiting_jobs(house.control.world)
    assert (waits.job, waits.name, waits.user, waits.queue) == (job, "wide", "ada", "default")
    assert waits.reason and waits.since <= house.clock.now()
    assert await made.look_at_waits(frozenset({"ada"})) == 0
    waiting = house.control.world.jobs[job]
    waiting.run = msgspec.structs.replace(waiting.run, waits_since=waits.since - 61.0)
    assert await made.look_at_waits(frozenset({"ada"})) == 1
    assert await made.look_at_waits(frozenset({"ada"})) == 0
    await look(made)
    assert receiver.requests[0].json["subject"] == "Job ada~wide still waits after 1m"


async def test_unusable_settings_are_refused_in_one_sentence(house: House, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="notify_private cannot be read: 'lan' is no network"):
        await notify(house.control, KEY, None, private="lan")
    with pytest.raises(InvalidInput, match="mail_password_file cannot be read"):
        mailer_of("smtp://mail", "corral@example.org", tmp_path / "none")
    assert mailer_of("", "", None) is None
