"""An idle connection is closed after its time, but not when a request has come in while the server was busy."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from corral.api.connection_limits import ConnectionCounter, ConnectionLimits
from corral.api.http_protocol import BoundedHttp, Configuration
from corral.running import new_loop

KEPT = 1
ASKS = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
OK = b"HTTP/1.1 204 No Content\r\n"


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def asked_while_the_server_was_busy() -> tuple[bytes, bytes]:
    """The answer to a request that came past the connection's time while the loop was blocked, and what follows it."""
    from uvicorn.server import ServerState

    loop = asyncio.get_running_loop()
    limits = ConnectionCounter(ConnectionLimits(), ())
    config = Configuration(answers, limits, lifespan="off", log_config=None, timeout_keep_alive=KEPT)
    config.load()
    server = await loop.create_server(lambda: BoundedHttp(config, ServerState(), {}), "127.0.0.1", 0)
    busy, begin = socket.socketpair()
    with busy, begin, socket.create_connection(server.sockets[0].getsockname()) as client:
        client.setblocking(False)
        await loop.sock_sendall(client, ASKS)
        assert (await loop.sock_recv(client, 65536)).startswith(OK)

        def block() -> None:
            loop.remove_reader(busy.fileno())
            time.sleep(KEPT + 0.2)  # the loop is late, as on a busy machine
            client.send(ASKS)

        loop.add_reader(busy.fileno(), block)
        begin.send(b"x")
        found = await loop.sock_recv(client, 65536), await loop.sock_recv(client, 65536)
    server.close()
    return found


def test_a_request_that_came_while_the_loop_was_busy_is_answered() -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        answer, after = runner.run(asyncio.wait_for(asked_while_the_server_was_busy(), 60))
    assert answer.startswith(OK) and after == b""
