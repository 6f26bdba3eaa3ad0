"""Measure the network between the tasks of a gang: each pair of them by itself, and all at once in a ring.

Pairs take turns by the rounds of a tournament, so that no task is part of two measurements at a time. Who calls must
answer a challenge with the job's secret, and nothing outlasts the deadline.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

MOST_PAIRED = 64
"""Tasks of which every pair is measured; of a larger gang only the ring is."""
_PINGS = 30
_PIECE = 2**18
_MOST_BYTES = 2**26
_SPAN = 0.05
"""Seconds for which one way is filled with data."""
_RING_SPAN = 0.2
_RING = 0xFFFF
"""The purpose of a ring's connection; other purposes are the numbers of rounds."""
_HERE = 0xFFFE
"""The purpose of a connection that only shows that the callee is there."""
_HELLO = struct.Struct(">HH")
_HEAD = struct.Struct(">I")
_NONCE, _PROOF = 16, 32


class Member(NamedTuple):
    """A task of the gang, and where it listens."""

    name: str
    host: str
    port: int


class Way(NamedTuple):
    """What was measured towards another task."""

    rate: float
    """Bytes in a second."""
    latency: float | None
    """Half of the median round trip in seconds; known on the side that called."""


class Found(NamedTuple):
    """What one task measured: its ways by the name of the other task, and why others are missing."""

    ways: dict[str, Way]
    missed: dict[str, str]
    ring: float | None
    """Bytes in a second towards the next task while all send; None where no ring was measured."""
    next: str = ""
    """The next task of the ring."""


def rounds_of(count: int) -> list[list[tuple[int, int]]]:
    """The pairs of a tournament (the circle method): in each round nobody plays twice, and all rounds have all pairs."""
    circle: list[int | None] = [*range(count), *([None] if count % 2 else [])]
    found = []
    for _ in range(len(circle) - 1):
        pairs = zip(circle[: len(circle) // 2], reversed(circle[len(circle) // 2 :]), strict=True)
        found.append([(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return found


def measure(members: Sequence[Member], place: int, key: bytes, seconds: float) -> Found:
    """Measure the ways from the member at `place` to all others, within so many seconds.

    All members call this at about the same time with the same list. Raises OSError where this member cannot listen.
    """
    with _Door(members[place], len(members), key) as door:
        return _Measurement(members, place, key, door, time.monotonic() + seconds, seconds / 4).run()


class _Measurement:
    """One member's part in the measurement."""

    def __init__(
        self, members: Sequence[Member], place: int, key: bytes, door: _Door, deadline: float, patience: float
    ) -> None:
        """A single other member is waited for at most `patience` seconds."""
        self._members, self._place, self._key, self._door = members, place, key, door
        self._deadline, self._patience = deadline, patience
        self._ways: dict[str, Way] = {}
        self._missed: dict[str, str] = {}

    def run(self) -> Found:
        """Look who is there, measure the pairs, and then the ring."""
        count, following = len(self._members), (self._place + 1) % len(self._members)
        paired = count <= MOST_PAIRED
        for other in (*range(self._place), *range(self._place + 1, count)) if paired else (following,):
            self._attempt(other, partial(self._greet, other))
        if paired:
            self._pairs()
        ring = None if self._missed else self._attempt(following, partial(self._ring, following))
        return Found(self._ways, self._missed, ring, self._members[following].name)

    def _pairs(self) -> None:
        for turn, pairs in enumerate(rounds_of(len(self._members))):
            for one, other in pairs:
                if self._place == one and self._members[other].name not in self._missed:
                    self._attempt(other, partial(self._lead, other, turn))
                elif self._place == other and self._members[one].name not in self._missed:
                    self._attempt(one, partial(self._follow, one, turn))

    def _attempt(self, other: int, act: Callable[[], float | None]) -> float | None:
        """Do something with another member; what fails is noted, and the rest goes on."""
        name = self._members[other].name
        try:
            return act()
        except OSError as error:
            why = "it did not answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
            self._missed.setdefault(name, why)
            return None

    def _greet(self, other: int) -> None:
        self._call(other, _HERE).close()

    def _until(self) -> float:
        return min(self._deadline, time.monotonic() + self._patience)

    def _call(self, other: int, purpose: int) -> socket.socket:
        """A connection to another member, which may still be starting."""
        member, until = self._members[other], self._until()
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                made = socket.create_connection((member.host, member.port), timeout=left)
            except ConnectionRefusedError:
                time.sleep(min(0.05, left))
                continue
            try:
                _prepare(made, until)
                nonce, hello = _exactly(made, _NONCE), _HELLO.pack(self._place, purpose)
                made.sendall(hello + _proof(self._key, nonce, hello))
                if _exactly(made, 1) != b"k":
                    raise OSError("it did not know this job")
            except BaseException:
                made.close()
                raise
            return made

    def _lead(self, other: int, turn: int) -> None:
        with self._call(other, turn) as there:
            _exactly(there, 1)  # its turn has come too
            trips = []
            for _ in range(_PINGS):
                begun = time.perf_counter()
                there.sendall(b"p")
                _exactly(there, 1)
                trips.append(time.perf_counter() - begun)
            rate = _send(there, _SPAN)
            _receive(there)
            self._ways[self._members[other].name] = Way(rate, statistics.median(trips) / 2)

    def _follow(self, other: int, turn: int) -> None:
        with self._door.taken(other, turn, self._until()) as there:
            _prepare(there, self._until())
            there.sendall(b"g")
            for _ in range(_PINGS):
                there.sendall(_exactly(there, 1))
            _receive(there)
            self._ways[self._members[other].name] = Way(_send(there, _SPAN), None)

    def _ring(self, following: int) -> float:
        """The rate to the next member while all send; two tokens that go round first have all begin together."""
        before = (self._place - 1) % len(self._members)
        with self._call(following, _RING) as out, self._door.taken(before, _RING, self._until()) as back:
            _prepare(out, self._until())
            _prepare(back, self._until())
            if self._place == 0:
                out.sendall(b"r")
                _exactly(back, 1)
                out.sendall(b"g")
            else:
                for _ in range(2):
                    out.sendall(_exactly(back, 1))
            failed: list[OSError] = []
            receiver = threading.Thread(target=_drain, args=(back, self._place == 0, failed), daemon=True)
            receiver.start()
            rate = _send(out, _RING_SPAN)
            receiver.join(max(0.0, self._until() - time.monotonic()))
            if receiver.is_alive():
                raise TimeoutError
            if failed:
                raise failed[0]
            return rate


def _drain(back: socket.socket, token: bool, failed: list[OSError]) -> None:
    try:
        if token:
            _exactly(back, 1)
        _receive(back)
    except OSError as error:
        failed.append(error)


class _Door:
    """Accepts the calls of other members in a thread, and keeps them until their turn."""

    def __init__(self, own: Member, count: int, key: bytes) -> None:
        self._count, self._key = count, key
        self._waiting: dict[tuple[int, int], socket.socket] = {}
        self._changed = threading.Condition()
        self._closed = False
        try:
            self._listener = socket.create_server((own.host, own.port), backlog=min(count + 8, 1024))
        except OSError:  # the name by which others reach it may not be an address of this machine
            self._listener = socket.create_server(("", own.port), backlog=min(count + 8, 1024))

    def __enter__(self) -> _Door:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            for each in self._waiting.values():
                each.close()
            self._waiting.clear()
        with suppress(OSError):  # it wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def taken(self, caller: int, purpose: int, until: float) -> socket.socket:
        """The call of a member for a purpose. Raises TimeoutError when none comes."""
        with self._changed:
            there = self._changed.wait_for(
                lambda: (caller, purpose) in self._waiting, max(0.0, until - time.monotonic())
            )
            if not there:
                raise TimeoutError
            return self._waiting.pop((caller, purpose))

    def _serve(self) -> None:
        while True:
            try:
                made, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(made,), daemon=True).start()

    def _greet(self, made: socket.socket) -> None:
        """Keep a call if its caller has the job's secret; close it otherwise."""
        try:
            made.settimeout(30)
            nonce = os.urandom(_NONCE)
            made.sendall(nonce)
            said = _exactly(made, _HELLO.size + _PROOF)
            hello, proof = said[: _HELLO.size], said[_HELLO.size :]
            caller, purpose = _HELLO.unpack(hello)
            if caller >= self._count or not hmac.compare_digest(proof, _proof(self._key, nonce, hello)):
                raise OSError("a stranger called")
            with self._changed:
                if purpose != _HERE and not self._closed:
                    if replaced := self._waiting.pop((caller, purpose), None):
                        replaced.close()
                    self._waiting[caller, purpose] = made
                    made.sendall(b"k")
                    self._changed.notify_all()
                    return
            made.sendall(b"k")
        except OSError:
            pass  # a caller that goes away, or knows no secret, is no member
        made.close()


def _prepare(there: socket.socket, until: float) -> None:
    there.settimeout(max(0.001, until - time.monotonic()))
    there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _proof(key: bytes, nonce: bytes, hello: bytes) -> bytes:
    return hmac.new(key, b"network-check" + nonce + hello, hashlib.sha256).digest()


def _send(there: socket.socket, span: float) -> float:
    """Fill the way for a time, at least with one piece; bytes in a second, until the other side has all of them."""
    piece, sent = _HEAD.pack(_PIECE) + bytes(_PIECE), 0
    begun = time.perf_counter()
    while not sent or (time.perf_counter() - begun < span and sent < _MOST_BYTES):
        there.sendall(piece)
        sent += _PIECE
    there.sendall(_HEAD.pack(0))
    _exactly(there, 1)
    return sent / max(time.perf_counter() - begun, 1e-9)


def _receive(there: socket.socket) -> None:
    """Read what `_send` sends, and say that all of it is there."""
    buffer = bytearray(_PIECE)
    while size := _HEAD.unpack(_exactly(there, _HEAD.size))[0]:
        if size > _PIECE:
            raise OSError("it sent a piece that is too large")
        view = memoryview(buffer)[:size]
        while view:
            count = there.recv_into(view)
            if not count:
                raise OSError("it closed the connection")
            view = view[count:]
    there.sendall(b"d")


def _exactly(there: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = there.recv(size - len(found))
        if not piece:
            raise OSError("it closed the connection")
        found += piece
    return found
