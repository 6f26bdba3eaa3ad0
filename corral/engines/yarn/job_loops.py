"""Give the pending attempts of each job to slots, and ask YARN for the containers that the job needs.

One loop a job makes all calls about its services, so that no two of them meet.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from corral.engines.yarn.attempt_events import AttemptEvents
from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.records import BURIED, AttemptRecords, Holder
from corral.engines.yarn.service_spec import SlotShape, component_name, service_name
from corral.engines.yarn.services import Known, Services
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.shared import IDLE_SECONDS, MOST_RETURNED, is_shared, shapes_of_all_nodes
from corral.engines.yarn.slot_grants import SlotGrants
from corral.engines.yarn.slots import Attempt, Phase, Service, Slot, SlotTable
from corral.kernel.errors import Conflict, CorralError, Unavailable
from corral.kernel.ids import JobId

_log = logging.getLogger(__name__)
START_TIMEOUT: Final = -120
"""Code of the exit table: YARN gave no container in time (transient)."""
_SETTLE_SECONDS: Final = 0.3
"""Seconds for which the first task of a gang waits for the others before YARN is asked: each service has a master."""
_LOOK_SECONDS: Final = 2.0
"""Seconds after which a job is looked at again though nothing has happened."""
_AGAIN_SECONDS: Final = 60.0
_ENDED_SECONDS: Final = 10.0
"""Seconds between two looks whether a service from which a container is awaited has ended."""
_NAME_SECONDS: Final = 15.0
"""Seconds after which a name that YARN refuses, and neither lists nor describes, is that of a deleted service. Before, an
earlier server may have asked for the service, and YARN is making it: a second one would leave the first without an owner.
"""
_PROLONG_PARTS: Final = 4
"""A service is prolonged when this part of its lifetime has passed."""


class JobLoops:
    """The loops of all jobs that have services or pending attempts."""

    def __init__(
        self,
        settings: YarnSettings,
        table: SlotTable,
        services: Services,
        records: AttemptRecords,
        events: AttemptEvents,
        grants: SlotGrants,
        lose: Callable[[Slot], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        nodes: Callable[[], Mapping[str, NodeFacts]] = dict,
    ) -> None:
        """`lose` ends the attempt of a slot whose container is gone; `spawn` runs a loop beside the others.

        `nodes` returns the nodes as last seen, by name.
        """
        self._nodes = nodes
        self._settings, self._table, self._services = settings, table, services
        self._records, self._events, self._lose, self._spawn = records, events, lose, spawn
        self._grants = grants
        self._bells: dict[JobId, asyncio.Event] = {}
        self._numbers: dict[JobId, int] = {}
        """The number of the last service of a job: YARN frees a deleted name only after a while."""
        self._refused: dict[str, float] = {}
        """By name that YARN refuses and does not list, since when."""
        self._unsure: dict[JobId, Service] = {}
        """By job a service that YARN may have been asked for, and that is not known yet."""
        self._causes: dict[JobId, dict[str, str]] = {}
        """By job, and the service that it waits for, why it gives no containers, as far as is known."""
        self._over: set[JobId] = set()
        """Jobs that need their services no more."""

    def ring(self, job: JobId) -> None:
        """Have a job looked at now."""
        if job not in self._bells:
            self._bells[job] = asyncio.Event()
            self._spawn(self._tend(job, self._bells[job]))
        self._bells[job].set()

    def adopt(self, service: Service, now: float) -> None:
        """Take over a service of an earlier server."""
        service.busy_at = now
        self._table.services[service.name] = service
        number = int(service.name.rpartition("-")[2])
        self._numbers[service.job] = max(number, self._numbers.get(service.job, 0))
        self.ring(service.job)

    def begin(self, job: JobId) -> None:
        """Note that a job has tasks to start."""
        self._over.discard(job)

    def over(self, job: JobId) -> None:
        """Note that a job is over: its containers are given back at once."""
        if self._table.services_of(job):
            self._over.add(job)
            self.ring(job)

    def keep_only(self, live: frozenset[JobId]) -> None:
        """Note all jobs that are not over."""
        for job in {each.job for each in self._table.services.values() if not is_shared(each.job)} - live:
            self.over(job)

    async def _tend(self, job: JobId, bell: asyncio.Event) -> None:
        while True:
            bell.clear()
            try:
                trouble = await self._assign(job)
                await self._drop_ended(job)
                await self._ask_for_containers(job)
                cause = next(iter(self._causes.get(job, {}).values()), "")
                self._note(job, trouble or (Unavailable("container-fails", cause) if cause else None))
            except CorralError as error:
                _log.warning("job %s gets no containers: %s", job, error.message)
                self._note(job, error)
            try:
                await self._give_back(job)
            except CorralError as error:
                _log.warning("job %s cannot give containers back: %s", job, error.message)
            self._give_up_waiting(job)
            if self._is_done(job):
                self._bells.pop(job, None)
                self._causes.pop(job, None)
                self._over.discard(job)
                return
            try:
                async with asyncio.timeout(_SETTLE_SECONDS if self._awaits_more(job) else _LOOK_SECONDS):
                    await bell.wait()
            except TimeoutError:
                continue

    def _is_done(self, job: JobId) -> bool:
        if self._table.pending(job) or job in self._unsure:
            return False
        return all(each.job != job for each in self._table.services.values())

    def _note(self, job: JobId, trouble: CorralError | None) -> None:
        """Keep a refusal for the attempts that wait; one that will not pass ends the wait of their starts."""
        for attempt in self._table.pending(job):
            attempt.trouble = trouble

    def _awaits_more(self, job: JobId) -> bool:
        """Whether more tasks of the job's gang are about to start, so that one service can have containers for all."""
        pending = [each for each in self._table.pending(job) if each.launch is not None]
        if not pending or _now() - pending[0].since > _SETTLE_SECONDS:
            return False
        expected = max(sum(part.tasks for part in each.launch.gang) for each in pending if each.launch is not None)
        return self._table.unended(job) < expected

    async def _assign(self, job: JobId) -> Unavailable | None:
        """Give pending attempts to free slots; what one of them lacks there, if any does."""
        trouble: Unavailable | None = None
        for attempt in self._table.pending(job):
            slot = self._table.free_slot(attempt.shape, job) if attempt.shape is not None else None
            if slot is None:
                continue
            try:
                self._grants.give(attempt, slot)
            except Unavailable as error:
                trouble = error
                continue
            slot.attempts.add(attempt.name)
            holder = Holder(slot.container, attempt.shared)
            try:
                await self._record(attempt, holder)
            except CorralError:
                slot.attempts.discard(attempt.name)
                self._grants.take_back(attempt.name)
                raise
            if attempt.phase is not Phase.PENDING or attempt.name not in self._table.attempts:  # stopped meanwhile
                slot.attempts.discard(attempt.name)
                self._grants.take_back(attempt.name)
                await self._records.remove(attempt.name, holder)
                continue
            if slot.key not in self._table.slots:  # its container ended meanwhile
                self._grants.take_back(attempt.name)
                await self._records.remove(attempt.name, holder)
                continue
            attempt.phase, attempt.container = Phase.ASSIGNED, slot.container
            attempt.assigned.set()
            slot.wake.set()
            self._causes.pop(job, None)
        return trouble

    async def _record(self, attempt: Attempt, holder: Holder) -> None:
        """Record who gets an attempt. Another holder's record goes before, if HDFS may have taken it without an answer.

        With two records the next server could give up an attempt that runs. Raises a CorralError.
        """
        if attempt.recorded not in ("", holder.container):
            await self._records.remove(attempt.name, Holder(attempt.recorded, attempt.shared))
        attempt.recorded = holder.container
        await self._records.write(attempt.name, holder)

    async def _drop_ended(self, job: JobId) -> None:
        """End services that will give no container: their master failed too often, or somebody killed them.

        Of those that live, keep why they give none, such as a file that no NodeManager can fetch.
        """
        now, awaited = _now(), {each.shape for each in self._table.pending(job)}
        for service in self._table.services_of(job):
            if now - service.looked_at < _ENDED_SECONDS or awaited.isdisjoint(service.components.values()):
                continue
            is_new, service.looked_at = service.looked_at < 0, now
            if is_new:
                continue
            look = await self._services.look(service)
            self._keep_cause(service, look.trouble)
            if look.is_over:
                _log.warning("service %s of job %s has ended; another one is made", service.name, job)
                await self._delete(service)

    def _keep_cause(self, service: Service, cause: str) -> None:
        """Keep why a service gives no containers, for the attempts that wait; "" where nothing is wrong any more.

        What was wrong with services that are gone is forgotten.
        """
        before = self._causes.get(service.job, {})
        if cause and cause != before.get(service.name):
            _log.warning("service %s gives no containers: %s", service.name, cause)
        others = {name: each for name, each in before.items() if name in self._table.services and name != service.name}
        self._causes[service.job] = others | ({service.name: cause} if cause else {})

    async def _ask_for_containers(self, job: JobId) -> None:
        pending: dict[SlotShape, list[Attempt]] = {}
        for attempt in self._table.pending(job):
            if attempt.shape is not None:
                pending.setdefault(attempt.shape, []).append(attempt)
        for service in self._table.services_of(job):
            if _is_used_up(service):
                continue
            counts: dict[SlotShape | None, int] = {shape: len(each) for shape, each in pending.items()}
            for name, need in self._table.needed(service, counts).items():
                pending.pop(service.components[name], None)
                if need > service.wanted[name]:
                    await self._ask_for_more(service, name, need)
        if pending and not self._awaits_more(job):
            first = next(iter(pending.values()))[0]
            await self._new_service(job, first, {shape: len(each) for shape, each in pending.items()})

    async def _ask_for_more(self, service: Service, component: str, count: int) -> None:
        """Ask for `count` containers of a component in all.

        What is still awaited is given back before: YARN takes a master's second request for a component as its only one,
        and would give what is more now, without the rest.
        """
        slots = [each for each in self._table.slots_of(service) if each.component == component and not each.releasing]
        if (awaited := service.wanted[component] - len(slots)) > 0:
            await self._services.give_back_awaited(service, component, awaited, {each.container for each in slots})
        await self._services.set_count(service, component, count)

    async def _new_service(self, job: JobId, attempt: Attempt, counts: dict[SlotShape, int]) -> None:
        """Ask YARN for a service. After a call without an answer the same name is asked for again, or taken over."""
        assert attempt.launch is not None
        number = self._numbers.get(job, 0) + 1
        if is_shared(job):
            counts = shapes_of_all_nodes(counts, self._nodes())
        shapes = {component_name(shape, n): shape for n, shape in enumerate(counts)}
        service = Service(
            service_name(self._settings, job, number),
            job,
            self._settings.hadoop_user(attempt.launch.user),
            self._settings.yarn_queue(attempt.launch.queue),
            shapes,
            {name: counts[shape] for name, shape in shapes.items()},
            busy_at=_now(),
            prolonged_at=_now(),
        )
        try:
            await self._services.make(service)
        except Unavailable:
            self._unsure[job] = service
            raise
        except Conflict:
            self._unsure[job] = service
            there = await self._services.find(service.name)
            if there is None:
                raise await self._name_taken(job, service) from None
            service = there
        self._settle(job, service)
        service.busy_at = _now()
        self._table.services[service.name] = service

    def _settle(self, job: JobId, service: Service) -> None:
        """Note that it is known what became of a service that YARN was asked for; the next one has another name."""
        self._numbers[job] = self._numbers.get(job, 0) + 1
        self._refused.pop(service.name, None)
        self._unsure.pop(job, None)

    async def _name_taken(self, job: JobId, service: Service) -> Unavailable:
        """Why a service is waited for whose name YARN refuses and does not list; a dead one's name is given up.

        One that YARN describes is being made. A second one would leave it without an owner, so it is waited for while
        an attempt may wait for a container, and deleted then.
        """
        waited = _now() - self._refused.setdefault(service.name, _now())
        known = await self._services.known(service)
        if known is Known.NOTHING:
            is_dead = waited > _NAME_SECONDS
            message = f"YARN still keeps the name {service.name}."
        else:
            is_dead = known is Known.ENDED or (known is Known.ASKED_FOR and waited > self._settings.start_seconds)
            message = f"YARN has the service {service.name} and does not list it yet; it is not asked for a second one."
        if is_dead:
            if known is not Known.NOTHING:
                await self._services.delete(service)
            self._settle(job, service)
            message = f"YARN keeps the name {service.name} of a service that has ended; another one is asked for."
        return Unavailable("service-name-taken", message)

    async def _drop_unsure(self, job: JobId) -> None:
        """End a service that YARN may still be making when no attempt waits for it: its containers had no owner."""
        service = self._unsure.get(job)
        if service is None or self._table.pending(job):
            return
        waited = _now() - self._refused.setdefault(service.name, _now())
        known = await self._services.known(service)
        if known is not Known.NOTHING:
            await self._services.delete(service)
        elif waited <= _NAME_SECONDS:
            return
        self._settle(job, service)

    async def _give_back(self, job: JobId) -> None:
        """Prolong the services that are needed, and give back the containers and services that are not."""
        now = _now()
        for service in [each for each in self._table.services.values() if each.job == job]:
            if self._is_busy(service):
                service.busy_at = now
            patience = 0.0 if job in self._over else self._settings.idle_seconds
            if service.ending or now - service.busy_at > patience:
                if service.ending and self._table.pending(job):
                    self._keep_cause(service, await self._services.end_of(service))
                await self._delete(service)
                continue
            if now - service.prolonged_at > self._settings.lifetime_seconds / _PROLONG_PARTS:
                await self._prolong(service, now)
            await self._give_back_idle(service, now)
            await self._give_back_awaited(service, now)
        await self._drop_unsure(job)

    def _is_busy(self, service: Service) -> bool:
        """Whether a service is needed. One that gets no more containers is not, for those that wait for others."""
        if _is_used_up(service):
            return any(self._table.has_task(each) for each in self._table.slots_of(service))
        return self._table.is_busy(service)

    async def _prolong(self, service: Service, now: float) -> None:
        """Let a service's lifetime begin anew. It has most of it left, so a refusal is tried again a minute later."""
        try:
            await self._services.prolong(service)
            service.prolonged_at = now
        except CorralError as error:
            service.prolonged_at = now - self._settings.lifetime_seconds / _PROLONG_PARTS + _AGAIN_SECONDS
            _log.warning("service %s cannot be prolonged: %s", service.name, error.message)

    async def _delete(self, service: Service) -> None:
        """End a service. It gets no attempts from now on, however long YARN is away."""
        service.ending = True
        await self._services.delete(service)
        del self._table.services[service.name]
        for slot in self._table.slots_of(service):
            self._lose(slot)

    async def _give_back_idle(self, service: Service, now: float) -> None:
        """Give single containers back that have had no attempt for a while, unless one waits for such a container."""
        waiting = {each.shape for each in self._table.pending(service.job)}
        for slot in self._table.slots_of(service):
            idle = not self._table.has_task(slot) and now - slot.idle_since >= self._patience(service)
            if idle and not slot.releasing and service.components[slot.component] not in waiting:
                await self._services.give_back(service, slot.component, slot.instance)
                slot.releasing = True
                slot.wake.set()

    async def _give_back_awaited(self, service: Service, now: float) -> None:
        """Ask no more for containers that YARN did not give in time, or that no attempt has awaited for a while.

        A container that ended is started again by YARN. It counts as awaited until then, for the retry of its attempt.
        """
        pending = Counter(each.shape for each in self._table.pending(service.job))
        for name, need in self._table.needed(service, pending).items():
            surplus = service.wanted[name] - need
            if surplus <= 0:
                service.surplus_since.pop(name, None)
            elif now - service.surplus_since.setdefault(name, now) >= self._patience(service):
                slots = [each for each in self._table.slots_of(service) if each.component == name]
                kept = {each.container for each in slots if not each.releasing}
                await self._services.give_back_awaited(service, name, surplus, kept)
                service.surplus_since[name] = now

    def _patience(self, service: Service) -> float:
        """Seconds for which a container without a task is kept."""
        idle = self._settings.idle_seconds
        return min(idle, IDLE_SECONDS) if is_shared(service.job) else idle

    def _give_up_waiting(self, job: JobId) -> None:
        """End attempts for which YARN gave no container in time, and have their containers given back."""
        for attempt in self._table.pending(job):
            if _now() - attempt.since > self._settings.start_seconds:
                for service in self._table.services_of(job):
                    if attempt.shape is not None and (name := service.component_of(attempt.shape)):
                        service.surplus_since[name] = float("-inf")
                seconds = f"{self._settings.start_seconds:.0f} s"
                cause = f": {attempt.trouble.message}" if attempt.trouble else ", see the queue's and the nodes' use"
                attempt.container = BURIED
                self._events.end(attempt, START_TIMEOUT, f"YARN gave no container within {seconds}{cause}")


def _is_used_up(service: Service) -> bool:
    """Whether a shared service has given back so many containers that another one takes its place."""
    return is_shared(service.job) and service.returned >= MOST_RETURNED


def _now() -> float:
    return asyncio.get_running_loop().time()
