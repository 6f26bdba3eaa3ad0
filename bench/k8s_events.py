"""Time how fast control reads the changes of a cluster.

The whole path is measured: TCP, HTTP, decoding, the mirror and a consumer of its changes. The events come from another
process, whose processor time does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench.apiserver import LAST, pod
from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.resources import PODS
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.watch.decoder import Reader
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.engines.kubernetes.watch.reflector import Reflector

PODS_THERE, EVENTS = 5_000, 200_000
CONFIG = """\
{{apiVersion: v1, kind: Config, current-context: b, contexts: [{{name: b, context: {{cluster: b, user: b}}}}],
clusters: [{{name: b, cluster: {{server: "http://127.0.0.1:{port}"}}}}], users: [{{name: b, user: {{token: none}}}}]}}
"""


def measure() -> dict[str, float]:
    """Events per second of this process's own processor time, and the decoder's share of it."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder, _server() as port:
        config = Path(folder) / "config"
        config.write_text(CONFIG.format(port=port))
        cpu, wall, listing = uvloop.run(_follow(str(config)))
    decoding = _decode()
    return {
        "rate": EVENTS / cpu,
        "wall rate": EVENTS / wall,
        "list rate": PODS_THERE / listing,
        "decoding alone": decoding,
        "bytes per event": float(len(pod("pod-1", 1))),
    }


async def _follow(config: str) -> tuple[float, float, float]:
    """Processor and wall seconds of the watch, and processor seconds of the list."""
    transport = Transport(kubeconfig_access(config))
    await transport.open()
    reflector = Reflector(transport, PODS, Pod)
    begun = time.process_time()
    task = asyncio.create_task(reflector.run())
    try:
        await reflector.synced.wait()
        cpu, wall = time.process_time(), time.perf_counter()
        last = False
        while not last:
            last = any(change.object.metadata.name == LAST for change in await reflector.take())
        if len(reflector.items) != PODS_THERE + 1 or reflector.lists != 1 or reflector.watches != 1:
            raise RuntimeError(f"{len(reflector.items)} pods, {reflector.lists} lists, {reflector.watches} watches")
        return time.process_time() - cpu, time.perf_counter() - wall, cpu - begun
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await transport.close()


def _decode() -> float:
    """Events per processor second of the decoder alone, from memory."""
    lines = b"".join(b'{"type":"MODIFIED","object":%s}\n' % pod(f"pod-{at}", at) for at in range(100))
    reader, begun, count = Reader(Pod), time.process_time(), 0
    for _ in range(200):
        count += sum(1 for _ in reader.feed(lines))
    return count / (time.process_time() - begun)


@contextlib.contextmanager
def _server() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.apiserver", str(PODS_THERE), str(EVENTS)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
