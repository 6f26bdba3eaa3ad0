"""An upload that breaks off goes on where it was: from both clients, from the command line, and by its header fields."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import random
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.cli.submit import send_code
from corral.client import AsyncClient, Client
from corral.kernel.errors import InvalidInput, Unavailable
from corral.service.jobs.account_limits import Allowance
from tests.api.harness import CODE_LIMIT, Server
from tests.cutting_relay import CuttingRelay, cutting
from tests.waiting import pause

SIZE = 300_000
SEEDS = itertools.count(1000)
"""One for each example: the server has what an earlier one sent."""


def packed(seed: int) -> bytes:
    """An archive of one file that no compression shortens."""
    raw, content = io.BytesIO(), random.Random(seed).randbytes(SIZE)
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        info = tarfile.TarInfo("data.bin")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def relay(server: Server) -> Iterator[CuttingRelay]:
    with cutting(server.url) as relay:
        yield relay


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """Plain HTTP as alice."""
    headers = {"Authorization": f"Bearer {server.token('alice')}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=150) as client:
        yield client


def part(
    http: httpx2.Client, digest: str, data: bytes, offset: int, complete: str = "?0", **more: str
) -> httpx2.Response:
    """The answer to bytes from `offset` on."""
    headers = {
        "upload-offset": str(offset),
        "upload-complete": complete,
        "content-type": "application/partial-upload",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return http.patch(f"/api/v3/blobs/uploads/{digest}", content=data, headers=headers)


def offset_of(http: httpx2.Client, digest: str) -> str:
    return http.head(f"/api/v3/blobs/uploads/{digest}").headers.get("upload-offset", "none")


@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(1, SIZE), max_size=5))
def test_an_upload_goes_on_wherever_the_connection_is_cut(server: Server, relay: CuttingRelay, cuts: list[int]) -> None:
    data = packed(next(SEEDS))
    relay.cuts[:] = cuts
    told: list[int] = []
    with Client(relay.url, server.token("alice")) as client:
        client.send_code(io.BytesIO(data), len(data), digest_of(data), told.append)
    assert server.blobs.get(digest_of(data)).read_bytes() == data
    assert told[0] == 0 and told[-1] == len(data)


async def test_the_async_client_goes_on_too(server: Server, relay: CuttingRelay) -> None:
    data = packed(1)
    relay.cuts[:] = [100, 150_000, 90_000]
    async with AsyncClient(relay.url, await asyncio.to_thread(server.token, "alice")) as client:
        await client.send_code(io.BytesIO(data), len(data), digest_of(data))
    assert server.blobs.get(digest_of(data)).read_bytes() == data and not relay.cuts


def test_a_second_submit_of_a_folder_goes_on_where_the_first_was(
    server: Server, relay: CuttingRelay, tmp_path: Path
) -> None:
    (tmp_path / "data.bin").write_bytes(random.Random(2).randbytes(SIZE))
    relay.cuts[:] = [200_000]
    token = server.token("anna")

    def parts() -> list[str]:
        paths = (server.blobs.root / "partial").glob("*/*")
        return [path.name for path in paths if 100_000 < path.stat().st_size < 200_000]

    relay.arrived = lambda: bool(parts())
    with Client(relay.url, token, patience=0) as client, pytest.raises(Unavailable):
        send_code(client, tmp_path)
    since = time.monotonic()
    while not parts():
        time.sleep(pause(since))
    relay.arrived = lambda: True
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as http:
        (digest,) = parts()
        begun = int(offset_of(http, digest))
        told: list[int] = []
        with Client(relay.url, token) as client:
            assert send_code(client, tmp_path) == digest
            client.send_code(io.BytesIO(), SIZE, digest, told.append)
        assert 0 < begun <= 200_000 and told == [SIZE]
    assert server.blobs.get(digest).stat().st_size > SIZE


def test_the_header_fields_say_how_far_an_upload_is(http: httpx2.Client) -> None:
    data = packed(3)
    digest = digest_of(data)
    assert http.head(f"/api/v3/blobs/uploads/{digest}").status_code == 404
    begun = part(http, digest, data[:1000], 0)
    assert (begun.status_code, begun.json()) == (200, {"digest": digest, "size": 1000, "complete": False})
    asked = http.head(f"/api/v3/blobs/uploads/{digest}")
    assert (asked.status_code, asked.headers["upload-offset"], asked.headers["upload-complete"]) == (204, "1000", "?0")
    assert asked.headers["upload-limit"] == f"max-size={CODE_LIMIT}, max-age=86400"
    assert http.head(f"/api/v3/blobs/code/{digest}").status_code == 404, "a part counts as code"
    assert part(http, digest, data[1000:], 1000, "?1").json() == {"digest": digest, "size": len(data), "complete": True}
    assert http.head(f"/api/v3/blobs/uploads/{digest}").headers["upload-complete"] == "?1"
    assert http.head(f"/api/v3/blobs/code/{digest}").status_code == 200


def test_an_upload_that_was_sent_whole_ends_with_an_empty_body(http: httpx2.Client) -> None:
    data = packed(4)
    assert part(http, digest_of(data), data, 0).json()["complete"] is False
    assert part(http, digest_of(data), b"", len(data), "?1").json()["complete"] is True


def test_a_job_cannot_start_from_a_part(http: httpx2.Client, alice: Client) -> None:
    data = packed(5)
    part(http, digest_of(data), data[:-1], 0)
    document = '{"name": "early", "framework": "shell", "roles": {"worker": {"command": "true"}}}'
    with pytest.raises(InvalidInput, match="never uploaded"):
        alice.submit(document, code=digest_of(data))


@pytest.mark.parametrize(
    ("offset", "changed", "status", "code"),
    [
        (5, {}, 409, "wrong-offset"),
        (999, {}, 409, "wrong-offset"),
        (1001, {}, 409, "wrong-offset"),
        (-1, {}, 422, "invalid-parameter"),
        (10**18, {}, 422, "invalid-parameter"),
        (CODE_LIMIT, {}, 413, "code-too-large"),
        (1000, {"upload_complete": "yes"}, 422, "invalid-parameter"),
        (1000, {"content_type": "application/gzip"}, 400, "not-a-part"),
    ],
)
def test_a_part_that_does_not_fit_is_refused_and_changes_nothing(
    http: httpx2.Client, offset: int, changed: dict[str, str], status: int, code: str
) -> None:
    data = packed(6)
    digest = digest_of(data)
    if offset_of(http, digest) == "none":
        part(http, digest, data[:1000], 0)
    refused = part(http, digest, b"more", offset, **changed)
    assert (refused.status_code, refused.json()["code"]) == (status, code) and refused.json()["message"].endswith(".")
    assert offset_of(http, digest) == "1000"


def test_an_upload_without_a_length_or_a_digest_is_refused(http: httpx2.Client) -> None:
    chunked = http.patch(
        f"/api/v3/blobs/uploads/{'a' * 64}",
        content=iter([b"x"]),
        headers={"upload-offset": "0", "upload-complete": "?1", "content-type": "application/partial-upload"},
    )
    assert (chunked.status_code, chunked.json()["code"]) == (400, "no-length")
    assert part(http, "../../etc", b"x", 0).status_code in (404, 422) and part(http, "ab", b"x", 0).status_code == 422


def test_other_bytes_than_the_digest_are_deleted_and_can_be_sent_again(http: httpx2.Client) -> None:
    data = packed(7)
    digest = digest_of(data)
    part(http, digest, data[:1000][::-1], 0)
    refused = part(http, digest, data[1000:], 1000, "?1")
    assert (refused.status_code, refused.json()["code"]) == (400, "digest-mismatch")
    assert offset_of(http, digest) == "none"


def test_a_client_begins_again_when_the_kept_part_is_damaged(server: Server, http: httpx2.Client) -> None:
    data = packed(8)
    part(http, digest_of(data), data[:1000][::-1], 0)
    with server.client("alice") as client:
        client.send_code(io.BytesIO(data), len(data), digest_of(data))
    assert server.blobs.get(digest_of(data)).read_bytes() == data


def test_another_account_neither_sees_nor_continues_nor_ends_an_upload(server: Server, http: httpx2.Client) -> None:
    data = packed(9)
    digest = digest_of(data)
    part(http, digest, data[:1000], 0)
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token('bob')}"}) as bob:
        assert offset_of(bob, digest) == "none"
        assert part(bob, digest, data[1000:], 1000, "?1").status_code == 409
        assert bob.delete(f"/api/v3/blobs/uploads/{digest}").status_code == 404
    assert offset_of(http, digest) == "1000"
    assert http.delete(f"/api/v3/blobs/uploads/{digest}").status_code == 204 and offset_of(http, digest) == "none"


async def test_two_who_send_the_same_archive_at_once_both_succeed(server: Server) -> None:
    data = packed(10)
    token = await asyncio.to_thread(server.token, "alice")
    async with AsyncClient(server.url, token) as one, AsyncClient(server.url, token) as two:
        await asyncio.gather(*(each.send_code(io.BytesIO(data), len(data), digest_of(data)) for each in (one, two)))
    assert server.blobs.get(digest_of(data)).read_bytes() == data


def test_a_second_writer_is_refused_while_the_first_is_sending(server: Server, http: httpx2.Client) -> None:
    data = packed(11)
    digest = digest_of(data)

    def slowly() -> Iterator[bytes]:
        yield data[:1000]
        begun = time.monotonic()
        while offset_of(http, digest) != "1000":
            time.sleep(pause(begun))
        refused = part(http, digest, data[1000:], 1000, "?1")
        assert (refused.status_code, refused.json()["code"]) == (409, "upload-busy")
        assert http.delete(f"/api/v3/blobs/uploads/{digest}").status_code == 409
        yield data[1000:]

    headers = {"Authorization": f"Bearer {server.token('alice')}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=150) as sending:
        sent = part(sending, digest, slowly(), 0, "?1", content_length=str(len(data)))  # type: ignore[arg-type]
    assert sent.json()["complete"] is True


def test_parts_count_towards_what_an_account_may_keep(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.service.context, "allowance", Allowance(code_bytes=500_000))
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token('carl')}"}) as http:
        one, two = packed(12), packed(13)
        assert part(http, digest_of(one), one[:-1], 0).status_code == 200
        refused = part(http, digest_of(two), two, 0, "?1")
        assert (refused.status_code, refused.json()["code"]) == (413, "too-much-code")
        assert part(http, digest_of(one), one[-1:], len(one) - 1, "?1").status_code == 200


def test_a_server_that_is_away_from_the_start_is_told_at_once() -> None:
    with Client("http://127.0.0.1:9", "crl_x") as client, pytest.raises(Unavailable, match="corral up"):
        client.send_code(io.BytesIO(b"x"), 1, "0" * 64)


def test_a_refusal_that_stays_is_raised_at_once(server: Server) -> None:
    with server.client("alice") as client:
        with pytest.raises(InvalidInput, match="refused"):
            client.send_code(io.BytesIO(b"not a tar"), 9, digest_of(b"not a tar"))
        with pytest.raises(InvalidInput, match="another SHA-256"):
            client.send_code(io.BytesIO(b"x"), 1, "0" * 64)
