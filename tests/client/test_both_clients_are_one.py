"""The synchronous and asynchronous clients have the same methods; both report an unreachable server plainly."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.cli.code_archive import pack
from corral.cli.submit import send_code
from corral.client import AsyncClient, Client, config, operations
from corral.client.operations.streams import Feed
from corral.kernel.errors import Conflict, InvalidInput, NotFound, TooLarge, Unauthenticated, Unavailable
from corral.service.jobs.account_limits import Allowance
from tests.api.harness import Server, serving
from tests.api.test_jobs_are_submitted_and_read import job


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running front."""
    with serving(tmp_path_factory.mktemp("front")) as running:
        yield running


def public(kind: type) -> dict[str, inspect.Signature]:
    return {name: inspect.signature(value) for name, value in vars(kind).items() if name[0] != "_" and callable(value)}


def test_the_methods_and_their_parameters_are_the_same() -> None:
    sync, asynchronous = public(Client), public(AsyncClient)
    assert sync.keys() == asynchronous.keys()
    for name, signature in sync.items():
        assert list(signature.parameters) == list(asynchronous[name].parameters), name
        kinds = [each.kind for each in signature.parameters.values()]
        assert kinds == [each.kind for each in asynchronous[name].parameters.values()], name


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_operation_is_a_method_with_its_words_and_parameters(kind: type) -> None:
    shelves = (operations.accounts, operations.jobs, operations.cluster, operations.configuration)
    found = {name: each for shelf in shelves for name, each in vars(shelf).items() if inspect.isfunction(each)}
    own = {name: each for name, each in found.items() if each.__module__.startswith(operations.__name__)}
    public_ones = {name: each for name, each in own.items() if not name.startswith("_")}
    assert {"submit", "apply", "drain", "create_token"} <= public_ones.keys()
    for name, operation in public_ones.items():
        method = getattr(kind, name)
        given = list(inspect.signature(method).parameters.values())
        assert given[1:] == list(inspect.signature(operation).parameters.values()), name
        assert name == "login" or method.__doc__ == operation.__doc__, name
    assert str(inspect.signature(kind.job)) == "(self, /, ref: 'str') -> 'JobDetail'"  # type: ignore[attr-defined]


@given(
    st.lists(st.integers(0, 9) | st.none(), max_size=6),
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
def test_events_are_read_wherever_the_pieces_of_the_stream_end(sent: list[int | None], sizes: list[int]) -> None:
    text = b"".join(
        b": alive\n\n" if each is None else f'id: {each}\ndata: {{"seq": {each}}}\n\n'.encode() for each in sent
    )
    feed, read, at = Feed(), [], 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        read += list(feed.read(text[at : at + size]))
        at += size
    assert [event and event["seq"] for event in read] == sent


async def test_the_async_client_does_what_the_sync_one_does(server: Server) -> None:
    token = await asyncio.to_thread(server.token, "alice")
    async with AsyncClient(server.url, token) as client:
        made = await client.submit(job("async"), idempotency_key="a")
        assert (await client.job("async"))["id"] == made["id"]
        for narrowed in (
            client.jobs(q="async"),
            client.jobs(state="waiting"),
            client.jobs(user=["alice", "bob"], state=""),
        ):
            assert [found["id"] for found in (await narrowed)["items"]] == [made["id"]]
        assert not (await client.jobs(user="bob"))["items"]
        assert (await client.me())["user"] == "alice"
        with pytest.raises(Conflict):
            await client.submit(job("async"))
        with pytest.raises(NotFound):
            await client.job("nobody")
        kinds = []
        async for event in client.events(after=0, job=made["id"], timeout=120):
            kinds.append(event["kind"])
            break
        assert kinds == ["job.submitted"]
        assert not await client.has_code("0" * 64)


async def test_an_archive_that_is_kept_is_taken_again_by_an_account_that_may_keep_no_more(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print()")
    token = await asyncio.to_thread(server.token, "hoarder")
    packed = pack(tmp_path)
    data, digest, size = b"".join(packed.pieces()), packed.digest, packed.size
    packed.file.close()
    monkeypatch.setattr(server.service.context, "allowance", Allowance(code_bytes=size))

    async def pieces() -> AsyncIterator[bytes]:
        yield data

    def lose_the_file() -> None:
        assert server.service.context.blobs is not None
        server.service.context.blobs.path(digest).unlink()

    def sent_by_the_sync_one() -> None:
        with Client(server.url, token) as client:
            client.put_code([data], size, digest)
            lose_the_file()
            assert not client.has_code(digest)
            assert send_code(client, tmp_path) == digest and client.has_code(digest)

    await asyncio.to_thread(sent_by_the_sync_one)
    lose_the_file()
    async with AsyncClient(server.url, token) as client:
        for unknown in ("", "0" * 64):
            with pytest.raises(TooLarge):
                await client.put_code(pieces(), size, unknown)
        assert (await client.put_code(pieces(), size, digest))["digest"] == digest


async def test_each_raises_unavailable_when_nobody_answers() -> None:
    with Client("http://127.0.0.1:9", "crl_x") as client, pytest.raises(Unavailable, match="corral up"):
        client.me()
    async with AsyncClient("http://127.0.0.1:9", "crl_x") as client:
        with pytest.raises(Unavailable, match="corral up"):
            await client.me()


@pytest.mark.parametrize("address", ["", "localhost", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_URL", address or "nonsense")
    with pytest.raises(InvalidInput):
        Client(address)


def test_a_connection_that_idled_away_is_made_anew(server: Server) -> None:
    with server.client("alice") as client:
        client.me()
        kept = client._transport._kept
        assert kept is not None and kept.sock is not None
        kept.sock.close()
        assert client.me()["user"] == "alice"


def test_nothing_is_sent_on_a_connection_that_the_server_has_closed(server: Server) -> None:
    """A submission is never sent twice, so the caller would have to repeat one that was lost on a dead connection."""
    with server.client("alice") as client:
        client.me()
        kept = client._transport._kept
        assert kept is not None and kept.sock is not None
        kept.sock.shutdown(socket.SHUT_RD)
        assert client.submit(job("after-a-restart"))["name"] == "after-a-restart"


class LosingAnswers(ThreadingHTTPServer):
    """A server that answers the first request on each connection, and ends the connection when it has read the second."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), LosingHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.methods: list[str] = []
        """The methods of all requests that arrived."""


class LosingHandler(BaseHTTPRequestHandler):
    """One connection of the server that loses answers."""

    server: LosingAnswers
    protocol_version = "HTTP/1.1"
    answered = False

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.methods.append(self.command)
        if self.answered:
            self.close_connection = True
            return
        self.answered = True
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def losing_answers() -> Iterator[LosingAnswers]:
    """A running server that loses answers."""
    with LosingAnswers() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_submit_whose_answer_was_lost_is_not_sent_again(losing_answers: LosingAnswers) -> None:
    with Client(losing_answers.url, "crl_x") as client:
        client.me()
        with pytest.raises(Unavailable):
            client.submit(job("once"))
    assert losing_answers.methods == ["GET", "POST"]


def test_a_question_whose_answer_was_lost_is_asked_again(losing_answers: LosingAnswers) -> None:
    with Client(losing_answers.url, "crl_x") as client:
        client.me()
        client.me()
    assert losing_answers.methods == ["GET", "GET", "GET"]


def test_waiting_ends_with_the_job_or_with_the_time(server: Server) -> None:
    with server.client("alice") as client:
        made = client.submit(job("never-runs"))
        with pytest.raises(TimeoutError, match="it goes on"):
            client.wait(made["id"], timeout=-1)


class TestConfiguration:
    """The file that stores the sign-ins by server."""

    def test_what_was_remembered_is_current_and_private(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CORRAL_CONFIG", str(tmp_path / "deep" / "config.json"))
        config.remember(config.Context("http://one:1", "crl_1", "alice"))
        config.remember(config.Context("http://two:2", "crl_2", "bob"))
        assert config.current() == config.Context("http://two:2", "crl_2", "bob")
        assert (tmp_path / "deep" / "config.json").stat().st_mode & 0o777 == 0o600

    def test_the_environment_goes_before_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CORRAL_CONFIG", str(tmp_path / "config.json"))
        config.remember(config.Context("http://one:1", "crl_1", "alice"))
        config.remember(config.Context("http://two:2", "crl_2", "bob"))
        monkeypatch.setenv("CORRAL_URL", "http://one:1/")
        assert config.current().token == "crl_1"
        monkeypatch.setenv("CORRAL_TOKEN", "crl_9")
        assert config.current().token == "crl_9"
        monkeypatch.setenv("CORRAL_URL", "http://stranger:3")
        monkeypatch.delenv("CORRAL_TOKEN")
        assert config.current().token == "", "a token is never sent to a server that did not give it"

    def test_a_damaged_file_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "config.json"
        monkeypatch.setenv("CORRAL_CONFIG", str(file))
        file.write_text("{")
        with pytest.raises(InvalidInput, match=str(file)):
            config.current()

    def test_signing_out_forgets_the_token_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CORRAL_CONFIG", str(tmp_path / "config.json"))
        config.remember(config.Context("http://one:1", "crl_1", "alice"))
        config.forget("http://one:1")
        assert "crl_1" not in json.dumps(config.load())
        with pytest.raises(Unauthenticated):
            config.require_token(config.current())
