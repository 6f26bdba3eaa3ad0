"""A message that is taken for plain has the one reading that h11 gives it; all others are left to h11."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.api.services.headers import Place, for_service
from corral.api.services.plain_messages import plain_answer, plain_request

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Odd: \xe9\tb \r\nContent-Length: 2\r\n\r\nok"
HEADERS = [(b"accept", b"*/*"), (b"host", b"localhost:80"), (b"x-empty", b"")]


def by_h11(data: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
    """What h11 reads as a whole answer to a GET, after which the connection is kept; None if it is not one."""
    http = h11.Connection(h11.CLIENT)
    http.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    http.send(h11.EndOfMessage())
    http.receive_data(data)
    body = b""
    try:
        head = http.next_event()
        if not isinstance(head, h11.Response):
            return None
        while isinstance(event := http.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.EndOfMessage) or http.their_state is not h11.DONE or http.trailing_data[0]:
        return None
    return head.status_code, list(head.headers), body


def test_a_plain_answer_is_read_whole() -> None:
    found = plain_answer(PLAIN, 1024, 10)
    assert found == (200, [(b"content-type", b"text/plain"), (b"x-odd", b"\xe9\tb"), (b"content-length", b"2")], b"ok")
    assert by_h11(PLAIN) == found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        PLAIN[:-1],
        PLAIN + b"x",
        PLAIN + PLAIN,
        PLAIN.replace(b"1.1", b"1.0"),
        PLAIN.replace(b"200 OK", b"100 Continue"),
        PLAIN.replace(b"200 OK", b"101 Switching"),
        PLAIN.replace(b"200 OK", b"204 None"),
        PLAIN.replace(b"200 OK", b"304 Same"),
        PLAIN.replace(b"200", b"2000"),
        PLAIN.replace(b"X-Odd:", b"X Odd:"),
        PLAIN.replace(b"X-Odd:", b"X-Odd :"),
        PLAIN.replace(b"X-Odd:", b" X-Odd:"),
        PLAIN.replace(b"\xe9", b"\x01"),
        PLAIN.replace(b"\xe9", b"\r"),
        PLAIN.replace(b"\xe9", b"\n"),
        PLAIN.replace(b"\r\n", b"\n"),
        PLAIN.replace(b"X-Odd: ", b"Content-Length: 2\r\nX-Odd: "),
        PLAIN.replace(b"X-Odd: ", b"Transfer-Encoding: chunked\r\nX-Odd: "),
        PLAIN.replace(b"X-Odd: ", b"Connection: close\r\nX-Odd: "),
        PLAIN.replace(b"X-Odd: ", b"Connection: keep-alive, X-Odd\r\nX-Odd: "),
        PLAIN.replace(b"X-Odd: ", b"Upgrade: h2c\r\nX-Odd: "),
        PLAIN.replace(b"Length: 2", b"Length: +2"),
        PLAIN.replace(b"Length: 2", b"Length: 2, 2"),
        PLAIN.replace(b"Length: 2", b"Length: "),
        PLAIN.replace(b"Content-Length: 2\r\n", b""),
    ],
)
def test_what_is_not_so_plain_is_left_to_h11(data: bytes) -> None:
    assert plain_answer(data, 1024, 10) is None


def test_an_answer_beyond_the_bounds_is_not_plain() -> None:
    assert plain_answer(PLAIN, PLAIN.index(b"\r\n\r\n"), 10) is None
    assert plain_answer(PLAIN, 1024, 2) is None


PIECES = [
    b"HTTP/1.1 200 OK", b"HTTP/1.1 404 Not Found", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 ", b"HTTP/1.1 200", b"\r\n", b"\r\n",
    b"\r\n\r\n", b"\n", b"\r", b"Content-Length: 3", b"content-length:3", b"Content-Length: 03", b"Content-Length: 3 3",
    b"Transfer-Encoding: chunked", b"Connection: close", b"Connection: keep-alive", b"A: b", b"A:", b"A : b", b" fold",
    b"Trailer: A", b"\x00", b"\xff", b"abc", b"abcd", b"3\r\nabc\r\n0\r\n\r\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=12))
def test_the_plain_reading_is_h11s(pieces: list[bytes]) -> None:
    data = b"HTTP/1.1 200 OK\r\n" + b"".join(pieces)
    found = plain_answer(data, 1024, 20)
    assert found is None or by_h11(data) == (found.status, found.headers, found.body)


def test_a_plain_request_begins_with_its_host() -> None:
    written = plain_request("GET", b"/a?b=%20", HEADERS)
    assert written == b"GET /a?b=%20 HTTP/1.1\r\nhost: localhost:80\r\naccept: */*\r\nx-empty: \r\n\r\n"


@pytest.mark.parametrize(
    ("method", "target", "more"),
    [
        ("GET", b"/a b", []),
        ("GET", b"/\xff", []),
        ("GET", b"/ HTTP/1.1\r\nX: y", []),
        ("G T", b"/", []),
        ("get", b"/", []),
        ("GET", b"/", [(b"a", b"b\r\nc: d")]),
        ("GET", b"/", [(b"a", b"b\x00")]),
        ("GET", b"/", [(b"a", b" b")]),
        ("GET", b"/", [(b"a", b"b\t")]),
        ("GET", b"/", [(b"a b", b"c")]),
        ("GET", b"/", [(b"", b"c")]),
        ("GET", b"/", [(b"a: b", b"c")]),
    ],
)
def test_a_request_that_could_be_read_as_another_is_not_plain(
    method: str, target: bytes, more: list[tuple[bytes, bytes]]
) -> None:
    assert plain_request(method, target, [*HEADERS, *more]) is None


def test_blanks_after_a_value_are_not_passed_on() -> None:
    sent = [
        (b"host", b"a.localhost "),
        (b"x-odd", b"a b \t"),
        (b"authorization", b"Basic eA== "),
        (b"cookie", b"a=1; "),
    ]
    place = Place("http://a.localhost", "/proxy/a/main-0/web", False, 80, ())
    passed = dict(for_service(sent, place, lambda _: False))
    assert (passed[b"x-odd"], passed[b"authorization"], passed[b"cookie"]) == (b"a b", b"Basic eA==", b"a=1")
    assert plain_request("GET", b"/", list(passed.items()))


@given(st.binary(min_size=1, max_size=6), st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=3))
def test_a_plain_request_is_read_by_a_server_as_it_was_meant(target: bytes, more: list[tuple[bytes, bytes]]) -> None:
    written = plain_request("GET", target, [(b"host", b"a"), *more])
    if written is None or any(name.lower() in (b"host", b"transfer-encoding", b"content-length") for name, _ in more):
        return
    sent = h11.Request(method="GET", target=target, headers=[(b"host", b"a"), *more])
    assert h11.Connection(h11.CLIENT).send(sent), "h11 follows the exchange where the answer is not plain"
    http = h11.Connection(h11.SERVER)
    http.receive_data(written)
    request = http.next_event()
    assert isinstance(request, h11.Request)
    read = [(name.lower(), value.strip(b" \t")) for name, value in more]
    assert (request.method, request.target, list(request.headers)) == (b"GET", target, [(b"host", b"a"), *read])
    assert isinstance(http.next_event(), h11.EndOfMessage) and http.trailing_data == (b"", False)
