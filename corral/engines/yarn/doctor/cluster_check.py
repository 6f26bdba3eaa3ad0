"""Examine a Hadoop cluster before the first job: report each missing thing by name, with what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from corral.engines.kind import DoctorOptions, Finding
from corral.engines.yarn.doctor.hdfs_check import folders, users
from corral.engines.yarn.doctor.kerberos_check import tickets
from corral.engines.yarn.doctor.mapped_users_check import mapped_users
from corral.engines.yarn.doctor.pair_check import pair
from corral.engines.yarn.doctor.probe_service import probe
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.hadoop_version import hadoop_version
from corral.engines.yarn.inventory import YarnNode, nodes_of
from corral.engines.yarn.settings import SAME, YarnSettings
from corral.kernel.errors import CorralError, NotFound

_NAMED: Final = 5
"""Nodes that one finding names."""
_FULL: Final = 99.5
"""Per cent of its capacity from which a queue counts as full."""


async def examine(settings: YarnSettings, options: DoctorOptions) -> list[Finding]:
    """Run all checks; with `options.probe` a small service as well."""
    yarn = HadoopRest("ResourceManager", settings.resource_managers, settings.user, settings.identity)
    files = HadoopRest("NameNode", settings.file_systems, settings.user, settings.identity)
    found: list[Finding] = []
    try:
        found += [finding async for finding in tickets(settings.identity)]
        found += [finding async for finding in _yarn(yarn, files, settings)]
        found += [finding async for finding in folders(files, settings)]
        found += [finding async for finding in users(yarn, files, settings)]
        if options.probe and all(each.state != "bad" for each in found):
            found += [finding async for finding in probe(yarn, files, settings, options)]
    finally:
        await yarn.close()
        await files.close()
    return found


async def _yarn(yarn: HadoopRest, files: HadoopRest, settings: YarnSettings) -> AsyncIterator[Finding]:
    try:
        version = await hadoop_version(yarn)
    except CorralError as error:
        yield Finding("ResourceManager", "bad", error.message)
        return
    except (LookupError, TypeError):
        yield Finding("ResourceManager", "bad", "what answers at yarn_resource_managers is no ResourceManager")
        return
    yield Finding("ResourceManager", "good", f"Hadoop {version}")
    async for finding in pair("ResourceManagers", yarn, "/ws/v1/cluster/metrics"):
        yield finding
    yield await _service_api(yarn)
    yield await _constraints(yarn)
    try:
        nodes = nodes_of(await yarn.ask("GET", "/ws/v1/cluster/nodes"))
        for finding in _nodes(nodes, settings):
            yield finding
        async for finding in mapped_users(nodes, files, settings):
            yield finding
        scheduler = await yarn.ask("GET", "/ws/v1/cluster/scheduler")
        for finding in _queues(scheduler, settings):
            yield finding
    except CorralError as error:
        yield Finding("nodes", "bad", error.message)


async def _service_api(yarn: HadoopRest) -> Finding:
    try:
        await yarn.ask("GET", "/app/v1/services/corral-doctor")
    except NotFound:
        pass
    except CorralError as error:
        return Finding("service API", "bad", error.message)
    return Finding("service API", "good", "services can be asked for")


async def _constraints(yarn: HadoopRest) -> Finding:
    """Whether containers can be pinned to the nodes that Corral chose."""
    name = "yarn.resourcemanager.placement-constraints.handler"
    try:
        handler = (await yarn.ask("GET", "/conf", name=name))["property"]["value"]
    except (CorralError, LookupError, TypeError):
        return Finding("placement", "note", f"whether {name} is set could not be read; it must be scheduler")
    if handler not in ("scheduler", "placement-processor"):
        return Finding("placement", "bad", f"set {name} to scheduler, or containers cannot be pinned to nodes")
    return Finding("placement", "good", f"placement constraints are handled by the {handler}")


def _nodes(nodes: Sequence[YarnNode], settings: YarnSettings) -> Iterator[Finding]:
    running = [each for each in nodes if each.state == "RUNNING"]
    if not running:
        yield Finding("nodes", "bad", f"none of {len(nodes)} NodeManagers runs")
        return
    yield Finding("nodes", "good", f"{len(running)} of {len(nodes)} NodeManagers run")
    sick = [each for each in nodes if each.state == "UNHEALTHY"]
    if sick:
        yield Finding("unhealthy nodes", "note", f"{_named(sick)}: {sick[0].health_report[:200] or 'no report'}")
    nameless = [each for each in running if settings.attribute not in each.attributes()]
    if nameless:
        message = f"{_named(nameless)} lack the node attribute {settings.attribute}: no task can be pinned to them"
        yield Finding("node attribute", "bad", f"{message}; set yarn.nodemanager.node-attributes.provider")
    else:
        yield Finding("node attribute", "good", f"all running nodes have {settings.attribute}")
    devices = sum(each.total_resource.amounts().get(settings.device_resource, 0) for each in running)
    known = any(settings.device_resource in each.total_resource.amounts() for each in running)
    if not known:
        message = f"YARN knows no resource type {settings.device_resource}: jobs with devices cannot run"
        yield Finding("devices", "note", f"{message}; declare it in resource-types.xml, or set yarn_device_resource")
    else:
        yield Finding("devices", "good" if devices else "note", f"{devices} {settings.device_resource}")


def _named(nodes: Sequence[YarnNode]) -> str:
    names = [each.node_host_name or each.id for each in nodes]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _queues(answer: Any, settings: YarnSettings) -> Iterator[Finding]:
    info = (answer.get("scheduler") or {}).get("schedulerInfo") if isinstance(answer, dict) else None
    if not isinstance(info, dict):
        yield Finding("queues", "note", "the ResourceManager does not tell its queues")
        return
    found = list(_leaves(info.get("rootQueue") if isinstance(info.get("rootQueue"), dict) else info))
    leaves = {str(each.get("queueName", "")).rpartition(".")[2]: each for each in found}
    wanted = {settings.queue, *(queue for _, queue in settings.queues.pairs if queue != SAME)}
    for name in sorted(wanted):
        leaf = leaves.get(name.rpartition(".")[2])
        if leaf is None:
            there = ", ".join(sorted(leaves)[:_NAMED])
            yield Finding("queue", "bad", f"YARN has no queue {name} that takes applications; it has {there}")
        elif str(leaf.get("state", "RUNNING")) != "RUNNING":
            yield Finding(
                "queue", "bad", f"the queue {name} is {str(leaf['state']).lower()}; start it, or name another"
            )
        elif _is_full(leaf):
            yield Finding("queue", "note", f"the queue {name} is full at the moment: jobs wait until others end")
        else:
            yield Finding("queue", "good", f"{name} takes applications")


def _leaves(queue: Any) -> Iterator[dict[str, Any]]:
    """The queues below one that have none below them; of the capacity scheduler, and of the fair one."""
    below = (queue.get("queues") or queue.get("childQueues") or {}) if isinstance(queue, dict) else {}
    children = below.get("queue", []) if isinstance(below, dict) else []
    if not children and isinstance(queue, dict):
        yield queue
    for child in children if isinstance(children, list) else [children]:
        yield from _leaves(child)


def _is_full(leaf: dict[str, Any]) -> bool:
    used, most = leaf.get("absoluteUsedCapacity", 0), leaf.get("absoluteMaxCapacity", 100)
    applications, limit = leaf.get("numApplications", 0), leaf.get("maxApplications", 0)
    return bool(0 < most * _FULL / 100 <= used or 0 < limit <= applications)
