"""The NameNodes of a name service are found by Hadoop's own files, and the active one of them is called."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from corral.kernel.errors import InvalidInput
from corral.storage import web_session
from corral.storage.block_locations import BlockLocator, NameNodes
from corral.storage.name_services import VARIABLE, addresses
from corral.storage.web_session import session
from tests.testbeds.hadoop.configuration import write_configuration

PAIR = {
    "dfs.nameservices": "other, pair",
    "dfs.ha.namenodes.pair": "a, b",
    "dfs.namenode.http-address.pair.a": "nn1.example.org:9870",
    "dfs.namenode.http-address.pair.b": "nn2.example.org:9870",
    "dfs.namenode.https-address.pair.a": "nn1.example.org:9871",
    "dfs.namenode.https-address.pair.b": "nn2.example.org:9871",
    "dfs.namenode.http-address.other": "alone:9870",
}
_STANDBY = b'{"RemoteException": {"exception": "StandbyException", "message": "not in state standby"}}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def test_a_name_services_name_nodes_are_those_of_the_configuration(folder: Path) -> None:
    assert addresses("pair") == ()
    write_configuration(folder / "core-site.xml", {"dfs.nameservices": "of-the-earlier-file"})
    write_configuration(folder / "hdfs-site.xml", PAIR)
    assert addresses("pair") == addresses("PAIR") == ("nn1.example.org:9870", "nn2.example.org:9870")
    assert addresses("pair", secure=True) == ("nn1.example.org:9871", "nn2.example.org:9871")
    assert addresses("other") == ("alone:9870",)
    assert addresses("nn1.example.org") == addresses("") == addresses("of-the-earlier-file") == ()


def test_without_a_configuration_no_name_is_a_name_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert addresses("pair") == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<configuration>", "cannot be read as XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "has entities"),
        (" " * (5 << 20), "is too large"),
    ],
)
def test_a_file_that_is_no_configuration_is_one_sentence(folder: Path, content: str, words: str) -> None:
    (folder / "hdfs-site.xml").write_text(content)
    with pytest.raises(InvalidInput, match=words) as raised:
        addresses("pair")
    assert raised.value.message.endswith(".")


def test_an_address_that_is_missing_is_named(folder: Path) -> None:
    write_configuration(folder / "hdfs-site.xml", {**PAIR, "dfs.namenode.http-address.pair.b": "nn2"})
    with pytest.raises(InvalidInput, match=r'dfs.namenode.http-address.pair.b = "nn2"; it must be HOST:PORT'):
        addresses("pair")


def test_blocks_of_a_name_service_are_asked_for_by_both_schemes(folder: Path) -> None:
    write_configuration(folder / "hdfs-site.xml", PAIR)
    locator = BlockLocator([NameNodes(("http://nn1.example.org:9870",), "corral")])
    assert locator.knows("webhdfs://pair/x") and locator.knows("hdfs://pair/x")
    assert not locator.knows("webhdfs://elsewhere/x") and not locator.knows("webhdfs://pair:9870/x")


class _Paper(ThreadingHTTPServer):
    """A NameNode that answers every call as it is told, and counts them."""

    code, body, calls = 200, b"{}", 0


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, _Paper)
        server.calls += 1
        if server.code == 0:
            return  # the connection ends without an answer
        self.send_response(server.code)
        self.send_header("Content-Length", str(len(server.body)))
        self.end_headers()
        self.wfile.write(server.body)

    do_PUT = do_GET

    def log_message(self, *_: object) -> None: ...


@contextmanager
def name_nodes(count: int = 2) -> Iterator[list[_Paper]]:
    made = [_Paper(("127.0.0.1", 0), _Handler) for _ in range(count)]
    threads = [threading.Thread(target=each.serve_forever) for each in made]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        for server, thread in zip(made, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


def calling(*servers: _Paper) -> tuple[requests.Session, str]:
    """A session with these, and the URL of a call of the first."""
    at = [f"127.0.0.1:{each.server_address[1]}" for each in servers]
    return session(at), f"http://{at[0]}/webhdfs/v1/x"


def test_the_active_one_is_called_first_from_then_on() -> None:
    with name_nodes() as (one, two):
        one.code, one.body, two.body = 403, _STANDBY, b"two"
        http, url = calling(one, two)
        assert [http.request("GET", url).content for _ in range(3)] == [b"two"] * 3
        assert (one.calls, two.calls) == (1, 3)
        two.code, one.code, one.body = 0, 200, b"one"
        assert http.request("GET", url).content == b"one"


def test_a_call_waits_until_one_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    with name_nodes() as (one, two):
        for each in (one, two):
            each.code, each.body = 403, _STANDBY

        def rest(_: float) -> None:
            two.code, two.body = 200, b"two"

        monkeypatch.setattr(time, "sleep", rest)
        http, url = calling(one, two)
        assert http.request("GET", url).content == b"two"


def test_a_call_that_no_active_one_takes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_session, "_FAIL_OVER_SECONDS", -1.0)
    with name_nodes() as (one, two):
        for each in (one, two):
            each.code, each.body = 403, _STANDBY
        http, url = calling(one, two)
        assert http.request("GET", url).content == _STANDBY
        two.code = 0
        with pytest.raises(requests.ConnectionError):
            http.request("GET", url)


def test_a_rename_without_an_answer_is_not_repeated() -> None:
    with name_nodes() as (one, two):
        one.code = 0
        http, url = calling(one, two)
        with pytest.raises(requests.ConnectionError):
            http.request("PUT", url, params={"op": "RENAME"})
        assert (one.calls, two.calls) == (1, 0)
        assert http.request("PUT", url, params={"op": "MKDIRS"}).status_code == 200


def test_a_refusal_of_the_active_one_is_passed_on() -> None:
    with name_nodes() as (one, two):
        one.code, one.body = 403, b'{"RemoteException": {"message": "Permission denied"}}'
        http, url = calling(one, two)
        assert http.request("GET", url).status_code == 403
        assert two.calls == 0
