"""Messages go out through the real library `apprise`, in a process that reaches nothing else."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

pytest.importorskip("apprise", reason="needs the extra notify")

from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.model.notifications.destinations import read_networks
from corral.model.notifications.services import SCHEMES
from corral.monitor.notifications import services as module
from corral.monitor.notifications.apprise_child import Guard, Outcome
from corral.monitor.notifications.services import Services
from tests.monitor.notifications.conftest import World
from tests.monitor.notifications.receivers import receiving

HERE = read_networks("127.0.0.0/8")


async def test_an_event_of_a_job_reaches_a_service(world: World) -> None:
    channel = await world.add("phone", "apprise", "failed")
    world.addresses[channel.id] = f"ntfy://127.0.0.1:{world.receiver.port}/topic"
    notifier = world.notifier()
    await world.run(notifier)
    await world.tell(await world.job("train"), "job.completed", "the job failed: @everyone", code=3)
    await world.run(notifier)
    (request,) = world.receiver.requests
    assert request.json["topic"] == "topic" and request.json["title"] == "Job ann~train failed"
    assert "The job failed: @\u200beveryone" in request.json["message"]
    assert await world.states() == [("Job ann~train failed", "sent", 1)]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", InvalidInput, "redirect"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", InvalidInput, "answers 403"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", Unavailable, "answers 503"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000, Unavailable, "did not take"),
    ],
    ids=["redirect", "refusal", "later", "endless"],
)
async def test_what_a_service_answers_decides_whether_it_is_tried_again(
    answer: bytes, kind: type[CorralError], said: str
) -> None:
    async with receiving() as receiver:
        receiver.answer = answer
        with pytest.raises(kind) as refused:
            await Services(HERE).send(f"ntfy://u:s3cret@127.0.0.1:{receiver.port}/s3cret", "Subject", "Text")
        assert said in refused.value.message and "s3cret" not in refused.value.message
        assert len(receiver.requests) == 1


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "unknown"])
async def test_certificates_are_verified_whatever_the_address_says(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    (authority if trusted else trustme.CA()).cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with receiving(context) as receiver:
        sending = Services(HERE).send(f"ntfys://127.0.0.1:{receiver.port}/topic?verify=no", "Subject", "Text")
        if trusted:
            await sending
        else:
            with pytest.raises(Unavailable, match="cannot be reached"):
                await sending
        assert len(receiver.requests) == (1 if trusted else 0)


async def test_a_name_that_leads_to_a_private_address_is_told_like_an_unknown_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name is judged by the process when it connects: here the name passes, and its address does not."""
    monkeypatch.setattr(module, "service_refusal", lambda *_: "")
    async with receiving() as receiver:
        with pytest.raises(Unavailable) as refused:
            await Services().send(f"ntfys://localhost:{receiver.port}/topic", "Subject", "Text")
        assert receiver.connections == 0
    with pytest.raises(Unavailable) as unknown:
        module._judge("ntfys://…", Outcome())  # what the process tells of a name without any address
    assert refused.value.message == unknown.value.message and "notify_private" in refused.value.message


async def test_an_address_that_the_service_does_not_understand_is_not_tried_again() -> None:
    with pytest.raises(InvalidInput, match="does not understand"):
        await Services(HERE).send("tgram://s3cret", "Subject", "Text")


async def test_a_process_that_is_no_longer_needed_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    usual = asyncio.create_subprocess_exec

    async def start(*argv: Any, **options: Any) -> Any:
        started.append(await usual(*argv, **options))
        return started[-1]

    monkeypatch.setattr(module.asyncio, "create_subprocess_exec", start)
    async with receiving() as receiver:
        receiver.silent = True
        sending = asyncio.create_task(Services(HERE).send(f"ntfy://127.0.0.1:{receiver.port}/t", "Subject", "Text"))
        await receiver.came.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert started[0].returncode is not None


@pytest.mark.parametrize(
    ("event", "given"),
    [
        ("socket.connect", (None, ("10.0.0.1", 443))),
        ("socket.connect", (None, ("metadata.internal", 443))),
        ("socket.connect", (None, ("::ffff:127.0.0.1", 443, 0, 0))),
        ("socket.connect", (None, "/run/docker.sock")),
        ("socket.connect", (None, b"\0abstract")),
        ("socket.sendto", (None, ("1.1.1.1", 53))),
        ("subprocess.Popen", ("sh", [], None, None)),
        ("os.system", (b"id",)),
        ("open", ("/etc/passwd", "r", os.O_RDONLY)),
        ("open", (os.path.join(os.path.dirname(os.__file__), "os.py"), "w", os.O_WRONLY | os.O_CREAT)),
        ("open", (os.path.join(os.path.dirname(os.__file__), "..", "..", "..", "..", "etc", "passwd"), "r", 0)),
    ],
)
def test_the_process_of_a_message_may_do_nothing_else(event: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(PermissionError):
        Guard(())(event, given)


def test_the_process_of_a_message_may_reach_public_addresses_and_load_modules() -> None:
    guard = Guard(())
    guard("socket.connect", (None, ("1.1.1.1", 443)))
    guard("open", (os.__file__, "r", os.O_RDONLY))
    guard.encrypted = False
    with pytest.raises(PermissionError):
        guard("socket.connect", (None, ("1.1.1.1", 80)))
    listing = Guard(HERE)
    listing.encrypted = False
    listing("socket.connect", (None, ("127.0.0.1", 80)))


def test_the_library_knows_every_scheme_that_may_be_used() -> None:
    from apprise.manager_plugins import NotificationManager

    known = NotificationManager()
    assert set(SCHEMES) <= set(known.schemas())
    assert {known[scheme].__module__.split(".")[1] for scheme in SCHEMES} == {"plugins"}
