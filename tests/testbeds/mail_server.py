"""A small SMTP server that keeps what it is sent."""

from __future__ import annotations

import asyncio


class MailServer:
    """The part of SMTP that a client needs; `answer` is the reply to recipients."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.answer = "250 ok"

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := (await reader.readline()).decode().strip():
            word = line.split(" ")[0].upper().partition(":")[0]
            if word == "DATA":
                writer.write(b"354 go on\r\n")
                self.messages.append((await reader.readuntil(b"\r\n.\r\n")).decode())
            said = {"RCPT": self.answer, "QUIT": "221 bye"}.get(word, "250 ok")
            writer.write(f"{said}\r\n".encode())
            if word == "QUIT":
                break
        writer.close()

    @property
    def subjects(self) -> list[str]:
        lines = [line for message in self.messages for line in message.splitlines()]
        return [line.removeprefix("Subject: ") for line in lines if line.startswith("Subject: ")]
