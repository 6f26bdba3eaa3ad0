"""Event streams and followed logs are complete, resumable and cheap."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from corral.api.events import Listener, Tailer
from corral.api.log_merge import Merge
from corral.client import Client
from corral.client.schema import EventRecord
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from tests.api.harness import Server
from tests.api.test_jobs_are_submitted_and_read import job


def take(events: Iterator[EventRecord], count: int) -> list[EventRecord]:
    return list(itertools.islice(events, count))


def test_a_stream_shows_what_happens_after_it_was_opened(server: Server, alice: Client) -> None:
    seen: list[EventRecord] = []
    opened = threading.Event()

    def watch() -> None:
        with server.client("watcher") as client:
            for event in client._feed(timeout=120):
                opened.set()
                if event is not None:
                    seen.append(event)
                    return

    watching = threading.Thread(target=watch)
    watching.start()
    assert opened.wait(120)
    made = alice.submit(job("seen-live"))
    watching.join(120)
    assert [(event["kind"], event["job"]) for event in seen] == [("job.submitted", made["id"])]


def test_a_stream_resumed_by_the_last_id_skips_nothing_and_repeats_nothing(alice: Client) -> None:
    ids = [alice.submit(job(f"resumed-{number}"))["id"] for number in range(5)]
    first = alice.job_events(ids[0])["items"][0]["seq"]
    later = take(alice.events(after=first, timeout=120), 4)
    assert [event["job"] for event in later] == ids[1:]
    again = take(alice.events(after=later[1]["seq"], timeout=120), 2)
    assert [event["job"] for event in again] == ids[3:]


def test_a_stream_of_one_job_has_only_its_events(alice: Client) -> None:
    one, two = alice.submit(job("only-one")), alice.submit(job("only-two"))
    alice.stop(two["id"])
    alice.stop(one["id"])
    found = take(alice.events(after=0, job="only-one", timeout=120), 2)
    assert [event["kind"] for event in found] == ["job.submitted", "job.stop-requested"]
    assert {event["job"] for event in found} == {one["id"]}


async def test_a_listener_that_falls_behind_loses_its_queue_and_not_its_place() -> None:
    listener = Listener()
    listener.behind = False
    listener.offer([(None, b"")] * 900)  # type: ignore[list-item]
    assert len(listener.waiting) == 900
    listener.offer([(None, b"")] * 200)  # type: ignore[list-item]
    assert listener.behind and not listener.waiting


def test_one_reader_serves_all_streams_and_ends_with_the_last(server: Server, alice: Client) -> None:
    tailer: Tailer = server.app.state.tailer
    begun = time.monotonic()
    while tailer._listeners:  # the streams of tests before this one have not left yet
        assert time.monotonic() - begun < 120, len(tailer._listeners)
        time.sleep(0.01)
    streams = []
    for _ in range(20):
        feed = alice._feed(timeout=120)
        next(feed)
        streams.append(feed)
    assert len(tailer._listeners) == 20
    assert tailer._task is not None
    for feed in streams:
        feed.close()  # type: ignore[attr-defined]


@pytest.fixture
def task(server: Server, alice: Client, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A job whose worker-0 has a log file: the job's id and the file, as an engine would have made it."""
    made = alice.submit(job("logs-" + str(abs(hash(request.node.name)) % 10**8)))
    attempt = AttemptId(f"{made['id']}.0.worker.0.0")
    return made["id"], Path(server.logs.prepare(attempt)[0])


def attempt_of(job_id: str) -> str:
    return f"{job_id}.0.worker.0.0"


@pytest.fixture
def http_log(server: Server, task: tuple[str, Path]) -> str:
    """The address of the log of `task`."""
    return f"{server.url}/api/v3/jobs/{task[0]}/tasks/worker/0/logs?attempt={attempt_of(task[0])}"


def test_a_log_is_read_by_offset_by_range_and_by_its_last_lines(
    server: Server, task: tuple[str, Path], http_log: str
) -> None:
    import httpx2

    task[1].write_bytes(b"".join(b"line %d\n" % number for number in range(100)))
    with httpx2.Client(headers={"authorization": f"Bearer {server.token('alice')}"}, trust_env=False) as http:
        whole = http.get(http_log)
        assert whole.content == task[1].read_bytes()
        assert whole.headers["x-corral-next"] == str(len(whole.content))
        assert http.get(f"{http_log}&offset=7&limit=7").content == b"line 1\n"
        assert http.get(f"{http_log}&tail=2").content == b"line 98\nline 99\n"
        part = http.get(http_log, headers={"range": "bytes=0-5"})
        assert (part.status_code, part.content) == (206, b"line 0")
        assert part.headers["content-range"] == f"bytes 0-5/{len(whole.content)}"
        assert http.get(http_log, headers={"range": "bytes=-8"}).content == b"line 99\n"
        assert http.get(http_log, headers={"range": f"bytes={10**9}-"}).status_code == 416
        assert http.get(http_log, headers={"range": "lines=1-2"}).status_code == 400
        assert http.get(f"{http_log}&offset={10**12}").content == b""


def test_a_followed_log_arrives_as_it_is_written_and_ends_with_the_attempt(
    server: Server, alice: Client, task: tuple[str, Path]
) -> None:
    job_id, path = task
    path.touch()
    feed = alice.log(job_id, "worker", 0, follow=True, attempt=attempt_of(job_id))
    with path.open("ab", buffering=0) as log:
        for word in (b"one\n", b"two\n"):
            log.write(word)
            assert next(feed) == word
    server.logs.finish(AttemptId(attempt_of(job_id)))
    assert list(feed) == []


def test_the_merged_log_has_whole_lines_with_the_task_before_each(server: Server) -> None:
    class Source:
        def __init__(self, name: str, data: bytes, stream: str = "all") -> None:
            self.attempt, self.data, self.stream = name, data, stream

        async def size(self) -> int:
            return len(self.data)

        async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
            return offset, self.data[offset : offset + min(limit, 3)]

        async def tail(self, lines: int) -> int:
            return 0

        async def wait(self, offset: int, seconds: float) -> bool:
            return False

        async def close(self) -> None:
            self.data = b""

    async def merged() -> bytes:
        merge = Merge(prefix=True, tail=None, follow=True)
        await merge.add([("worker", 0, Source("a", b"first\nsecond\nrest")), ("worker", 1, Source("b", b"other\n"))])
        await merge.add([("worker", 0, Source("a", b"never twice\n")), ("worker", 1, Source("b", b"ill\n", "stderr"))])
        return b"".join([piece async for piece in merge.stream(None)])

    lines = sorted(server.call(merged()).decode().splitlines())
    assert lines == ["worker-0 | first", "worker-0 | rest", "worker-0 | second", "worker-1 | ill", "worker-1 | other"]


def test_a_stream_that_the_task_does_not_have_is_refused(alice: Client, task: tuple[str, Path]) -> None:
    task[1].touch()
    with pytest.raises(InvalidInput):
        list(alice.log(task[0], "worker", 0, stream="stderr", attempt=attempt_of(task[0])))


def test_following_a_large_log_is_constant_in_memory(server: Server, alice: Client, task: tuple[str, Path]) -> None:
    job_id, path = task
    size = 64 * 1024 * 1024
    with path.open("wb") as log:
        for _ in range(64):
            log.write(b"x" * (size // 64))
    server.logs.finish(AttemptId(attempt_of(job_id)))
    got = largest = 0
    for piece in alice.log(job_id, "worker", 0, follow=True, attempt=attempt_of(job_id)):
        got += len(piece)
        largest = max(largest, len(piece))
    assert got == size
    assert largest <= 256 * 1024


def test_the_frame_of_an_event_is_what_browsers_read(alice: Client, server: Server) -> None:
    made = alice.submit(job("framed"))
    seq = alice.job_events(made["id"])["items"][0]["seq"]
    headers = {"authorization": f"Bearer {server.token('alice')}", "last-event-id": str(seq - 1)}
    with httpx2.stream("GET", f"{server.url}/api/v3/events", headers=headers, trust_env=False) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = itertools.islice((line for line in stream.iter_lines() if line and not line.startswith(":")), 3)
        id_line, event_line, data_line = lines
    assert id_line == f"id: {seq}"
    assert event_line == "event: job.submitted"
    assert json.loads(data_line.removeprefix("data: "))["job"] == made["id"]
