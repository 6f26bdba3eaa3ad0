"""Writes of objects through server-side apply, writes that are skipped, and the presence of unreadable objects."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.objects.job_objects import CALL_SECONDS, KubernetesDocuments
from corral.kernel.errors import CorralError, Unavailable
from corral.model.kubernetes_objects import ObjectAddress, ObjectRef
from corral.spec.job_objects import UnifiedJobKind

KIND = UnifiedJobKind()
REF = ObjectRef(KIND.title, "team", "one", "uid-1")
DEEP = b'{"a":' * (sys.getrecursionlimit() + 1) + b"1" + b"}" * (sys.getrecursionlimit() + 1)


def item(uid: str, spec: bytes = b"{}", version: str = "7") -> bytes:
    return b'{"metadata":{"uid":"%s","resourceVersion":"%s"},"spec":%s}' % (uid.encode(), version.encode(), spec)


class Answers:
    """A transport that gives prepared answers and records its calls."""

    def __init__(self, body: bytes = b"") -> None:
        self.body = body
        self.asked: list[tuple[Call, dict[str, Any]]] = []
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def ask(self, call: Call, **named: Any) -> bytes:
        self.asked.append((call, named))
        return self.body

    @asynccontextmanager
    async def stream(self, call: Call, **named: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def chunks() -> AsyncIterator[bytes]:
            while True:
                yield await self.events.get()

        yield chunks()


def documents(answers: Answers, left: Callable[[], float] = lambda: 60.0) -> KubernetesDocuments:
    return KubernetesDocuments(answers, [ObjectAddress.of(KIND)], lease_left=left)  # type: ignore[arg-type]


async def write(found: KubernetesDocuments, merged: bool) -> str:
    if merged:
        return await found.merge(REF, {"spec": {}}, version="5")
    return await found.apply(REF, {"status": {}}, version="5", part="status", subresource="status")


@pytest.mark.parametrize("merged", [False, True])
async def test_a_write_is_for_one_object_at_one_version_and_within_the_lease(merged: bool) -> None:
    answers = Answers(item("uid-1", DEEP, "8"))
    assert await write(documents(answers, lambda: 1.5), merged) == "8"
    ((_, named),) = answers.asked
    metadata = json.loads(named["body"])["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("uid-1", "5")
    assert named["deadline"] == 1.5 < CALL_SECONDS


@pytest.mark.parametrize("merged", [False, True])
async def test_nothing_is_written_once_the_lease_is_over(merged: bool) -> None:
    answers = Answers(item("uid-1"))
    with pytest.raises(Unavailable, match="whether it still leads"):
        await write(documents(answers, lambda: 0.0), merged)
    assert answers.asked == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"metadata":{"annotations":%s}}' % DEEP, b'{"metadata":{"name":"\xff"}}']
)
async def test_a_definition_that_cannot_be_read_is_a_refusal_like_any_other(body: bytes) -> None:
    with pytest.raises(CorralError, match="an invalid definition of"):
        await documents(Answers(body)).definition(KIND.title)


async def test_an_object_that_nobody_can_read_is_there_until_it_goes() -> None:
    items = b",".join([item("plain"), item("deep", DEEP)])
    answers = Answers(b'{"metadata":{"resourceVersion":"9"},"items":[%s]}' % items)
    found = documents(answers)
    running = asyncio.create_task(found.run())
    assert set(await found.whole(KIND.title)) == {"plain", "deep"}
    answers.events.put_nowait(b'{"type":"ADDED","object":%s}\n' % item("later", DEEP))
    answers.events.put_nowait(b'{"type":"DELETED","object":%s}\n' % item("deep", DEEP))
    answers.events.put_nowait(b'{"type":"ADDED","object":%s}\n' % item("last"))
    taken: set[str] = set()
    async with asyncio.timeout(120):
        while "last" not in taken:
            taken |= {change.document["metadata"]["uid"] for change in await found.changes()}
    assert set(found.listed(KIND.title) or ()) == {"plain", "later", "last"}
    running.cancel()
