"""A fake API server with 5,000 nodes and 50,000 pods, which need too much memory to run for real.

It answers lists in pages and watches with changes, as the API server does: nodes of 8 devices in racks of twenty, and
ten running pods of 5.6 KB on each that are not Corral's. Every other list is empty.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from bench.apiserver import pod

BOOKMARK_SECONDS = 30.0
NODE_OF_PODS = b'"nodeName":"node-017"'
_IMAGES = [{"names": [f"registry.example/team/image-{at}@sha256:{at:064x}"], "sizeBytes": 10**9} for at in range(50)]
_CONDITIONS = ("NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


def node_name(at: int) -> str:
    """The name of node `at`."""
    return f"node-{at:05}"


def node(at: int) -> bytes:
    """One node as the API server writes it, with the images that a kubelet reports."""
    name, rack = node_name(at), f"rack-{at // 20}"
    amounts = {"cpu": "96", "memory": "1055123456Ki", "pods": "250", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "topology.kubernetes.io/zone": f"zone-{at // 1000}",
        "topology.kubernetes.io/rack": rack,
    }
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": "Kubelet",
            "message": "kubelet says so",
        }
        for kind in _CONDITIONS
    ]
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(at + 1), "labels": labels},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"cloud://{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": f"10.{at >> 8}.{at & 255}.1"}],
            "images": _IMAGES,
            "nodeInfo": {"kubeletVersion": "v1.34.1", "bootID": name, "machineID": name},
        },
    }
    return json.dumps(document).encode()


def pod_of(nodes: int, at: int, version: int) -> bytes:
    """One pod, running on one of the nodes."""
    return pod(f"pod-{at}", version).replace(NODE_OF_PODS, b'"nodeName":"%s"' % node_name(at % nodes).encode(), 1)


async def serve(nodes: int, pods: int, changes: int) -> None:
    """Serve until killed; prints the port on standard output."""
    kinds: dict[str, tuple[int, int, Callable[[int, int], bytes]]] = {
        "/api/v1/nodes": (nodes, 0, lambda at, version: node(at)),
        "/api/v1/pods": (pods, changes, lambda at, version: pod_of(nodes, at, version)),
    }
    nothing: tuple[int, int, Callable[[int, int], bytes]] = (0, 0, lambda at, version: b"")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].split()[1].decode()
                address = urlsplit(request)
                asked = {name: values[0] for name, values in parse_qs(address.query).items()}
                kind = kinds.get(address.path, nothing)
                await (_watch if "watch" in asked else _list)(writer, asked, *kind)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _list(
    writer: asyncio.StreamWriter, asked: dict[str, str], count: int, _: int, make: Callable[[int, int], bytes]
) -> None:
    start = int(asked.get("continue", "0"))
    end = min(count, start + int(asked.get("limit", count or 1)))
    head = json.dumps({"resourceVersion": str(count + 1), "continue": str(end) if end < count else ""}).encode()
    items = b",".join(make(at, at + 1) for at in range(start, end))
    body = b'{"kind":"List","apiVersion":"v1","metadata":%s,"items":[%s]}' % (head, items)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def _watch(
    writer: asyncio.StreamWriter, _: dict[str, str], count: int, changes: int, make: Callable[[int, int], bytes]
) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    version = count + 1
    for at in range(changes):
        version += 1
        await _event(writer, b"MODIFIED", make(at % count, version))
    while True:
        await _event(writer, b"BOOKMARK", b'{"kind":"Pod","metadata":{"resourceVersion":"%d"}}' % version)
        await asyncio.sleep(BOOKMARK_SECONDS)


async def _event(writer: asyncio.StreamWriter, kind: bytes, thing: bytes) -> None:
    line = b'{"type":"%s","object":%s}\n' % (kind, thing)
    writer.write(b"%x\r\n%s\r\n" % (len(line), line))
    await writer.drain()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:4])))
