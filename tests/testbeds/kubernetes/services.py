"""A small substitute for CoreDNS and kube-proxy: service names and virtual addresses for pods.

It answers names on the node's bridge, and forwards connections to a service's address to one of its ready pods, as the
API server lists them. Headless services are not supported.

Usage: python -m tests.testbeds.kubernetes.services GATEWAY BRIDGE APISERVER CA TOKEN_FILE
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import socket
import ssl
import struct
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.testbeds.kubernetes.daemons import Daemon
from tests.testbeds.kubernetes.relay import pass_on

if TYPE_CHECKING:
    from tests.testbeds.kubernetes.controlplane import ControlPlane
    from tests.testbeds.kubernetes.kubelet import KubeletNode

_NAME: Final = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?\.?")
_LOOK_SECONDS: Final = 0.3
_A, _IN, _NO_SUCH_NAME, _RESPONSE = 1, 1, 3, 0x8180
Service = tuple[str, str]
"""Namespace and name."""


class Services:
    """The services of one cluster, served on one bridge."""

    def __init__(self, bridge: str, apiserver: str, ca: str, token: str) -> None:
        self._bridge, self._apiserver, self._token = bridge, apiserver, token
        self._context = ssl.create_default_context(cafile=ca)
        self.addresses: dict[Service, str] = {}
        self._backends: dict[tuple[Service, str], list[tuple[str, int]]] = {}
        self._listeners: dict[tuple[str, int], asyncio.Server] = {}

    async def run(self) -> None:
        """Follow the API server's services and endpoints until ended."""
        while True:
            with contextlib.suppress(OSError, ValueError):  # the apiserver is restarting
                services = await asyncio.to_thread(self._ask, "/api/v1/services")
                slices = await asyncio.to_thread(self._ask, "/apis/discovery.k8s.io/v1/endpointslices")
                self._backends = _backends(slices)
                await self._serve(services)
            await asyncio.sleep(_LOOK_SECONDS)

    def _ask(self, path: str) -> list[dict[str, Any]]:
        asked = urllib.request.Request(self._apiserver + path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(asked, context=self._context, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["items"]
            return found

    async def _serve(self, services: list[dict[str, Any]]) -> None:
        wanted = {}
        for service in services:
            key = service["metadata"]["namespace"], service["metadata"]["name"]
            address = service["spec"].get("clusterIP", "None")
            if address == "None" or key == ("default", "kubernetes"):
                continue
            wanted[key] = address
            if address not in self.addresses.values():
                _ip("add", address, self._bridge)
            for port in service["spec"].get("ports", ()):
                if (where := (address, port["port"])) not in self._listeners:
                    self._listeners[where] = await self._listen(*where, key, port.get("name", ""))
        for address in set(self.addresses.values()) - set(wanted.values()):
            for where in [where for where in self._listeners if where[0] == address]:
                self._listeners.pop(where).close()
            _ip("delete", address, self._bridge)
        self.addresses = wanted

    async def _listen(self, address: str, port: int, service: Service, name: str) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there = self._backends.get((service, name))
                far_reader, far_writer = await asyncio.open_connection(*random.choice(there or [("127.0.0.1", 1)]))
            except OSError:
                writer.close()
                return
            await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))
            far_writer.close()
            writer.close()

        return await asyncio.start_server(serve, address, port)


def _backends(slices: list[dict[str, Any]]) -> dict[tuple[Service, str], list[tuple[str, int]]]:
    """The ready pods behind each port of each service."""
    found: dict[tuple[Service, str], list[tuple[str, int]]] = {}
    for each in slices:
        service = each["metadata"]["namespace"], each["metadata"]["labels"].get("kubernetes.io/service-name", "")
        ready = [end["addresses"][0] for end in each["endpoints"] or () if end.get("conditions", {}).get("ready")]
        for port in each["ports"] or ():
            found.setdefault((service, port.get("name") or ""), []).extend((one, port["port"]) for one in ready)
    return found


class Names(asyncio.DatagramProtocol):
    """Answers one question a datagram (RFC 1035): the address of a service, or that there is none."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        labels, at = [], 12
        while at < len(data) and data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode(errors="replace").lower())
            at += 1 + data[at]
        question = data[12 : at + 5]
        (kind,) = struct.unpack_from(">H", data, at + 1)
        found = _NAME.fullmatch(".".join(labels))
        there = self._services.addresses.get((found[2], found[1])) if found else None
        answer = b""
        if there and kind == _A:
            answer = struct.pack(">HHHIH", 0xC00C, _A, _IN, 5, 4) + socket.inet_aton(there)
        flags = _RESPONSE | (0 if there else _NO_SUCH_NAME)
        header = data[:2] + struct.pack(">HHHHH", flags, 1, 1 if answer else 0, 0, 0)
        self._transport.sendto(header + question + answer, address)


def _ip(what: str, address: str, bridge: str) -> None:
    subprocess.run(["ip", "address", what, f"{address}/32", "dev", bridge], check=False, capture_output=True)


def played(plane: ControlPlane, node: KubeletNode) -> Daemon:
    """Start the program that serves a cluster's services to the pods of one node."""
    token = node.home / "services.token"
    token.touch(mode=0o600)
    token.write_text(plane.token)
    module = "tests.testbeds.kubernetes.services"
    words = [sys.executable, "-m", module, node.gateway, node.bridge.name, plane.url, plane.ca, token]
    daemon = Daemon("services", words, node.home, {"PYTHONPATH": str(Path(__file__).resolve().parents[3])})
    daemon.start(lambda: _answers(node.gateway))
    return daemon


def _answers(gateway: str) -> bool:
    """Whether a name server listens there, by the kernel's tables, because tests connect to loopback addresses only."""
    octets = "".join(f"{int(octet):02X}" for octet in reversed(gateway.split(".")))
    return f" {octets}:0035 " in Path("/proc/net/udp").read_text()


async def main(gateway: str, bridge: str, apiserver: str, ca: str, token: str) -> None:
    """Serve until ended."""
    services = Services(bridge, apiserver, ca, Path(token).read_text())
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: Names(services), local_addr=(gateway, 53))
    await services.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
