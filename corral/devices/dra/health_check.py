"""Health check of the driver over its own socket, for a kubelet's probe or a person."""

from __future__ import annotations

from pathlib import Path

import grpc

from corral.devices.dra import messages
from corral.devices.dra.kubelet_server import Sockets
from corral.kernel.errors import Unavailable


def check(root: Path, driver: str, service: str, *, seconds: float = 5.0) -> bool:
    """Return whether the driver under that kubelet root is live or ready. Raises Unavailable when nothing answers."""
    sockets = Sockets(root, driver)
    with grpc.insecure_channel(f"unix:{sockets.calls}") as channel:
        call = channel.unary_unary(
            f"/{messages.HEALTH}/Check",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.health["HealthCheckResponse"].FromString,
        )
        try:
            answer = call(messages.health["HealthCheckRequest"](service=service), timeout=seconds)
        except grpc.RpcError as error:
            code = error.code().name if isinstance(error, grpc.Call) else type(error).__name__
            raise Unavailable("driver-silent", f"Nothing answers at {sockets.calls} ({code}).") from None
    return bool(answer.status == messages.SERVING)
