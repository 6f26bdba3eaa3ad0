"""Nodes and pods for OpenPAI's administrators as Kubernetes lists them, and alerts.

Where tasks do not run on Kubernetes, the lists are built in the same shape. Alerts have the shape of Prometheus'
Alertmanager and the names of OpenPAI's own rules; they are built from stored data.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from corral.kernel.errors import Unavailable
from corral.model.alerts.stored import StoredAlert, fingerprint_of, silencing
from corral.model.cordons import Cordon
from corral.model.inventory import Node
from corral.model.records import NEVER_RAN, JobFilter, JobSummary, rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.alerts.alerts import Alerts
from corral.service.context import Context
from corral.store.cluster_views import HolderRow, NodeRow

PENDING_SECONDS: Final = 1800.0
"""Seconds that a job waits before the alert PaiJobPending is raised."""
NAMESPACE: Final = "default"
"""The namespace in which OpenPAI has the pods of jobs."""
_GPU: Final = {"gpu": "nvidia.com/gpu", "npu": "huawei.com/npu"}
_MOST_ALERTS: Final = 1000
_NO_CONTROL: Final = "no-control"
_PHASES: Final = {"running": "Running", "deletion-pending": "Running"}


class KubernetesLists:
    """Nodes and pods as Kubernetes lists them, and alerts."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._alerts = Alerts(context)

    async def nodes(self, actor: Actor) -> dict[str, Any]:
        """A NodeList: Kubernetes' own where tasks run on it, else one of Corral's machines.

        Raises Forbidden for anybody but administrators.
        """
        await self._context.check(actor, "cluster.inspect", Resource("cluster", "nodes"))
        own = await self._listed_by_engine("nodes")
        if own is not None:
            return own
        cordons = await self._store.cordons()
        return _list("NodeList", [_node(row, cordons.get(row.node.name)) for row in await self._store.nodes()])

    async def pods(self, actor: Actor, namespace: str = "") -> dict[str, Any]:
        """A PodList: Kubernetes' own where tasks run on it, else one of Corral's placed tasks.

        Raises Forbidden for anybody but administrators.
        """
        await self._context.check(actor, "cluster.inspect", Resource("cluster", "pods"))
        own = await self._listed_by_engine("pods", namespace)
        if own is not None:
            return own
        if namespace not in ("", NAMESPACE):
            return _list("PodList", [])
        nodes = {row.node.name: row.node for row in await self._store.nodes()}
        return _list("PodList", [_pod(holder, nodes) for holder in await self._store.holders()])

    async def alerts(self, actor: Actor) -> list[dict[str, Any]]:
        """The present alerts that are not silenced: all for administrators, else those about the actor's own jobs.

        They are those of the rules file and of the alerts' webhook, and what Corral knows without rules.
        """
        now = self._clock.now()
        silences = await self._store.silences(now)
        told = [each for each, silenced in await self._alerts.found(actor) if each.state == "firing" and not silenced]
        found = [_alert_of(each) for each in told]
        known = {_about(each["labels"]) for each in found}
        for each in await self._known_alerts(actor):
            if _about(each["labels"]) not in known and not silencing(silences, each["labels"], now):
                found.append(each)
        return found

    async def _known_alerts(self, actor: Actor) -> list[dict[str, Any]]:
        """What Corral knows of jobs and nodes without rules, as alerts."""
        await self._context.check(actor, "job.list", Resource("job"))
        users = () if actor.is_admin else (actor.user,)
        waiting = await self._store.list_jobs(
            JobFilter(phases=("waiting",), users=users, order="oldest"), limit=_MOST_ALERTS
        )
        found = [alert for job in waiting.items if (alert := self._pending(job)) is not None]
        begun = await self._store.list_jobs(
            JobFilter(phases=("starting", "running"), users=users, order="oldest"), limit=_MOST_ALERTS
        )
        found += [
            _never_ran(job) for job in (*waiting.items, *begun.items) if job.waiting and job.waiting.code == NEVER_RAN
        ]
        if actor.is_admin:
            for row in await self._store.nodes():
                found += _of_node(row)
        return found

    async def _listed_by_engine(self, kind: str, namespace: str = "") -> dict[str, Any] | None:
        """The engine's own list; None when it has none, or no control runs.

        Raises Unavailable while control starts, or the engine that has a list does not answer.
        """
        asked = f"?{urlencode({'namespace': namespace})}" if namespace else ""
        try:
            found = await self._context.control.request(f"/cluster/{kind}{asked}")
        except Unavailable as error:
            if error.code != _NO_CONTROL:
                raise
            return None
        return found if isinstance(found, dict) else None

    def _pending(self, job: JobSummary) -> dict[str, Any] | None:
        since = datetime.fromisoformat(job.created_at).timestamp()
        if self._clock.now() - since < PENDING_SECONDS:
            return None
        labels = {"job_name": f"{job.user}~{job.name}", "username": job.user, "virtual_cluster": job.queue}
        why = f" {job.waiting.message}" if job.waiting else ""
        said = f"Job {job.user}~{job.name} has been pending for more than 30 minutes.{why}"
        return _alert("PaiJobPending", "warn", labels, said, since + PENDING_SECONDS)


def _never_ran(job: JobSummary) -> dict[str, Any]:
    labels = {"job_name": f"{job.user}~{job.name}", "username": job.user, "virtual_cluster": job.queue}
    said = f"Job {job.user}~{job.name}: {job.waiting.message if job.waiting else ''}"
    return _alert("CorralTaskNeverRan", "error", labels, said, datetime.fromisoformat(job.created_at).timestamp())


def _list(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": ""}, "items": items}


def _node(row: NodeRow, cordon: Cordon | None) -> dict[str, Any]:
    node, name, seen = row.node, _plain(row.node.name), rfc3339(row.seen_at)
    amounts = {"cpu": _cpu(node.cpu_millis), "memory": f"{node.memory_bytes // 1024}Ki", "pods": str(node.max_tasks)}
    whole = Counter(device.kind for device in node.devices if device.parent < 0)
    good = Counter(device.kind for device in node.devices if device.parent < 0 and device.healthy)
    spec: dict[str, Any] = {"unschedulable": True} if cordon is not None else {}
    if node.taints:
        spec["taints"] = [msgspec.to_builtins(taint) for taint in node.taints]
    ready = {
        "type": "Ready",
        "status": "True" if node.ready else "False",
        "reason": "CorralReady" if node.ready else "CorralNotReady",
        "message": node.ready_reason,
        "lastHeartbeatTime": seen,
        "lastTransitionTime": seen,
    }
    return {
        "metadata": {
            "name": name,
            "uid": _uid("node", node.name),
            "labels": {"kubernetes.io/hostname": name, "pai-worker": "true", **node.labels},
            "annotations": {},
            "creationTimestamp": seen,
        },
        "spec": spec,
        "status": {
            "capacity": amounts | {_resource(kind): str(count) for kind, count in whole.items()},
            "allocatable": amounts | {_resource(kind): str(good[kind]) for kind in whole},
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": name}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "", "osImage": "", "containerRuntimeVersion": ""},
        },
    }


def _pod(holder: HolderRow, nodes: Mapping[str, Node]) -> dict[str, Any]:
    task, place = holder.task, holder.task.placement
    document = msgspec.json.decode(holder.doc).get("spec", {})
    role: dict[str, Any] = next((each for each in document.get("roles", ()) if each.get("name") == task.role), {})
    resources = role.get("resources", {})
    amounts = {"cpu": str(resources.get("cpu") or "0"), "memory": str(resources.get("memory") or "0")}
    node = nodes.get(place.node) if place is not None else None
    kinds = Counter(device.kind for device in node.devices if device.index in place.devices) if node and place else {}
    amounts |= {_resource(kind): str(count) for kind, count in kinds.items()}
    name = f"{holder.job}-{task.role}-{task.index}"
    started = {} if task.started_at is None else {"startTime": rfc3339(task.started_at)}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": _uid("pod", f"{name}.{task.attempt}"),
            "labels": {
                "type": "kube-launcher-task",
                "jobName": holder.name,
                "userName": holder.user,
                "virtualCluster": holder.queue,
                "FC_TASKROLE_NAME": task.role,
                "FC_TASK_INDEX": str(task.index),
            },
            "annotations": {},
            "creationTimestamp": rfc3339(task.created_at),
        },
        "spec": {
            "nodeName": _plain(place.node) if place is not None else "",
            "containers": [
                {"name": "app", "image": role.get("image", ""), "resources": {"requests": amounts, "limits": amounts}}
            ],
        },
        "status": {
            "phase": _PHASES.get(str(task.state), "Pending"),
            "hostIP": task.host,
            "podIP": task.host,
            "conditions": [],
            "containerStatuses": [],
            **started,
        },
    }


def _of_node(row: NodeRow) -> Iterator[dict[str, Any]]:
    node, name = row.node, _plain(row.node.name)
    labels = {"node_name": name, "instance": name}
    if not node.ready:
        said = f"Node {name} is not ready: {node.ready_reason or 'no reason is known'}."
        yield _alert("NodeNotReady", "fatal", labels, said, row.seen_at)
    for mismatch in node.mismatches:
        said = f"Node {name} reports other {mismatch.what} than configured: {mismatch.reported}, not {mismatch.configured}."
        yield _alert("NodeGpuCountChanged", "error", labels, said, row.seen_at)
    for device in node.devices:
        if not device.healthy:
            more = labels | {"minor_number": str(device.index)}
            said = f"Device {device.index} of node {name} is unhealthy: {device.health_reason or 'no reason is known'}."
            yield _alert("NvidiaSmiDoubleEccError", "fatal", more, said, row.seen_at)


def _about(labels: Mapping[str, str]) -> tuple[str, ...]:
    """What an alert is about, so that a rule's alert stands for what Corral knows itself."""
    return tuple(labels.get(each, "") for each in ("alertname", "node_name", "minor_number", "job_name"))


def _alert_of(alert: StoredAlert) -> dict[str, Any]:
    return _shown(alert.labels, alert.annotations, alert.since)


def _alert(name: str, severity: str, labels: Mapping[str, str], summary: str, since: float) -> dict[str, Any]:
    return _shown({"alertname": name, "severity": severity, **labels}, {"summary": summary}, since)


def _shown(labels: Mapping[str, str], annotations: Mapping[str, str], since: float) -> dict[str, Any]:
    return {
        "labels": labels,
        "annotations": annotations,
        "startsAt": rfc3339(since),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "status": {"state": "active", "silencedBy": [], "inhibitedBy": []},
        "receivers": [],
        "fingerprint": fingerprint_of(labels),
    }


def _plain(name: str) -> str:
    """A machine's name without the name of its engine."""
    return name.partition("/")[2] or name


def _cpu(millis: int) -> str:
    return f"{millis}m" if millis % 1000 else str(millis // 1000)


def _resource(kind: str) -> str:
    return _GPU.get(kind, f"corral.dev/{kind}")


def _uid(kind: str, name: str) -> str:
    """A UID that is the same for one object in every list, as in Kubernetes."""
    told = hashlib.sha256(f"{kind}:{name}".encode()).hexdigest()
    return f"{told[:8]}-{told[8:12]}-{told[12:16]}-{told[16:20]}-{told[20:32]}"
