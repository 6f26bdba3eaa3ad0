"""Forward connections from the apiserver's service address to it; there is no kube-proxy here.

Usage: relay.py LISTEN_ADDRESS LISTEN_PORT PORT (of the apiserver on the loopback interface)
"""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
        target.write_eof()


async def relay(address: str, port: int, to: int) -> None:
    """Serve until ended: every connection to `address:port` becomes one to the loopback port `to`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))
        far_writer.close()
        writer.close()

    async with await asyncio.start_server(serve, address, port, reuse_port=True) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
