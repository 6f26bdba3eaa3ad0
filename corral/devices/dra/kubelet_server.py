"""Serve the two sockets by which the kubelet registers and calls the driver.

The kubelet finds drivers by sockets in a folder that it watches. It wants `GetInfo` answered within a second, so
publishing runs in the background. The driver's socket listens before the registration socket appears, so the driver
answers as soon as the kubelet knows it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
import structlog

from corral.devices.dra import messages as wire
from corral.devices.dra.driver import Asked, Driver
from corral.kernel.errors import CorralError, InvalidInput

log = structlog.get_logger()
MOST_PATH: Final = 107
"""Bytes of a Unix socket's path."""
LIVE, READY = "", "ready"
"""The services of a health check: whether the driver answers, and whether it can take claims."""
_MESSAGE_BYTES: Final = 2**20
_GRACE_SECONDS: Final = 5.0


class Sockets:
    """The two sockets of one driver under a kubelet's root."""

    def __init__(self, root: Path, driver: str) -> None:
        self.folder = root / "plugins" / driver
        self.calls = self.folder / "dra.sock"
        self.registration = root / "plugins_registry" / f"{driver}-reg.sock"
        for path in (self.calls, self.registration):
            if len(os.fsencode(path)) > MOST_PATH:
                raise InvalidInput("path-too-long", f"{path} is too long for a socket ({MOST_PATH} bytes at most).")


class Server:
    """The gRPC server that the kubelet calls. Call `start`, later `stop`."""

    def __init__(self, sockets: Sockets, name: str, driver: Driver, announce: Callable[[], None]) -> None:
        """`announce` is called whenever the kubelet asks for or registers the driver. It must return at once."""
        self._sockets, self._name, self._driver, self._announce = sockets, name, driver, announce
        self._servers: list[grpc.aio.Server] = []
        self.registered = False
        """Whether the kubelet last reported the driver as registered."""
        self.ready: Callable[[], bool] = lambda: self.registered
        """Answers a readiness check."""

    async def start(self) -> None:
        """Listen on both sockets, the driver's own first. Raises OSError if that fails."""
        calls = {
            "NodePrepareResources": _method("NodePrepareResources", wire.dra, self._prepare),
            "NodeUnprepareResources": _method("NodeUnprepareResources", wire.dra, self._unprepare),
        }
        health = {"Check": _unary(self._check, wire.health["HealthCheckRequest"])}
        registration = {
            "GetInfo": _unary(self._info, wire.registration["InfoRequest"]),
            "NotifyRegistrationStatus": _unary(self._status, wire.registration["RegistrationStatus"]),
        }
        await self._listen(self._sockets.calls, {wire.DRIVER: calls, wire.HEALTH: health})
        await self._listen(self._sockets.registration, {wire.REGISTRATION: registration})

    async def stop(self) -> None:
        """Unregister, then let running calls end."""
        for server in reversed(self._servers):
            await server.stop(_GRACE_SECONDS)
        self._servers.clear()
        await self._driver.finish()
        for path in (self._sockets.registration, self._sockets.calls):
            path.unlink(missing_ok=True)

    async def _listen(self, path: Path, services: Mapping[str, Mapping[str, grpc.RpcMethodHandler]]) -> None:
        _make_room(path)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", _MESSAGE_BYTES)])
        handlers = [grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items()]
        server.add_generic_rpc_handlers(tuple(handlers))
        before = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{path}")
        finally:
            os.umask(before)
        await server.start()
        self._servers.append(server)

    async def _info(self, _: Any, context: Any) -> Any:
        log.info("the kubelet asks who this is")
        self._announce()
        return wire.registration["PluginInfo"](
            type=wire.PLUGIN_TYPE,
            name=self._name,
            endpoint=str(self._sockets.calls),
            supported_versions=[wire.SERVICE],
        )

    async def _status(self, status: Any, context: Any) -> Any:
        self.registered = bool(status.plugin_registered)
        if self.registered:
            log.info("the kubelet registered the driver")
            self._announce()
        else:
            log.error("the kubelet refused the driver", reason=str(status.error)[:1000])
        return wire.registration["RegistrationStatusResponse"]()

    async def _check(self, request: Any, context: Any) -> Any:
        if request.service not in (LIVE, READY):
            await context.abort(grpc.StatusCode.NOT_FOUND, "There are the services '' and 'ready'.")
        good = request.service == LIVE or self.ready()
        return wire.health["HealthCheckResponse"](status=wire.SERVING if good else wire.NOT_SERVING)

    async def _prepare(self, asked: Asked, answer: Any) -> None:
        for device in await self._driver.prepare(asked):
            answer.devices.add(
                request_names=[device.request] if device.request else [],
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=[device.cdi_id] if device.cdi_id else [],
            )

    async def _unprepare(self, asked: Asked, answer: Any) -> None:
        await self._driver.unprepare(asked)


def _make_room(path: Path) -> None:
    """Create the socket's folder and remove a killed driver's socket (the ledger's lock excludes a running one)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    path.unlink(missing_ok=True)


def _method(name: str, messages: wire.Messages, each: Callable[[Asked, Any], Awaitable[None]]) -> grpc.RpcMethodHandler:
    """Handle a call about several claims. An error of one claim goes into its own part of the answer."""

    async def handle(request: Any, context: Any) -> Any:
        answer = messages[f"{name}Response"]()
        for claim in request.claims:
            asked = Asked(claim.namespace, claim.uid, claim.name)
            part = answer.claims[asked.uid]
            part.SetInParent()
            try:
                await each(asked, part)
            except CorralError as error:
                log.warning("refused", call=name, claim=str(asked), reason=error.message)
                part.error = error.message
            except Exception as error:
                log.exception("failed", call=name, claim=str(asked))
                part.error = f"The driver failed ({_reason(error)}); its log says where."
        return answer

    return _unary(handle, messages[f"{name}Request"])


def _unary(handle: Any, request: Any) -> grpc.RpcMethodHandler:
    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}"
    return type(error).__name__
