"""Ask many agents again and again, each in a loop of its own, so that a slow or dead one delays no other."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import structlog

from corral.kernel.errors import CorralError
from corral.model.metrics.agent_page import AgentPage, read_page
from corral.monitor.scraping.addresses import Address
from corral.monitor.scraping.agent_client import SECONDS, Target, ask

log = structlog.get_logger()

EVERY_SECONDS: Final = 15.0
MOST_AGENTS: Final = 1000
_WELL_AT_ONCE: Final = 12
"""Agents that answered last and are asked at the same time; each may have an answer of 8 MiB in memory."""
_FAILING_AT_ONCE: Final = 8
"""Agents that failed last and are asked at the same time."""
_LONGEST_PAUSE: Final = 8
"""Rounds that an agent which fails again and again is left alone at most."""
_RESOLVE_SECONDS: Final = 5.0
_RESOLVE_EVERY: Final = 60.0
"""Seconds after which a host is looked up again."""
_LOOKUPS: Final = 2

Take = Callable[[Target, AgentPage, float], None]
"""Takes an answer with the seconds by which the agent's clock is surely ahead, below 0 behind. It is called in a thread,
and raises CorralError for an answer that is not wanted."""


class Scraper:
    """Follows the agents at some addresses."""

    def __init__(
        self,
        addresses: Callable[[], Iterable[Address]],
        take: Take,
        token: Callable[[Address], str] = lambda _: "",
        *,
        seconds: float = EVERY_SECONDS,
        patience: float = SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`addresses` tells those of now; `patience` are the seconds that an agent has for an answer.

        `token` is called in a thread, and raises CorralError if there is none to be had.
        """
        self._addresses, self._take, self._token = addresses, take, token
        self._seconds, self._patience, self._now = seconds, patience, now
        self._followed: dict[Target, asyncio.Task[None]] = {}
        self._resolved: dict[Address, tuple[Target, ...]] = {}
        self._resolve_at: dict[Address, float] = {}
        """When a host is looked up again, by a clock that is never set."""
        self._lookups = ThreadPoolExecutor(_LOOKUPS, "agents")
        """Threads of its own: a name server that hangs must not hold those that control works with."""
        self._failures: dict[Target, int] = {}
        self._troubles: dict[Target | Address | None, str] = {}
        self._well = asyncio.Semaphore(_WELL_AT_ONCE)
        self._failing = asyncio.Semaphore(_FAILING_AT_ONCE)

    @property
    def silent(self) -> int:
        """Agents whose last answer was none."""
        return len(self._failures)

    @property
    def answering(self) -> int:
        """Agents that have answered, or were not asked yet."""
        return len(self._followed) - self.silent

    def troubles(self) -> dict[str, str]:
        """By agent that is asked, why it does not answer, "" where it does; hosts that are not known are in it."""
        followed = {
            str(each): self._troubles.get(each, "") if each in self._failures else "" for each in self._followed
        }
        unknown = {str(each): trouble for each, trouble in self._troubles.items() if isinstance(each, Address)}
        return followed | unknown

    async def run(self) -> None:
        """Follow all agents until cancelled."""
        try:
            while True:
                try:
                    await self._look()
                except Exception:  # what is wrong with agents must never end control
                    log.exception("the addresses of agents cannot be found; that is tried again")
                await asyncio.sleep(self._seconds)
        finally:
            for each in self._followed.values():
                each.cancel()
            await asyncio.gather(*self._followed.values(), return_exceptions=True)
            self._lookups.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> None:
        """Begin to follow agents that are new, and end it for those that are gone."""
        targets = await self._targets(list(self._addresses()))
        for target in self._followed.keys() - set(targets):
            self._followed.pop(target).cancel()
            self._failures.pop(target, None)
            self._troubles.pop(target, None)
        for target in targets:
            if target not in self._followed:
                self._followed[target] = asyncio.create_task(self._follow(target))

    async def _targets(self, addresses: Sequence[Address]) -> list[Target]:
        for each in self._resolved.keys() - set(addresses):
            del self._resolved[each]
            self._resolve_at.pop(each, None)
            self._troubles.pop(each, None)
        await asyncio.gather(*(self._resolve(each) for each in addresses[:MOST_AGENTS]))
        found = {each.ip + str(each.address): each for one in addresses for each in self._resolved.get(one, ())}
        if len(found) > MOST_AGENTS or len(addresses) > MOST_AGENTS:
            self._tell(None, f"There are more than {MOST_AGENTS} agents; the others are not asked.")
        return list(found.values())[:MOST_AGENTS]

    async def _resolve(self, address: Address) -> None:
        """Find the network addresses of a host; while that fails, those of before stay."""
        if time.monotonic() < self._resolve_at.get(address, 0.0):
            return
        look_up = partial(socket.getaddrinfo, address.host, address.port, type=socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                found = await asyncio.get_running_loop().run_in_executor(self._lookups, look_up)
        except (OSError, UnicodeError, TimeoutError) as error:
            self._tell(address, f"Its host is not known: {getattr(error, 'strerror', None) or 'no answer'}.")
            return
        self._troubles.pop(address, None)
        self._resolve_at[address] = time.monotonic() + _RESOLVE_EVERY
        families = {family for family, *_ in found}
        wanted = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
        ips = dict.fromkeys(str(where[0]) for family, _, _, _, where in found if family == wanted)
        self._resolved[address] = tuple(Target(address, ip) for ip in ips)

    async def _follow(self, target: Target) -> None:
        while True:
            begun = time.monotonic()
            async with self._failing if target in self._failures else self._well:
                trouble = await self._asked(target)
            if trouble:
                self._failures[target] = self._failures.get(target, 0) + 1
                self._tell(target, trouble)
            elif self._failures.pop(target, 0):
                self._troubles.pop(target, None)
                log.info("an agent answers again", agent=str(target))
            rounds = min(_LONGEST_PAUSE, 2 ** (min(self._failures.get(target, 1), 10) - 1))
            await asyncio.sleep(max(0.0, begun + self._seconds * rounds - time.monotonic()))

    async def _asked(self, target: Target) -> str:
        """Why an agent gave no answer that is wanted; "" if it did."""
        try:
            token = await asyncio.to_thread(self._token, target.address)
            before = self._now()
            body = await ask(target, token, self._patience)
            after = self._now()
            await asyncio.to_thread(self._taken, target, body, before, after)
        except CorralError as error:
            return error.message
        except Exception as error:  # one agent's answer must not end the loop of any
            log.exception("an agent cannot be followed", agent=str(target))
            return type(error).__name__
        return ""

    def _taken(self, target: Target, body: bytes, before: float, after: float) -> None:
        page = read_page(body)
        self._take(target, page, ahead_by(page.clock, before, after))

    def _tell(self, of: Target | Address | None, trouble: str) -> None:
        """Log a trouble once until it is over, or another one."""
        if self._troubles.get(of) != trouble:
            self._troubles[of] = trouble
            log.warning("an agent is not read", agent="" if of is None else str(of), reason=trouble)


def ahead_by(clock: float, before: float, after: float) -> float:
    """The least seconds by which a clock that was read between two times is ahead of theirs, below 0 if it is behind.

    It is 0 if the clock can be in step with them.
    """
    if clock > after:
        return clock - after
    return min(0.0, clock - before)
