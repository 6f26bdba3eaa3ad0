"""A fake API server that sends one list of pods and a watch as fast as the client reads.

It runs in a process of its own, so that its cost does not count. It speaks the HTTP that a reflector needs: one list in
pages, then a watch in chunks. Every event is the same 5.6 KB pod, with the fields that Corral and a kubelet write,
under another name, UID and version.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

POD = Path(__file__).with_name("k8s_pod.json")
PAGE = 500
FLUSH_BYTES = 64 * 1024
NAME, UID, VERSION = b"train-7f3a-worker-0-1", b"00000000-0000-4000-8000-000000000000", b'"184467"'
LAST = "the-last"
"""The pod name in the watch's last event."""


def pod(name: str, version: int) -> bytes:
    """One pod as the API server writes it; its UID follows from its name."""
    document = POD.read_bytes().strip() if not _read else _read[0]
    if not _read:
        _read.append(document)
    document = document.replace(b'"name":"' + NAME + b'"', b'"name":"%s"' % name.encode(), 1)
    return document.replace(UID, b"uid-%s" % name.encode(), 1).replace(VERSION, b'"%d"' % version, 1)


_read: list[bytes] = []


async def serve(pods: int, events: int) -> None:
    """Serve until killed; prints the port on standard output."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].split()[1].decode()
                asked = {name: values[0] for name, values in parse_qs(urlsplit(request).query).items()}
                await (_watch if "watch" in asked else _list)(writer, asked)

    async def _list(writer: asyncio.StreamWriter, asked: dict[str, str]) -> None:
        start = int(asked.get("continue", "0"))
        end = min(pods, start + PAGE)
        proceed = str(end) if end < pods else ""
        head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":['
        body = head % (pods, proceed.encode()) + b",".join(pod(f"pod-{at}", at) for at in range(start, end)) + b"]}"
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()

    async def _watch(writer: asyncio.StreamWriter, _: dict[str, str]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        waiting: list[bytes] = []
        size = 0
        for at in range(events):
            name = LAST if at == events - 1 else f"pod-{at % pods}"
            line = b'{"type":"MODIFIED","object":%s}\n' % pod(name, pods + 1 + at)
            waiting.append(b"%x\r\n%s\r\n" % (len(line), line))
            size += len(line)
            if size > FLUSH_BYTES or at == events - 1:
                writer.write(b"".join(waiting))
                await writer.drain()
                waiting, size = [], 0
        await asyncio.Event().wait()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
