"""A port of the server for each job whose services are opened, where jobs have no hosts of their own.

Browsers keep pages of different ports apart, but not their cookies: services get and set none there (`headers.py`), and
Corral's own have names that only its answers can set (`COOKIE_PREFIX`).

A page that stays open after its job has the origin of the next job at its port. So a port rests after a job for as long
as a session lasts, and a browser that has opened one job at a port opens no other job there (`gate.py`).
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from corral.kernel.errors import Conflict, CorralError, InvalidInput
from corral.kernel.ids import JobId
from corral.service.jobs.job_services import SESSION_SECONDS

COOKIE_PREFIX: Final = "__Host-Http-"
"""Browsers take cookies of this prefix from an answer of the host itself alone, and not from scripts.

Those that do not know it know `__Host-`: there a script can set the cookie only where there is none.
"""
MOST: Final = 1000
"""Most ports of the range."""
_EVERY_SECONDS: Final = 5.0
_REST_SECONDS: Final = SESSION_SECONDS
_LOWEST: Final = 1024
_RANGE: Final = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
_log = logging.getLogger("corral.api")

Listen = Callable[[int], Callable[[], None]]
"""Begins to listen at a port; the result ends it. Raises Conflict if the port is taken."""
Alive = Callable[[Iterable[JobId]], Awaitable[frozenset[JobId]]]
"""Which of some jobs are not over."""


def checked_ports(text: str, *, tls: bool, domain: str) -> range:
    """Return the ports of the setting `job_ports`.

    Raises InvalidInput unless it is a range beside which the server has TLS and jobs have no domain. Browsers say over
    HTTPS alone which page asks for something.
    """
    if not text:
        return range(0)
    found = _RANGE.fullmatch(text)
    first, last = (int(each) for each in found.groups()) if found else (0, 0)
    if not _LOWEST <= first <= last <= 65_535 or last - first >= MOST:
        message = f"job_ports has {text[:60]!r}; write at most {MOST} ports from {_LOWEST} to 65535: 20000-20099."
        raise InvalidInput("invalid-setting", message)
    if not tls:
        message = "job_ports needs a certificate (tls_certificate, tls_key): it keeps jobs apart over HTTPS alone."
        raise InvalidInput("invalid-setting", message)
    if domain:
        raise InvalidInput("invalid-setting", "Set services_domain or job_ports, not both: a job has one origin.")
    return range(first, last + 1)


class JobPorts:
    """Which job each port of the range serves; a port is listened at while it has a job."""

    def __init__(self, ports: range, now: Callable[[], float] = time.monotonic) -> None:
        self._ports = ports
        self._now = now
        self._rests: dict[int, float] = {}
        """When a port that was given back is free again."""
        self._jobs: dict[int, JobId] = {}
        self._ends: dict[int, Callable[[], None]] = {}
        self._listen: Listen | None = None
        self._next = secrets.randbelow(len(ports) or 1)  # not at the ports of the server's life before

    def __bool__(self) -> bool:
        """Whether jobs have ports."""
        return bool(self._ports)

    def attach(self, listen: Listen, own: Iterable[int]) -> None:
        """Use `listen` from now on; the server's own ports are `own`.

        Raises InvalidInput if one of them is in the range: the portal would be a job's.
        """
        for each in own:
            if each in self._ports:
                raise InvalidInput("invalid-setting", f"job_ports must not contain the server's own port {each}.")
        self._listen = listen

    def label(self, port: int) -> JobId | None:
        """Return the job of a port, "" for a port of the range that has none, None for any other port."""
        return self._jobs.get(port, JobId("")) if port in self._ports else None

    def take(self, job: JobId) -> int:
        """Return the port of a job, which it keeps until it is over.

        Raises Conflict `no-job-port` if every port is in use.
        """
        for port, owner in self._jobs.items():
            if owner == job:
                return port
        assert self._listen is not None, "the server listens before it answers"
        for step in range(len(self._ports)):
            port = self._ports[(self._next + step) % len(self._ports)]
            if port in self._jobs or self._now() < self._rests.get(port, 0.0):
                continue
            try:
                end = self._listen(port)
            except Conflict:
                continue  # another program has it
            self._jobs[port], self._ends[port] = job, end
            self._next = port - self._ports.start + 1
            return port
        message = (
            f"Each of the {len(self._ports)} ports of job_ports serves another job, or did within {_REST_SECONDS / 3600:g} "
            "hours; use `corral forward`, or ask an administrator for a wider range."
        )
        raise Conflict("no-job-port", message)

    async def give_back(self, alive: Alive) -> None:
        """Stop listening at the ports of jobs that are over."""
        if not self._jobs:
            return
        live = await alive(frozenset(self._jobs.values()))
        for port in [port for port, job in self._jobs.items() if job not in live]:
            del self._jobs[port]
            self._rests[port] = self._now() + _REST_SECONDS
            self._ends.pop(port)()

    async def keep(self, alive: Alive) -> None:
        """Give ports back while the server runs."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self.give_back(alive)
            except CorralError as error:
                _log.warning("Ports of jobs are given back later: %s", error.message)

    def close(self) -> None:
        """Stop listening."""
        self._jobs.clear()
        while self._ends:
            self._ends.popitem()[1]()
