"""A person adds channels at the command line, verifies them, and is told of a job that fails on a real server."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator

import pytest

from corral.model.notifications.signatures import signature
from tests.endtoend.platform import Platform, one
from tests.monitor.notifications.receivers import Received, Receiver, receiving
from tests.testbeds.mail_server import MailServer

pytestmark = pytest.mark.timeout(300)
CODE = re.compile(r"The code is ([0-9A-Z]{4}-[0-9A-Z]{4})")


class World:
    """A mail server and a receiver of webhooks, in a thread of their own."""

    def __init__(self) -> None:
        self.mail, self.hook = MailServer(), Receiver()
        self._up, self._end = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> World:
        self._thread.start()
        assert self._up.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        mail = await self.mail.serve()
        async with receiving() as self.hook:
            self._up.set()
            await self._end.wait()
        mail.close()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as made:
        yield made


@pytest.fixture(scope="module")
def server(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    told = {"MAIL_SERVER": world.mail.url, "MAIL_FROM": "corral@example.org", "NOTIFY_PRIVATE": "127.0.0.0/8"}
    made = Platform(tmp_path_factory.mktemp("told"), env={f"CORRAL_{name}": value for name, value in told.items()})
    made.up()
    yield made
    made.down()


def _of_type(world: World, type_: str) -> list[Received]:
    """The messages of a type at the webhook; a message may be sent twice."""
    return [each for each in world.hook.requests if each.json.get("type") == type_]


Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def until() -> Until:
    """Waits until something holds; pytest's time-out ends a hang."""

    def wait(holds: Callable[[], object]) -> None:
        pause = threading.Event()
        while not holds():
            pause.wait(0.1)

    return wait


def test_a_person_is_told_by_mail_and_webhook(server: Platform, world: World, until: Until) -> None:
    key = server.corral("notifications", "add", "hook", "webhook", "-e", "failed", given=world.hook.url + "\n").strip()
    server.corral("notifications", "add", "me", "mail", "ada@example.org", "-e", "ended", "--waiting", "2h")
    until(lambda: world.hook.requests and world.mail.messages)
    (code,) = CODE.findall(world.hook.requests[0].json["text"])
    server.corral("notifications", "verify", "hook", code)
    (code,) = CODE.findall(world.mail.messages[0].replace("=\r\n", ""))
    server.corral("notifications", "verify", "me", code)
    shown = server.corral("notifications", "list")
    assert "ended" in shown and "2h" in shown and "s3cret" not in shown and "ada@example.org" in shown

    assert server.ran(one("broken", "exit 3"))["state"] == "failed"
    until(lambda: _of_type(world, "job.failed") and any("~broken failed" in each for each in world.mail.messages))
    told = _of_type(world, "job.failed")[0]
    assert told.json["job"]["name"] == "broken"
    name, at = told.headers["webhook-id"], int(told.headers["webhook-timestamp"])
    assert told.headers["webhook-signature"] == signature(key, name, at, told.body)
    assert told.json["link"] == f"{server.url}/jobs/{told.json['job']['id']}"

    server.corral("notifications", "test", "hook")
    until(lambda: len(world.hook.requests) > 2)
    until(lambda: {each["state"] for each in server.client.notifications()["items"]} == {"sent"})
    server.corral("notifications", "remove", "hook")
    assert "hook" in server.corral("notifications", "history") and "hook" not in server.corral("notifications")
    assert "s3cret" not in "".join(path.read_text() for path in (server.data / "logs").glob("*.log"))
