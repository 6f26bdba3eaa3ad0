"""Read the queues of YARN and the applications in them that are not this server's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.inventory import Resources
from corral.engines.yarn.service_spec import service_prefix
from corral.engines.yarn.settings import YarnSettings
from corral.kernel.errors import Unavailable
from corral.model.cluster_use import ClusterUse, OtherApplication, SharedQueue
from corral.model.records import rfc3339
from corral.model.views import Amounts

_KEPT_SECONDS: Final = 5.0
"""Seconds for which an answer is shown to everybody: many open pages cost the ResourceManager no more than one."""
_MOST_SHOWN: Final = 200
"""Applications that are listed."""
_MOST_QUEUES: Final = 2000
_DEEPEST: Final = 20
"""Levels of queues that are read."""
_LIVE: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_MIB: Final = 2**20


class _Partition(msgspec.Struct, frozen=True, rename="camel"):
    """What an application uses of the nodes of one label."""

    used: Resources = Resources()


class _ByPartition(msgspec.Struct, frozen=True, rename="camel"):
    resource_usages_by_partition: tuple[_Partition, ...] = ()


class _App(msgspec.Struct, frozen=True, rename="camel"):
    """An application in the ResourceManager's list."""

    id: str
    name: str = ""
    user: str = ""
    queue: str = ""
    state: str = ""
    application_type: str = ""
    started_time: int = 0
    """Milliseconds since 1970."""
    allocated_mb: int = msgspec.field(default=0, name="allocatedMB")
    allocated_v_cores: int = 0
    running_containers: int = 0
    resource_info: _ByPartition | None = None


class _Children(msgspec.Struct, frozen=True):
    queue: tuple[_Queue, ...] = ()


class _Queue(msgspec.Struct, frozen=True, rename="camel"):
    """A queue of the capacity scheduler, or of the fair one."""

    queue_name: str = ""
    queue_path: str = ""
    state: str = ""
    absolute_capacity: float = 0.0
    absolute_used_capacity: float = 0.0
    num_active_applications: int = 0
    num_pending_applications: int = 0
    num_active_apps: int = 0
    num_pending_apps: int = 0
    resources_used: Resources | None = None
    used_resources: Resources | None = None
    queues: _Children | None = None
    child_queues: _Children | None = None


class _Scheduler(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    queues: _Children | None = None
    root_queue: _Queue | None = None


class ClusterUseReader:
    """Asks the ResourceManager, at most once in five seconds."""

    def __init__(self, settings: YarnSettings, yarn: HadoopRest) -> None:
        self._settings, self._yarn = settings, yarn
        self._kept: ClusterUse | None = None
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def read(self) -> ClusterUse:
        """How the cluster is used beside Corral. Raises Unavailable when the ResourceManager cannot say."""
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._kept is None or now > self._until:
                queues = await self._yarn.ask("GET", "/ws/v1/cluster/scheduler")
                apps = await self._yarn.ask(
                    "GET",
                    "/ws/v1/cluster/apps",
                    states=_LIVE,
                    deSelects="resourceRequests,timeouts,amNodeLabelExpression",
                )
                self._kept = use_of(queues, apps, self._settings)
                self._until = now + _KEPT_SECONDS
            return self._kept


def use_of(queues: Any, apps: Any, settings: YarnSettings) -> ClusterUse:
    """The use of a cluster by its scheduler's queues and its live applications.

    Raises Unavailable for answers of another shape.
    """
    try:
        scheduler = msgspec.convert((queues or {})["scheduler"]["schedulerInfo"], _Scheduler)
        live = msgspec.convert(((apps or {})["apps"] or {}).get("app", []), list[_App])
    except (msgspec.ValidationError, KeyError, TypeError, AttributeError) as error:
        message = f"The ResourceManager's list of queues or applications has an unknown form: {error}."
        raise Unavailable("hadoop-answer", message) from None
    prefix = service_prefix(settings)
    ours = [each for each in live if each.name.startswith(prefix)]
    others = sorted((each for each in live if not each.name.startswith(prefix)), key=lambda app: -app.allocated_mb)
    used_by_us = {each.queue.removeprefix("root.") for each in ours} | {settings.queue.removeprefix("root.")}
    used_by_us |= {counterpart.removeprefix("root.") for _, counterpart in settings.queues.pairs}
    return ClusterUse(
        settings.name,
        tuple(_queues(scheduler, settings, lambda path: path.removeprefix("root.") in used_by_us)),
        tuple(_application(each, settings) for each in others[:_MOST_SHOWN]),
        max(0, len(others) - _MOST_SHOWN),
        _sum(_used(each, settings) for each in others),
        _sum(_used(each, settings) for each in ours),
    )


def _queues(scheduler: _Scheduler, settings: YarnSettings, is_ours: Callable[[str], bool]) -> Iterator[SharedQueue]:
    """Every queue below the root, parents first."""
    top = scheduler.queues or (scheduler.root_queue.child_queues if scheduler.root_queue else None)
    waiting = [("root", each, 1) for each in reversed(top.queue if top else ())]
    count = 0
    while waiting and count < _MOST_QUEUES:
        above, queue, depth = waiting.pop()
        name = queue.queue_name
        path = queue.queue_path or (name if name.startswith("root.") else f"{above}.{name}")
        used = queue.resources_used or queue.used_resources or Resources()
        count += 1
        yield SharedQueue(
            path[:400],
            queue.state.lower()[:40],
            round(queue.absolute_capacity, 1),
            round(queue.absolute_used_capacity, 1),
            _amounts(used.amounts(), settings),
            queue.num_active_applications + queue.num_active_apps,
            queue.num_pending_applications + queue.num_pending_apps,
            is_ours(path),
        )
        below = queue.queues or queue.child_queues
        if below and depth < _DEEPEST:
            waiting += [(path, each, depth + 1) for each in reversed(below.queue)]


def _application(app: _App, settings: YarnSettings) -> OtherApplication:
    begun = rfc3339(min(app.started_time, 10**14) / 1000) if app.started_time > 0 else ""
    return OtherApplication(
        app.id[:100],
        app.name[:200],
        app.user[:100],
        app.queue[:400],
        app.application_type[:60],
        app.state.lower()[:40],
        begun,
        max(0, app.running_containers),
        _used(app, settings),
    )


def _used(app: _App, settings: YarnSettings) -> Amounts:
    """What an application uses: of each resource where YARN tells it, else memory and processors."""
    if app.resource_info is not None and app.resource_info.resource_usages_by_partition:
        parts = app.resource_info.resource_usages_by_partition
        return _sum(_amounts(each.used.amounts(), settings) for each in parts)
    return Amounts(1000 * max(0, app.allocated_v_cores), _MIB * max(0, app.allocated_mb))


def _amounts(told: dict[str, int], settings: YarnSettings) -> Amounts:
    cpu, memory, devices = (max(0, told.get(name, 0)) for name in ("vcores", "memory-mb", settings.device_resource))
    return Amounts(1000 * cpu, _MIB * memory, devices)


def _sum(each: Iterable[Amounts]) -> Amounts:
    found = list(each)
    return Amounts(
        sum(one.cpu_millis for one in found), sum(one.memory_bytes for one in found), sum(one.devices for one in found)
    )
