"""The version of a cluster's API server."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.engines.kubernetes.api.resources import Call, Resource
from corral.engines.kubernetes.api.transport import Transport
from corral.kernel.errors import Unavailable

_LONGEST: Final = 100
"""Letters that are kept of a version: an API server may call itself what it likes."""


class PathCall(Call, frozen=True):
    """A GET of a path that belongs to no object."""

    at: str = ""

    @property
    def path(self) -> str:
        """The path at the API server."""
        return self.at


def path_call(path: str) -> PathCall:
    """A GET of a path."""
    return PathCall("get", Resource(path, namespaced=False), at=path)


async def server_version(transport: Transport) -> str:
    """Return the version of the API server, such as v1.34.1; "" where it tells none. Raises a CorralError."""
    told = await transport.ask(path_call("/version"))
    try:
        answer = msgspec.json.decode(told, type=dict[str, Any])
    except msgspec.DecodeError:  # a proxy may answer in its place
        raise Unavailable("kubernetes-answer", "The API server tells its version in no JSON.") from None
    return str(answer.get("gitVersion", ""))[:_LONGEST]
