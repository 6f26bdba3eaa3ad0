"""Prepare and unprepare resource claims, so that each device of a node is in one prepared claim.

The kubelet may repeat, overlap or drop its calls. Prepare reads the allocation, reserves the devices (refused if
another claim has one), writes the ledger, then the CDI document. Unprepare goes in reverse order. So the ledger covers
every document that a container may use. After a crash, `recover` makes the documents match the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from msgspec import structs

from corral.devices.dra.cdi import CdiFolder, base_request
from corral.devices.dra.device_groups import Known
from corral.devices.dra.prepared_claims import Entry, Given, Ledger, checked_uid
from corral.kernel.errors import Conflict, InvalidInput, NotFound

log = structlog.get_logger()
T = TypeVar("T")
MOST_RESULTS: Final = 32
"""Devices per claim, the limit of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A claim as the kubelet names it."""

    namespace: str
    uid: str
    name: str

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name} ({self.uid})"


@dataclass(frozen=True, slots=True)
class Allocated:
    """A claim's allocation in the cluster. `given` holds only this driver's devices, None before allocation."""

    uid: str
    given: tuple[Given, ...] | None


Look = Callable[[str, str], Awaitable[Allocated]]
"""Looks up the claim by namespace and name. Raises NotFound when it does not exist, and other CorralErrors."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One device of a prepared claim."""

    request: str
    pool: str
    device: str
    cdi_id: str
    """The CDI id for the container runtime; "" when an earlier device of the request carries it."""


class Driver:
    """The DRA driver of this node. Calls for one claim are serialized."""

    def __init__(self, driver: str, pool: str, ledger: Ledger, cdi: CdiFolder, look: Look, *, boot: str) -> None:
        self._driver, self._pool, self._boot = driver, pool, boot
        self._ledger, self._cdi, self._look = ledger, cdi, look
        self._turns: dict[str, _Turn] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self.known: Mapping[str, Known] = {}
        """The node's devices by name; replaced when the description changes."""

    def recover(self) -> None:
        """Make the CDI documents match the ledger."""
        for name in self._cdi.sweep(entry.uid for entry in self._ledger):
            log.warning("stray CDI document removed", file=name)
        for entry in self._ledger:
            if not self._cdi.has(entry.uid):
                self._cdi.write(entry.uid, entry.cdi)
                log.warning("missing CDI document written again", claim=str(entry))

    async def prepare(self, asked: Asked) -> tuple[Prepared, ...]:
        """Make the claim's devices ready for containers. Repeated calls with the same UID return the same answer.

        Raises a CorralError if nothing was allocated on this node, or a device is unknown, broken or in another claim.
        """
        return await self._alone(asked.uid, lambda: self._prepare(asked))

    async def unprepare(self, asked: Asked) -> None:
        """Free the claim's devices. A claim that is not prepared is no error."""
        await self._alone(asked.uid, lambda: self._unprepare(asked))

    async def finish(self) -> None:
        """Wait until every running call has ended."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _alone(self, uid: str, call: Callable[[], Awaitable[T]]) -> T:
        """Run `call` under the UID's lock. It runs to its end even if the kubelet stops waiting for it."""

        async def locked() -> T:
            turn = self._turns.setdefault(uid, _Turn())
            turn.users += 1
            try:
                async with turn.lock:
                    return await call()
            finally:
                turn.users -= 1
                if not turn.users:
                    del self._turns[uid]

        task = asyncio.create_task(locked())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _prepare(self, asked: Asked) -> tuple[Prepared, ...]:
        entry = self._ledger.get(checked_uid(asked.uid))
        if entry is None or entry.boot != self._boot:
            entry = await self._enter(asked, entry)
        elif not self._cdi.has(entry.uid):
            await asyncio.to_thread(self._cdi.write, entry.uid, entry.cdi)
        return tuple(self._prepared(entry))

    def _prepared(self, entry: Entry) -> Iterator[Prepared]:
        """Yield the claim's devices.

        Only a request's first one has its CDI id: its edits must apply once per container.
        """
        said: set[str] = set()
        for each in entry.given:
            request = base_request(each.request)
            yield Prepared(request, each.pool, each.device, "" if request in said else self._cdi.id(entry.uid, request))
            said.add(request)

    async def _enter(self, asked: Asked, before: Entry | None) -> Entry:
        """Prepare the claim from its allocation. `before` is its entry of an earlier boot."""
        begun = asyncio.get_running_loop().time()
        given = await self._allocated(asked)
        await self._forget_ended(given, asked.uid)
        self._check(asked, given)
        document = self._cdi.document(asked.uid, given, self.known)
        entry = Entry(asked.uid, asked.namespace, asked.name, self._boot, given, document)
        self._ledger.reserve(entry)
        try:
            await asyncio.to_thread(self._ledger.keep, entry)
            await asyncio.to_thread(self._cdi.write, entry.uid, entry.cdi)
        except BaseException:
            self._ledger.reserve(structs.replace(entry, boot=""))  # no container has them; the entry may be on disk
            await self._erase(entry.uid)
            raise
        log.info(
            "claim prepared",
            claim=str(asked),
            devices=[each.device for each in given],
            again=before is not None,
            seconds=round(asyncio.get_running_loop().time() - begun, 4),
        )
        return entry

    async def _erase(self, uid: str) -> None:
        await asyncio.to_thread(self._cdi.remove, uid)
        await asyncio.to_thread(self._ledger.erase, uid)
        self._ledger.free(uid)

    async def _allocated(self, asked: Asked) -> tuple[Given, ...]:
        """Return this node's devices that the cluster allocated to the claim."""
        found = await self._look(asked.namespace, asked.name)
        if found.uid != asked.uid:
            raise Conflict("claim-replaced", f"The {asked} is gone; another of its name ({found.uid}) took its place.")
        if found.given is None:
            raise Conflict("claim-not-allocated", f"Nothing was allocated to the {asked} yet.")
        here = tuple(each for each in found.given if each.pool == self._pool)
        if not here:
            elsewhere = sorted({each.pool for each in found.given})
            where = f"; it has devices of {', '.join(elsewhere)}" if elsewhere else ""
            raise Conflict("claim-elsewhere", f"Nothing of node {self._pool} was allocated to the {asked}{where}.")
        if len(here) > MOST_RESULTS:
            raise InvalidInput("claim-too-large", f"The {asked} has {len(here)} devices, and may have {MOST_RESULTS}.")
        return here

    def _check(self, asked: Asked, given: tuple[Given, ...]) -> None:
        mine: set[str] = set()
        for each in given:
            device = self.known.get(each.device)
            if device is None:
                raise NotFound(
                    "unknown-device", f"Node {self._pool} has no device {each.device}, given to the {asked}."
                )
            if device.broken and not each.shared:
                raise Conflict(
                    "device-broken", f"Device {each.device}, given to the {asked}, is broken: {device.broken}."
                )
            if each.device in mine and not each.shared:
                raise Conflict("device-taken", f"Device {each.device} is given to the {asked} twice.")
            mine.add(each.device)

    async def _forget_ended(self, given: tuple[Given, ...], uid: str) -> None:
        """Forget claims of an earlier boot that hold one of the devices and no longer exist.

        The kubelet will never unprepare them.
        """
        for _, entry in self._ledger.holders(given, uid):
            if entry.boot == self._boot:
                continue
            try:
                there = (await self._look(entry.namespace, entry.name)).uid == entry.uid
            except NotFound:
                there = False
            if not there:
                await self._erase(entry.uid)
                log.warning("claim of an earlier boot forgotten", claim=str(entry))

    async def _unprepare(self, asked: Asked) -> None:
        had = self._ledger.get(checked_uid(asked.uid)) is not None
        await self._erase(asked.uid)
        if had:
            log.info("claim unprepared", claim=str(asked))


class _Turn:
    """The lock of one UID and the number of calls that use it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
