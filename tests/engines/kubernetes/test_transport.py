"""Calls to an API server end in bytes or in one clear error, within their deadline."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.engines.kubernetes.api.access import RENEW_SECONDS, Access, kubeconfig_access, service_account_access
from corral.engines.kubernetes.api.backoff import retry_after
from corral.engines.kubernetes.api.errors import Expired, IdleTimeout
from corral.engines.kubernetes.api.resources import CLAIMS, NODES, PODS, Call
from corral.engines.kubernetes.api.transport import ConnectionLimits, Transport
from corral.kernel.errors import (
    Conflict,
    CorralError,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from tests.engines.kubernetes.faulty_server import (
    Answer,
    Server,
    broken,
    json,
    kubeconfig,
    raw,
    refused,
    serving,
    silent,
)
from tests.examples import examples
from tests.reserved import free_port

LIST = Call("list", PODS, "x")
CREATE = Call("create", PODS, "x")


@asynccontextmanager
async def reaching(
    folder: Path, *script: Answer, limits: ConnectionLimits | None = None
) -> AsyncIterator[tuple[Transport, Server]]:
    async with serving(*script) as server:
        transport = Transport(kubeconfig_access(str(kubeconfig(folder, server.url))), limits)
        await transport.open()
        try:
            yield transport, server
        finally:
            await transport.close()


async def test_an_answer_comes_back_as_its_bytes_and_the_request_is_signed(tmp_path: Path) -> None:
    async with reaching(tmp_path, json({"a": 1})) as (transport, server):
        assert await transport.ask(CREATE, body=b"{}", params={"dryRun": "All"}) == b'{"a": 1}'
    (request,) = server.seen
    assert (request.method, request.path_qs) == ("POST", "/api/v1/namespaces/x/pods?dryRun=All")
    assert request.headers["Authorization"] == "Bearer secret-one"
    assert request.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("call", "path", "said"),
    [
        (Call("list", PODS), "/api/v1/pods", "list pods in all namespaces"),
        (Call("get", PODS, "x", "a", "log"), "/api/v1/namespaces/x/pods/a/log", "get pods a/log in namespace x"),
        (Call("delete", NODES, name="n1"), "/api/v1/nodes/n1", "delete nodes n1"),
        (
            Call("patch", CLAIMS, "x", "c", "status"),
            "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/c/status",
            "patch resourceclaims.resource.k8s.io c/status in namespace x",
        ),
        (
            Call("get", PODS, "../nodes", "a?b"),
            "/api/v1/namespaces/..%2Fnodes/pods/a%3Fb",
            "get pods a?b in namespace ../nodes",
        ),
    ],
)
def test_a_call_has_an_address_and_a_sentence(call: Call, path: str, said: str) -> None:
    assert call.path == path
    assert str(call) == said


DENIED = 'pods is forbidden: User "bob" cannot create resource "pods" in API group "" in the namespace "x"'


@pytest.mark.parametrize(
    ("answer", "error", "code", "sentence"),
    [
        (
            refused(403, DENIED, reason="Forbidden"),
            Forbidden,
            "kubernetes-forbidden",
            "Corral may not create pods in namespace x: allow its account (bob) the verb create on pods.",
        ),
        (
            refused(
                403, 'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3'
            ),
            Forbidden,
            "kubernetes-quota",
            "A resource quota of the cluster forbids to create pods in namespace x: "
            'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3.',
        ),
        (
            refused(403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'),
            Forbidden,
            "kubernetes-admission",
            "An admission rule of the cluster forbids to create pods in namespace x: "
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true.',
        ),
        (
            refused(400, 'admission webhook "no.example" denied the request: not on Fridays'),
            Forbidden,
            "kubernetes-admission",
            "An admission rule of the cluster forbids to create pods in namespace x: "
            'admission webhook "no.example" denied the request: not on Fridays.',
        ),
        (
            refused(409, 'admission webhook "no.example" denied the request: User "a" cannot do that'),
            Forbidden,
            "kubernetes-admission",
            "An admission rule of the cluster forbids to create pods in namespace x: "
            'admission webhook "no.example" denied the request: User "a" cannot do that.',
        ),
        (
            refused(500, 'Internal error occurred: failed calling webhook "no.example": no endpoints'),
            Unavailable,
            "kubernetes-webhook",
            'The admission webhook "no.example" of the cluster could not be asked whether to create pods in namespace x: '
            'Internal error occurred: failed calling webhook "no.example": no endpoints.',
        ),
        (
            refused(422, 'Pod "a" is invalid: spec.containers: Required value', reason="Invalid"),
            InvalidInput,
            "kubernetes-refused",
            'The cluster refused to create pods in namespace x: Pod "a" is invalid: spec.containers: Required value.',
        ),
        (
            refused(404, 'namespaces "x" not found', reason="NotFound"),
            NotFound,
            "kubernetes-not-found",
            'The cluster could not create pods in namespace x: it has no such thing: namespaces "x" not found.',
        ),
        (
            refused(409, 'pods "a" already exists', reason="AlreadyExists"),
            Conflict,
            "kubernetes-exists",
            'The cluster could not create pods in namespace x: pods "a" already exists.',
        ),
        (
            refused(409, "the object has been modified", reason="Conflict"),
            Conflict,
            "kubernetes-conflict",
            "The cluster could not create pods in namespace x: the object has been modified.",
        ),
        (
            refused(410, "The provided continue parameter is too old", reason="Expired"),
            Expired,
            "kubernetes-expired",
            None,
        ),
        (
            refused(
                504,
                "Timeout: Too large resource version: 9, current: 2",
                causes=[{"reason": "ResourceVersionTooLarge"}],
            ),
            Expired,
            "kubernetes-expired",
            None,
        ),
        (refused(413, "request too large"), TooLarge, "kubernetes-too-large", None),
        (refused(401, "Unauthorized"), Unauthenticated, "kubernetes-unauthenticated", None),
        (raw(b"<html>nginx</html>"), None, "", None),
        (
            json("teapot", status=418),
            InvalidInput,
            "kubernetes-refused",
            'The cluster refused to create pods in namespace x (HTTP 418): "teapot".',
        ),
    ],
)
async def test_a_refusal_is_one_sentence_with_a_code(
    tmp_path: Path, answer: Answer, error: type[CorralError] | None, code: str, sentence: str | None
) -> None:
    async with reaching(tmp_path, answer) as (transport, _):
        if error is None:
            assert await transport.ask(CREATE, body=b"{}") == b"<html>nginx</html>"
            return
        with pytest.raises(error) as caught:
            await transport.ask(CREATE, body=b"{}", deadline=60)
    assert caught.value.code == code
    assert sentence is None or caught.value.message == sentence
    assert "secret-one" not in str(caught.value) + str(caught.value.details)


@pytest.mark.parametrize("failure", [refused(500, "etcd"), refused(503), refused(504), broken])
async def test_a_read_is_repeated_after_a_failure(tmp_path: Path, failure: Answer) -> None:
    async with reaching(tmp_path, failure, failure, json({})) as (transport, server):
        assert await transport.ask(LIST) == b"{}"
    assert len(server.seen) >= 3


@pytest.mark.parametrize("failure", [refused(500, "etcd"), refused(504), broken])
async def test_a_write_whose_effect_is_unknown_is_not_repeated_unasked(tmp_path: Path, failure: Answer) -> None:
    async with reaching(tmp_path, failure, json({})) as (transport, server):
        with pytest.raises(Unavailable) as caught:
            await transport.ask(CREATE, body=b"{}")
        assert caught.value.details["sent"] is True
        assert len(server.seen) == 1
        assert await transport.ask(CREATE, body=b"{}", repeatable=True) == b"{}"


async def test_a_busy_server_is_asked_again_after_what_it_asks_for_also_for_a_write(tmp_path: Path) -> None:
    busy = refused(429, "too many requests", headers={"Retry-After": "1"})
    async with reaching(tmp_path, busy, json({})) as (transport, server):
        begun = asyncio.get_running_loop().time()
        assert await transport.ask(CREATE, body=b"{}") == b"{}"
        assert asyncio.get_running_loop().time() - begun >= 1.0
    assert server.bodies == [b"{}", b"{}"]


async def test_a_server_that_is_busy_for_longer_than_the_deadline_is_reported_at_once(tmp_path: Path) -> None:
    async with reaching(tmp_path, refused(429, headers={"Retry-After": "30"})) as (transport, server):
        with pytest.raises(TooManyRequests) as caught:
            await transport.ask(CREATE, body=b"{}", deadline=5.0)
    assert caught.value.details["retry_after"] == 30.0
    assert caught.value.details["sent"] is False
    assert len(server.seen) == 1


async def test_a_server_that_does_not_answer_costs_no_more_than_the_deadline(tmp_path: Path) -> None:
    async with reaching(tmp_path, silent) as (transport, _):
        with pytest.raises(Unavailable) as caught:
            await transport.ask(CREATE, body=b"{}", deadline=0.3)
    assert caught.value.code == "kubernetes-timeout"
    assert caught.value.details["sent"] is True
    assert caught.value.message == "The cluster did not create pods in namespace x within 0.3 s."


async def test_a_read_on_a_dead_connection_is_tried_on_another_one_within_its_deadline(tmp_path: Path) -> None:
    async with reaching(tmp_path, silent, json({})) as (transport, server):
        assert await transport.ask(LIST, deadline=6.0) == b"{}"
    assert len(server.seen) >= 2


async def test_a_connection_that_is_refused_was_never_sent_and_is_tried_again(tmp_path: Path) -> None:
    transport = Transport(kubeconfig_access(str(kubeconfig(tmp_path, f"http://127.0.0.1:{free_port()}"))))
    await transport.open()
    try:
        with pytest.raises(Unavailable) as caught:
            await transport.ask(CREATE, body=b"{}", deadline=3.0)
    finally:
        await transport.close()
    assert caught.value.code == "kubernetes-unreachable"
    assert caught.value.details["sent"] is False


async def test_no_more_calls_are_under_way_than_connections_allow(tmp_path: Path) -> None:
    under_way, most = 0, 0

    async def count(request: object) -> object:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return await json({})(request)  # type: ignore[arg-type]

    async with reaching(tmp_path, count, limits=ConnectionLimits(connections=3)) as (transport, _):  # type: ignore[arg-type]
        await asyncio.gather(*(transport.ask(LIST) for _ in range(20)))
    assert most == 3


async def test_an_answer_beyond_its_bound_is_refused_also_when_it_was_packed(tmp_path: Path) -> None:
    import gzip

    packed = gzip.compress(b"0" * 5_000_000)
    answers = raw(b"0" * 2_000_000), raw(packed, headers={"Content-Encoding": "gzip"})
    for answer in answers:
        async with reaching(tmp_path, answer, limits=ConnectionLimits(answer_bytes=1_000_000)) as (transport, _):
            with pytest.raises(Unavailable) as caught:
                await transport.ask(LIST)
        assert caught.value.code == "kubernetes-answer-too-large"


async def test_a_packed_answer_is_unpacked_and_a_broken_one_is_asked_for_again(tmp_path: Path) -> None:
    import gzip

    good, bad = gzip.compress(b'{"a":1}'), b"\x1f\x8b\x08 not gzip"
    header = {"Content-Encoding": "gzip"}
    async with reaching(tmp_path, raw(bad, headers=header), raw(good, headers=header)) as (transport, server):
        assert await transport.ask(LIST) == b'{"a":1}'
    assert len(server.seen) == 2


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with reaching(tmp_path, json({}, status=302, headers={"Location": "http://127.0.0.1:1/"})) as (
        transport,
        server,
    ):
        with pytest.raises(Unavailable):
            await transport.ask(CREATE, body=b"{}")
    assert len(server.seen) == 1


async def test_a_stream_gives_what_comes_and_ends_with_the_server(tmp_path: Path) -> None:
    async with reaching(tmp_path, raw(b"a\n", b"b\n")) as (transport, _):
        async with transport.stream(Call("watch", PODS)) as chunks:
            assert b"".join([chunk async for chunk in chunks]) == b"a\nb\n"


@pytest.mark.parametrize(("then", "idle", "error"), [("break", 60.0, Unavailable), ("silence", 2.0, IdleTimeout)])
async def test_a_stream_that_breaks_off_or_falls_silent_is_an_error(
    tmp_path: Path, then: str, idle: float, error: type[CorralError]
) -> None:
    async with reaching(tmp_path, raw(b"a\n", then=then)) as (transport, _):
        got = b""
        with pytest.raises(error):
            async with transport.stream(Call("watch", PODS), idle=idle) as chunks:
                async for chunk in chunks:
                    got += chunk
    assert got == b"a\n"


async def test_an_error_of_the_reader_of_a_stream_stays_its_own(tmp_path: Path) -> None:
    async with reaching(tmp_path, raw(b"a\n", then="silence")) as (transport, _):
        with pytest.raises(OSError, match="mine"):
            async with transport.stream(Call("watch", PODS)):
                raise OSError("mine")


async def test_a_refused_stream_says_what_was_refused(tmp_path: Path) -> None:
    async with reaching(tmp_path, refused(410, "too old resource version", reason="Expired")) as (transport, _):
        with pytest.raises(Expired):
            async with transport.stream(Call("watch", PODS)):
                raise AssertionError("no stream may begin")


async def echo(request: web.Request) -> web.StreamResponse:
    """A WebSocket that reports its request and then echoes all input."""
    socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
    await socket.prepare(request)
    await socket.send_str(request.path_qs)
    async for message in socket:
        await socket.send_bytes(message.data)
    return socket


EXEC = Call("get", PODS, "x", "a", "exec")


async def test_a_websocket_carries_bytes_both_ways(tmp_path: Path) -> None:
    async with reaching(tmp_path, refused(401, "Unauthorized"), echo) as (transport, _):
        params = [("command", "sh"), ("command", "-c"), ("stdin", "true")]
        async with transport.websocket(EXEC, params=params, protocols=("v5.channel.k8s.io",)) as socket:
            assert socket.protocol == "v5.channel.k8s.io"
            said = (await socket.receive_str()).partition("?")
            assert said == ("/api/v1/namespaces/x/pods/a/exec", "?", "command=sh&command=-c&stdin=true")
            await socket.send_bytes(b"\x00hello")
            assert await socket.receive_bytes() == b"\x00hello"


async def test_people_who_fill_all_websockets_leave_the_watches_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ConnectionLimits(streams=1, sessions=2, deadline_seconds=60.0)
    async with reaching(tmp_path, echo, echo, json({}), limits=limits) as (transport, _):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(transport.websocket(EXEC, params=[], protocols=("v5.channel.k8s.io",)))
            monkeypatch.setattr(transport, "_limits", dataclasses.replace(limits, deadline_seconds=0.5))
            with pytest.raises(Unavailable):
                async with transport.websocket(EXEC, params=[], protocols=("v5.channel.k8s.io",)):
                    raise AssertionError("no connection may be made")
            async with asyncio.timeout(120), transport.stream(Call("watch", PODS)) as chunks:
                assert [chunk async for chunk in chunks] == [b"{}"]


async def test_a_refused_websocket_says_what_was_refused(tmp_path: Path) -> None:
    answer = refused(403, 'pods "a" is forbidden: User "bob" cannot get resource "pods/exec" in API group "" in …')
    async with reaching(tmp_path, answer) as (transport, _):
        with pytest.raises(Forbidden, match=r"^Corral may not get pods/exec in namespace x: allow its account \(bob\)"):
            async with transport.websocket(EXEC, params=[], protocols=[]):
                raise AssertionError("no connection may be made")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "999999999999"}, 300.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Sat, 21 Nov 2026 20:00:09 GMT", "Date": "Sat, 21 Nov 2026 20:00:00 GMT"}, 9.0),
        ({"Retry-After": "Sat, 21 Nov 1990 20:00:09 GMT", "Date": "Sat, 21 Nov 1990 20:00:00 GMT"}, 9.0),
        ({"Retry-After": "Sat, 21 Nov 2026 19:00:00 GMT", "Date": "Sat, 21 Nov 2026 20:00:00 GMT"}, 0.0),
        ({"Retry-After": "Sat, 21 Nov 2026 20:00:09 GMT"}, None),
    ],
)
def test_retry_after_is_read_without_trusting_a_clock(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def signed(*tokens: str) -> Answer:
    """Answers only requests with one of these tokens."""

    async def answer(request: object) -> object:
        good = request.headers.get("Authorization") in {f"Bearer {token}" for token in tokens}  # type: ignore[attr-defined]
        return await (json({}) if good else refused(401, "Unauthorized"))(request)  # type: ignore[arg-type]

    return answer  # type: ignore[return-value]


async def test_a_token_that_was_replaced_in_the_file_is_read_when_the_old_one_expires(tmp_path: Path) -> None:
    async with reaching(tmp_path, signed("secret-two")) as (transport, server):
        kubeconfig(tmp_path, server.url, {"token": "secret-two"})
        assert await transport.ask(CREATE, body=b"{}") == b"{}"
        async with transport.stream(Call("watch", PODS)) as chunks:
            assert [chunk async for chunk in chunks] == [b"{}"]
    assert len(server.seen) == 3


def plugin(folder: Path) -> tuple[dict[str, object], Path]:
    """A user whose exec plugin returns t1, t2, …, and the file whose length counts its runs."""
    script, count = folder / "plugin.py", folder / "count"
    script.write_text(
        f"open({str(count)!r}, 'a').write('x')\n"
        'print(\'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "t%d"}}\' % len(open(' + repr(str(count)) + ").read()))\n"
    )
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": sys.executable, "args": [str(script)]}}, count


@asynccontextmanager
async def signing_in(folder: Path, user: dict[str, object], *script: Answer) -> AsyncIterator[Transport]:
    async with serving(*script) as server:
        transport = Transport(kubeconfig_access(str(kubeconfig(folder, server.url, user))))
        await transport.open()
        try:
            yield transport
        finally:
            await transport.close()


async def test_many_calls_that_find_the_token_expired_renew_it_once(tmp_path: Path) -> None:
    user, count = plugin(tmp_path)
    async with signing_in(tmp_path, user, signed("t2")) as transport:
        assert await asyncio.gather(*(transport.ask(LIST) for _ in range(10))) == [b"{}"] * 10
    assert count.read_text() == "xx"


async def test_a_server_that_accepts_no_token_does_not_make_a_plug_in_run_for_every_call(tmp_path: Path) -> None:
    user, count = plugin(tmp_path)
    async with signing_in(tmp_path, user, refused(401, "Unauthorized")) as transport:
        for _ in range(5):
            with pytest.raises(Unauthenticated):
                await transport.ask(LIST)
    assert count.read_text() == "xx"


async def test_a_plug_in_that_gives_nothing_for_a_while_is_no_refusal_of_what_was_asked(tmp_path: Path) -> None:
    user, count = plugin(tmp_path)
    async with signing_in(tmp_path, user, signed("t3"), signed("t3")) as transport:
        script = tmp_path / "plugin.py"
        works = script.read_text()
        script.write_text(works + "raise SystemExit(1)\n")
        with pytest.raises(Unauthenticated, match="cannot be used"):
            await transport.ask(CREATE, body=b"{}")
        script.write_text(works)
        transport._access._renewed_at = -RENEW_SECONDS
        assert await transport.ask(CREATE, body=b"{}") == b"{}"
    assert count.read_text() == "xxx"


async def test_a_service_account_token_is_read_again_every_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_text("unused")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = service_account_access(environment, tmp_path)
    await access.open()
    assert access.host == "https://10.0.0.1:443"
    assert await access.headers() == {"Authorization": "Bearer one"}
    (tmp_path / "token").write_text("two")
    assert await access.headers() == {"Authorization": "Bearer one"}
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now + 61)
    assert await access.headers() == {"Authorization": "Bearer two"}
    (tmp_path / "token").unlink()
    monkeypatch.setattr(loop, "time", lambda: now + 122)
    assert await access.headers() == {"Authorization": "Bearer two"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "There is no kubeconfig file {path}."),
        ("{", "The kubeconfig {path} cannot be used: it is not YAML (line 1)."),
        ("[]", "The kubeconfig {path} cannot be used: it lacks what a kubeconfig must have (TypeError)."),
        (
            "{users: [{name: me, user: {token: secret-one}}], contexts: [{name: c, context: {user: me}}],"
            " current-context: c, clusters: []}",
            "The kubeconfig {path} cannot be used: Invalid kube-config file. Expected key cluster.",
        ),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_refused_without_its_secrets(
    tmp_path: Path, text: str | None, sentence: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    access: Access = kubeconfig_access(str(path))
    with pytest.raises(InvalidInput) as caught:
        await access.open()
    assert caught.value.message == sentence.format(path=path)


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 403 No\r\nContent-Type: application/json\r\n\r\n",
    ]
)


@settings(max_examples=examples(60))
@given(
    HEADS, st.binary(max_size=60) | st.sampled_from([b"5\r\nab", b'{"kind":"Status","details":[]}', b"\x1f\x8b\x08"])
)
def test_whatever_bytes_a_server_sends_are_an_answer_or_an_error_of_the_house(head: bytes, rest: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + rest)
        writer.close()

    async def work(folder: Path) -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = Transport(kubeconfig_access(str(kubeconfig(folder, url))))
        await transport.open()
        try:
            with contextlib.suppress(CorralError):
                await transport.ask(Call("delete", PODS, "x", "a"), deadline=2.0)
            with contextlib.suppress(CorralError):
                async with transport.stream(Call("watch", PODS), idle=2.0) as chunks:
                    async for _ in chunks:
                        pass
        finally:
            await transport.close()
            server.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(work(Path(folder)))


def test_who_lacks_the_extra_is_told_what_to_install() -> None:
    import subprocess

    code = (
        "import sys; sys.modules['aiohttp'] = None; import importlib.util as util; real = util.find_spec;"
        "util.find_spec = lambda name, *rest: None if name == 'aiohttp' else real(name, *rest);"
        "from corral.engines.kubernetes.api.optional_dependency import require_extra; require_extra()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert "The Kubernetes engine needs aiohttp: pip install 'corral[kubernetes]'." in done.stderr


def test_the_library_comes_without_its_models_and_leaves_a_full_import_possible() -> None:
    import subprocess

    code = (
        "import sys; from corral.engines.kubernetes.api.client_library import library; library();"
        "assert not any(name.startswith('kubernetes_asyncio.client.models') for name in sys.modules);"
        "assert 'kubernetes_asyncio' not in sys.modules;"
        "from kubernetes_asyncio.client import CoreV1Api; from kubernetes_asyncio import config; config.load_kube_config"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
