"""Let hosts wait for the control plane that they join, and get a token from it that no log has."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.reader import Host
from corral.deploy.remote.ssh import NotReached
from corral.deploy.steps.kubeadm import join_text
from corral.deploy.steps.step import Joining

_COMMAND: Final = re.compile(
    r"^kubeadm join \S+ --token ([a-z0-9]{6}\.[a-z0-9]{16}) --discovery-token-ca-cert-hash sha256:([0-9a-f]{64})\s*$",
    re.MULTILINE,
)
"""What kubeadm prints of a new token and of the key of the cluster's authority."""

_KEY: Final = re.compile(r"^corral-certificate-key ([0-9a-f]{64})$", re.MULTILINE)
"""The key of the certificates that a control plane fetches."""

Ask = Callable[[str, str], Awaitable[tuple[int, str]]]
"""Calls a function on the host of this name; returns the exit code and what it printed."""


class Starts:
    """Whether what hosts join (control plane, Hadoop's master, registry) has started, as far as this `up` starts it."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        """Of the control planes that join: etcd takes one new member at a time, and each uploads certificates anew."""
        self._of: dict[str, asyncio.Future[bool]] = {}

    def expect(self, name: str) -> None:
        """Let those who join this host wait for it."""
        self._of[name] = asyncio.get_running_loop().create_future()

    def tell(self, name: str, *, good: bool) -> None:
        """Say that a host has started what others join, or will not; only the first word counts."""
        if name in self._of and not self._of[name].done():
            self._of[name].set_result(good)

    async def wait(self, joining: Joining) -> bool:
        """Whether what is joined is up, as soon as that is known."""
        return await self._of[joining.first] if joining.first in self._of else joining.there


async def joining_text(host: Host, joining: Joining, ask: Ask) -> bytes:
    """The document by which kubeadm joins a host. Raises NotReached where the control plane gives no token."""
    code, output = await ask(joining.first, "make_plane_token" if joining.plane else "make_token")
    found, key = _COMMAND.search(output), _KEY.search(output)
    if code or not found or (joining.plane and not key):
        raise NotReached(
            Refusal(f"{joining.first} made no token for it", f"Read the log of {joining.first}, then run up again.")
        )
    text = join_text(
        host, joining.address, joining.endpoint, found[1], found[2], closed=joining.closed, key=key[1] if key else ""
    )
    return text.encode()
