"""One SSH connection into a task: its keys, its bounds, and the channels that it may open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

import asyncssh
from asyncssh.connection import SSHServerConnection

from corral.api.authentication import service_of
from corral.api.ssh.byte_pipe import BytePipe
from corral.api.ssh.channels import CommandChannel, PortChannel
from corral.api.stream_limits import Kind, streams_of
from corral.kernel.errors import Conflict, CorralError

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from corral.service.actor import Actor
    from corral.service.jobs.ssh_access import Entered

_SIGN_IN_SECONDS: Final = 60
_CHECK_SECONDS: Final = 5.0
"""Most seconds that a connection outlives its task, or the right to enter it."""
_IDLE_SECONDS: Final = 8 * 3600.0
"""Seconds without a channel after which a connection ends."""
_KEEPALIVE_SECONDS: Final = 30
_KEEPALIVES: Final = 10
_MOST_CHANNELS: Final = 64
_SESSION_WINDOW: Final = 512 * 1024
_PORT_WINDOW: Final = 128 * 1024
_LARGEST_PACKET: Final = 32 * 1024
_CIPHERS: Final = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-ctr")
_LAST_WORD_SECONDS: Final = 5.0
_TASKS_OWN: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]", "ip6-localhost"})


asyncssh.set_log_level("WARNING")  # below it, the library logs the commands of users


class _Door(asyncssh.SSHServer):
    """Decides who enters, and which channels are opened."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._conn: SSHServerConnection | None = None

    def connection_made(self, conn: SSHServerConnection) -> None:
        self._conn = conn

    def begin_auth(self, username: str) -> bool:
        """Every name needs the key; the task's user is the same for all."""
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_ca_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return self._connection.accepts(key)

    def session_requested(self) -> Any:
        counted = self._connection.count("exec")
        assert self._conn is not None
        channel = self._conn.create_server_channel(None, "strict", _SESSION_WINDOW, _LARGEST_PACKET)
        return channel, CommandChannel(self._connection, counted)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        if dest_host.lower() not in _TASKS_OWN or not 0 < dest_port < 65536:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED,
                "Only ports of the task itself are reached by this connection; name localhost as the host.",
            )
        counted = self._connection.count("forward")
        assert self._conn is not None
        channel = self._conn.create_tcp_channel(None, "strict", _PORT_WINDOW, _LARGEST_PACKET)
        given = dest_port in self._connection.ports
        opens = PortChannel.to_given if given else PortChannel.to_other
        return channel, opens(self._connection, counted, dest_port)

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        self._say("Ports of your machine are not forwarded to tasks (-R); -L and -D are.")
        return False

    def unix_server_requested(self, listen_path: str) -> bool:
        self._say("Sockets of your machine are not forwarded to tasks (-R); -L and -D are.")
        return False

    def _say(self, sentence: str) -> None:
        if self._conn is not None:
            self._conn.send_debug(sentence, always_display=True)


class Connection:
    """The connection of one client to one task."""

    def __init__(self, socket: WebSocket, actor: Actor, entered: Entered) -> None:
        self.asked, self.attempt, self.ports = socket, entered.attempt, entered.ports
        self._actor, self._entered = actor, entered
        self._access = service_of(socket).ssh_access
        self._pipe = BytePipe(socket)
        self._open = 0
        self._idle_since = asyncio.get_running_loop().time()
        self._work: set[asyncio.Task[None]] = set()
        self._counted: set[contextlib.ExitStack] = set()
        self._channels: set[PortChannel] = set()

    async def serve(self) -> None:
        """Serve the client until either side ends.

        Raises CorralError, told to the client, when the task or the right to enter it has ended.
        """
        options = await asyncssh.SSHServerConnectionOptions.construct(
            server_factory=lambda: _Door(self),
            config=[],
            server_host_keys=[self._access.host_key()],
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            x11_forwarding=False,
            agent_forwarding=False,
            allow_scp=False,
            line_editor=False,
            compression_algs=None,
            encryption_algs=_CIPHERS,
            server_version="Corral",
            login_timeout=_SIGN_IN_SECONDS,
            keepalive_interval=_KEEPALIVE_SECONDS,
            keepalive_count_max=_KEEPALIVES,
        )
        conn = SSHServerConnection(asyncio.get_running_loop(), options)
        conn.connection_made(self._pipe)  # type: ignore[arg-type]
        carried = asyncio.create_task(self._pipe.carry(conn))
        watched = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({carried, watched}, return_when=asyncio.FIRST_COMPLETED)
            if watched.done():
                watched.result()
            await carried
        except CorralError as error:
            await self._dismiss(conn, carried, error.message)
            raise
        except asyncio.CancelledError:
            await self._dismiss(conn, carried, "The sign-in or the account that opened this has ended.")
            raise
        finally:
            carried.cancel()
            watched.cancel()
            await asyncio.gather(carried, watched, return_exceptions=True)
            await self._finish()

    def accepts(self, authority: asyncssh.SSHKey) -> bool:
        """Whether certificates of an authority let the caller enter this task."""
        return self._access.accepts(self._actor, self._entered, authority)

    def count(self, kind: Kind) -> contextlib.ExitStack:
        """Count one more channel, until what is returned is closed.

        Raises ChannelOpenError when there are too many, of this connection or of the user.
        """
        if self._open >= _MOST_CHANNELS:
            sentence = f"This connection has {_MOST_CHANNELS} channels open, which is the most; close one of them."
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, sentence)
        counted = contextlib.ExitStack()
        try:
            counted.enter_context(streams_of(self.asked).open(kind, self._actor.user))
        except CorralError as error:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, error.message) from None
        self._open += 1
        counted.callback(self._closed, counted)
        self._counted.add(counted)
        return counted

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a channel's work; the connection's end waits for it."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def room(self) -> None:
        """Wait until the client has taken most of what was sent."""
        await self._pipe.room()

    def opened(self, channel: PortChannel) -> None:
        """Keep a channel until the end, when it is cut; the library may drop it before it begins."""
        self._channels.add(channel)

    def over(self, channel: PortChannel) -> None:
        """Note that a channel's work is over."""
        self._channels.discard(channel)

    def _closed(self, counted: contextlib.ExitStack) -> None:
        self._counted.discard(counted)
        self._open -= 1
        self._idle_since = asyncio.get_running_loop().time()

    async def _watch(self) -> None:
        """Raise a CorralError when the task or the right to enter it has ended, or nothing was open for long."""
        loop = asyncio.get_running_loop()
        while self._open or loop.time() - self._idle_since < _IDLE_SECONDS:
            await asyncio.sleep(_CHECK_SECONDS)
            await self._access.check(self._actor, self._entered)
        raise Conflict("idle-connection", f"Nothing was open for {_IDLE_SECONDS / 3600:.0f} hours; connect again.")

    async def _dismiss(self, conn: SSHServerConnection, carried: asyncio.Task[None], sentence: str) -> None:
        """Tell the client why its connection ends, if it listens."""
        conn.disconnect(asyncssh.DISC_BY_APPLICATION, sentence)
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await asyncio.wait({carried})

    async def _finish(self) -> None:
        """Wait for the work of the channels, each of which hangs up on its command."""
        if self._work:
            await asyncio.wait(set(self._work), timeout=2 * _LAST_WORD_SECONDS)
        for task in set(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        for channel in tuple(self._channels):
            channel.cut()
        for counted in tuple(self._counted):
            counted.close()
