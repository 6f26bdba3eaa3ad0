"""Webhooks are posted to addresses that may be used, and to no others: real connections on this machine."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence

import pytest
import trustme

from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.notifications.destinations import read_networks
from corral.monitor.notifications.http_post import Poster, resolve
from tests.monitor.notifications.receivers import Receiver, receiving
from tests.reserved import free_port

HERE = read_networks("127.0.0.0/8")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


class Answers:
    """A resolver whose answers change with every call."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0)


async def test_a_request_is_sent_as_it_is_and_a_good_answer_ends_it(receiver: Receiver) -> None:
    await Poster(HERE).post(receiver.url, b'{"a":1}', {"webhook-id": "msg_1"})
    (request,) = receiver.requests
    assert request.line == "POST /hook?token=s3cret HTTP/1.1"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["webhook-id"] == "msg_1" and request.headers["content-type"] == "application/json"
    assert request.json == {"a": 1}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "x.localhost.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"]
)
async def test_this_machine_is_not_reached_without_its_network(receiver: Receiver, host: str) -> None:
    with pytest.raises(InvalidInput, match="private or special address") as refused:
        await Poster().post(f"https://{host}:{receiver.port}/s3cret", b"{}", {})
    assert "s3cret" not in refused.value.message and "notify_private" in refused.value.message
    with pytest.raises(InvalidInput, match=r"https:// outside the networks"):
        await Poster().post(f"http://{host}:{receiver.port}/s3cret", b"{}", {})
    assert receiver.connections == 0


async def test_a_name_is_asked_once_and_the_judged_address_is_used(receiver: Receiver) -> None:
    rebinding = Answers(["127.0.0.1"], ["10.0.0.1"])
    url = f"http://rebinding.example:{receiver.port}/"
    await Poster(HERE, resolve=rebinding).post(url, b"{}", {})
    assert rebinding.asked == ["rebinding.example"]
    assert receiver.requests[0].headers["host"] == f"rebinding.example:{receiver.port}"


async def test_a_name_that_leads_to_a_private_address_is_refused_as_one_that_does_not_exist(receiver: Receiver) -> None:
    """Nobody can learn names that only the server can resolve, or where they lead."""
    url = f"https://rebinding.example:{receiver.port}/"

    async def nothing(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    told = set()
    for answers in (["127.0.0.1"], ["169.254.169.254", "::1"], ["::ffff:127.0.0.1"], ["fe80::1%eth0"], [], None):
        names = nothing if answers is None else Answers(answers)
        with pytest.raises(Unavailable) as refused:
            await Poster(resolve=names).post(url, b"{}", {})
        told.add((refused.value.code, refused.value.message))
    ((code, message),) = told
    assert code == "webhook-no-address" and message.startswith("rebinding.example has no address that messages may")
    assert receiver.connections == 0


async def test_an_address_that_a_name_leads_to_is_not_told_when_nobody_listens() -> None:
    port = free_port()
    with pytest.raises(Unavailable, match=r"^inner\.example cannot be reached: Connection refused\.$"):
        await Poster(HERE, resolve=Answers(["127.0.0.1"])).post(f"http://inner.example:{port}/", b"{}", {})


async def test_of_several_addresses_one_that_may_be_used_is(receiver: Receiver) -> None:
    names = Answers(["10.0.0.1", "127.0.0.1"])
    await Poster(HERE, resolve=names).post(f"http://several.example:{receiver.port}/", b"{}", {})
    assert receiver.connections == 1


async def test_plain_http_goes_only_to_listed_networks() -> None:
    with pytest.raises(InvalidInput, match="must begin with https://"):
        await Poster().post("http://public.example/", b"{}", {})
    with pytest.raises(InvalidInput, match="must begin with https://"):
        await Poster(HERE).post("http://93.184.215.14/", b"{}", {})
    with pytest.raises(Unavailable, match="has no address that messages may go to"):
        await Poster(HERE, resolve=Answers(["93.184.215.14"])).post("http://public.example/", b"{}", {})


async def test_names_are_resolved_by_the_system() -> None:
    assert "127.0.0.1" in await resolve("127.0.0.1", 80)
    with pytest.raises(Unavailable, match=r"has no address that messages may go to"):
        await Poster().post(f"https://{'x' * 64}.example/", b"{}", {})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_refused_and_not_followed(receiver: Receiver, status: int) -> None:
    async with receiving() as target:
        receiver.answer = f"HTTP/1.1 {status} Moved\r\nLocation: {target.url}\r\n\r\n".encode()
        with pytest.raises(InvalidInput, match=f"answers {status}, a redirect"):
            await Poster(HERE).post(receiver.url, b"{}", {})
        assert target.connections == 0


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", None, ""),
        (b"HTTP/1.0 200\r\n\r\n", None, ""),
        (b"HTTP/1.1 500 Oops\r\n\r\n", Unavailable, "answers 500"),
        (b"HTTP/1.1 429 Slow down\r\n\r\n", Unavailable, "answers 429"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", InvalidInput, "answers 404; check the address"),
        (b"HTTP/1.1 410 Gone\r\n\r\n", InvalidInput, "answers 410"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", InvalidInput, "answers 100"),
        (b"SSH-2.0-OpenSSH\r\n", Unavailable, "does not answer as a web server"),
        (b"HTTP/2 200\r\n\r\n", Unavailable, "does not answer as a web server"),
        (b"", Unavailable, "cannot be reached"),
        (b"x" * 200_000, Unavailable, "cannot be reached"),
    ],
)
async def test_answers_are_read_within_bounds(
    receiver: Receiver, answer: bytes, error: type[Exception] | None, said: str
) -> None:
    receiver.answer = answer
    if error is None:
        await Poster(HERE).post(receiver.url, b"{}", {})
        return
    with pytest.raises(error, match=said) as refused:
        await Poster(HERE).post(receiver.url, b"{}", {})
    assert "s3cret" not in str(refused.value)


async def test_a_silent_receiver_is_given_up_in_time(receiver: Receiver) -> None:
    receiver.silent = True
    with pytest.raises(Unavailable, match="did not answer within"):
        await Poster(HERE, seconds=0.5).post(receiver.url, b"{}", {})


async def test_a_receiver_that_is_down_is_tried_later() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1 cannot be reached"):
        await Poster(HERE).post(f"http://127.0.0.1:{free_port()}/", b"{}", {})


async def test_certificates_are_checked_against_the_name_although_the_address_is_used() -> None:
    authority = trustme.CA()
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("hooks.example").configure_cert(served)

    def trust() -> ssl.SSLContext:
        made = ssl.create_default_context()
        authority.configure_trust(made)
        return made

    async with receiving(served) as receiver:
        url = f"https://hooks.example:{receiver.port}/"
        await Poster(HERE, resolve=Answers(["127.0.0.1"]), trust=trust).post(url, b"{}", {})
        assert len(receiver.requests) == 1
        with pytest.raises(Unavailable, match=r"The certificate of hooks\.example is not valid"):
            await Poster(HERE, resolve=Answers(["127.0.0.1"])).post(url, b"{}", {})
        with pytest.raises(Unavailable, match=r"The certificate of other\.example is not valid"):
            await Poster(HERE, resolve=Answers(["127.0.0.1"]), trust=trust).post(
                url.replace("hooks", "other"), b"{}", {}
            )
        await asyncio.sleep(0)
        assert len(receiver.requests) == 1
