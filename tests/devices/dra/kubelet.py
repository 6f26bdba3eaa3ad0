"""A fake kubelet for DRA drivers: it finds the socket, asks for the driver's identity, and calls it over real gRPC."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc.aio

from corral.devices.dra import messages as wire

GET_INFO_SECONDS = 1.0
"""Seconds that the kubelet waits for an answer to GetInfo."""


async def call(socket: Path | str, service: str, method: str, request: Any, answer: Any, seconds: float = 10) -> Any:
    """One call over a new connection to a socket."""
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        function = channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return await function(request, timeout=seconds)


class Kubelet:
    """Registers the one driver under `root`, and calls it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.endpoint = ""

    async def register(self, error: str = "") -> Any:
        """Register as the plugin manager does for a new socket; returns the driver's PluginInfo."""
        (socket,) = (self.root / "plugins_registry").glob("*.sock")
        messages = wire.registration
        info = await call(
            socket, wire.REGISTRATION, "GetInfo", messages["InfoRequest"](), messages["PluginInfo"], GET_INFO_SECONDS
        )
        self.endpoint = info.endpoint
        status = messages["RegistrationStatus"](plugin_registered=not error, error=error)
        await call(
            socket, wire.REGISTRATION, "NotifyRegistrationStatus", status, messages["RegistrationStatusResponse"], 5
        )
        return info

    async def prepare(self, *uids: str, names: Iterable[str] = ()) -> Any:
        """The parts of the answer by UID; a claim has its UID as its name unless `names` says otherwise."""
        return (await self._claims("NodePrepareResources", uids, tuple(names))).claims

    async def unprepare(self, *uids: str) -> Any:
        """The parts of the answer by UID."""
        return (await self._claims("NodeUnprepareResources", uids, ())).claims

    async def healthy(self, service: str) -> bool:
        """The answer of a health check."""
        request = wire.health["HealthCheckRequest"](service=service)
        found = await call(self.endpoint, wire.HEALTH, "Check", request, wire.health["HealthCheckResponse"])
        return bool(found.status == wire.SERVING)

    async def _claims(self, method: str, uids: tuple[str, ...], names: tuple[str, ...]) -> Any:
        request = wire.dra[f"{method}Request"]()
        for uid, name in zip(uids, names or uids, strict=True):
            request.claims.add(namespace="x", uid=uid, name=name)
        return await call(self.endpoint, wire.DRIVER, method, request, wire.dra[f"{method}Response"])
