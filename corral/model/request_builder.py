"""Build the scheduler's request from a job document and the tasks that need a placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from weakref import WeakValueDictionary

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.input_bytes import InputBytes
from corral.model.inventory import ELSEWHERE
from corral.model.placement import TaskPlacement
from corral.model.requests import (
    ALONE,
    DeviceRequest,
    Expression,
    FractionRequest,
    GangRequest,
    NodeRules,
    RoleRequest,
    Toleration,
)
from corral.spec import placement_rules
from corral.spec.amount_fields import counted_amounts
from corral.spec.job import JobSpec, UnifiedJob
from corral.spec.placement import pinned_cell, sharing, topology
from corral.spec.placement_rules import MILLIONTHS, Share
from corral.spec.role import Role

NO_PORTS: Mapping[str, int] = MappingProxyType({})
_CLAIM = "pvc://"


class GangTerms(msgspec.Struct, frozen=True, weakref=True):
    """The scheduling terms of a job document, for any subset of its tasks; equal terms are one object."""

    whole: GangRequest
    """The request for all tasks of nobody's job.

    Its roles are in the document's order, without indexes; `minimum` is the fewest tasks that the job can begin with.
    """
    deadline_seconds: int = 0
    """Seconds from the submission to the deadline; 0 is none."""
    gang: bool = True
    """Whether all tasks must start together."""
    idle_seconds: int = 0
    """Seconds for which nobody works in the job until it is suspended; 0 is never."""

    @property
    def queue(self) -> str:
        """The queue that the document names."""
        return self.whole.queue

    @property
    def priority(self) -> int:
        """The priority that the document gives."""
        return self.whole.priority

    @property
    def roles(self) -> tuple[RoleRequest, ...]:
        """What each task of a role needs."""
        return self.whole.roles

    def lasting(self, seconds: int) -> GangTerms:
        """Those of a document with another `maxDurationSeconds`."""
        whole = msgspec.structs.replace(self.whole, max_duration_seconds=seconds)
        return _one_object(msgspec.structs.replace(self, whole=whole))

    def lines(self, tasks: Iterable[TaskKey]) -> list[list[TaskKey]]:
        """Group tasks into requests: all tasks of a gang, or else those of one affinity group or one role."""
        groups = {role.role: role.role if role.affinity == ALONE else role.affinity for role in self.roles}
        found: dict[str, list[TaskKey]] = {}
        for key in tasks:
            found.setdefault("" if self.gang else groups[key.role], []).append(key)
        return list(found.values())

    def request(
        self,
        job: JobId,
        attempt: int,
        tasks: Iterable[TaskKey],
        *,
        user: str,
        created_at: float,
        groups: tuple[str, ...] = (),
        running: Sequence[TaskPlacement] = (),
        turn: float = 0.0,
        inputs: InputBytes | None = None,
    ) -> GangRequest:
        """Build the request that places `tasks` of the job.

        `running` are the placements that the gang holds already: the tasks join it, and only the number that the job
        lacks to its minimum is mandatory.
        """
        indexes: dict[str, list[int]] = {}
        for key in tasks:
            indexes.setdefault(key.role, []).append(key.index)
        held = Counter(placement.role for placement in running)
        least = {role.role: role.minimum - held[role.role] for role in self.roles}
        if not self.gang:  # without a gang one task is enough to begin, the others may follow
            least = dict.fromkeys(least, 0) | {next(role.role for role in self.roles if role.role in indexes): 1}
        asked = [role for role in self.roles if role.role in indexes]
        pins = {role.pinned_cell for role in asked if role.devices.count or role.devices.ids}
        cell = pinned_cell.shared(pins, self.whole.pinned_cell)
        if cell is not None:  # one cell for all: it is a field of the gang, not of its roles
            asked = [msgspec.structs.replace(role, pinned_cell="") if role.pinned_cell else role for role in asked]
        return msgspec.structs.replace(
            self.whole,
            job=job,
            job_attempt=attempt,
            user=user,
            submitted_at=created_at,
            turn=turn,
            roles=tuple(_for_tasks(role, tuple(sorted(indexes[role.role])), least[role.role]) for role in asked),
            deadline=created_at + self.deadline_seconds if self.deadline_seconds else 0.0,
            groups=groups,
            pinned_cell=cell or "",
            beside=tuple(dict.fromkeys(placement.node for placement in running)),
            inputs=inputs,
        )


_KNOWN: WeakValueDictionary[bytes, GangTerms] = WeakValueDictionary()


def gang_terms(document: UnifiedJob, ports: Mapping[str, int] = NO_PORTS) -> GangTerms:
    """The scheduling terms of a job document.

    `ports` is the number of ports per role that the framework needs, besides the role's own.
    """
    spec, least, groups = document.spec, document.gang_size(), _affinities(document.spec)
    whole = GangRequest(
        job=JobId(""),
        job_attempt=0,
        user="",
        queue=spec.queue,
        priority=document.priority,
        submitted_at=0.0,
        roles=tuple(
            _role_request(spec, role, least[role.name], ports.get(role.name, 0), groups[role.name])
            for role in spec.roles
        ),
        topology=topology.requested_of_job(spec.topology),
        network_rdma=spec.network.rdma,
        tags=tuple(sorted(set(spec.tags))),
        company=sharing.requested(spec.sharing),
        max_duration_seconds=spec.max_duration_seconds,
        preemptible=spec.preemptible,
        pinned_cell=spec.pinned_cell,
        lazy_preemption=spec.lazy_preemption,
        speeds=tuple(sorted(spec.speeds.items())),
        scaling=tuple((each.devices, each.nodes, each.throughput) for each in spec.scaling),
    )
    return _one_object(GangTerms(whole, spec.deadline_seconds, spec.gang, spec.idle_seconds))


def _one_object(terms: GangTerms) -> GangTerms:
    return _KNOWN.setdefault(msgspec.msgpack.encode(terms), terms)


def _for_tasks(role: RoleRequest, indexes: tuple[int, ...], minimum: int) -> RoleRequest:
    return msgspec.structs.replace(role, indexes=indexes, minimum=max(0, min(minimum, len(indexes))))


def _affinities(spec: JobSpec) -> dict[str, str]:
    """By role, the affinity group of its tasks; "" if the whole gang is one group.

    Source: microsoft/pai, rest-server's hived validation. A gang is one group only if no role names a group; a task
    without a group beside named groups is a group of its own. There the first task's cell type holds for the whole
    gang; here each cell type is a group.
    """
    if not spec.gang or any(role.affinity_group for role in spec.roles):
        return {role.name: f"/{role.affinity_group}" if role.affinity_group else ALONE for role in spec.roles}
    kinds = {role.name: (role.resources.devices.model, pinned_cell.requested(spec, role)) for role in spec.roles}
    if len({kinds[role.name] for role in spec.roles if role.resources.devices.count}) < 2:
        return {role.name: "" for role in spec.roles}
    return {name: f"{model}@{cell}" for name, (model, cell) in kinds.items()}


def _role_request(spec: JobSpec, role: Role, minimum: int, ports: int, affinity: str) -> RoleRequest:
    devices = role.resources.devices
    return RoleRequest(
        role=role.name,
        indexes=(),
        minimum=minimum,
        cpu_millis=role.resources.cpu_millis,
        memory_bytes=role.resources.memory_bytes,
        shm_bytes=role.shm_bytes,
        devices=DeviceRequest(
            devices.count,
            devices.kind,
            devices.model,
            devices.named,
            fraction_request(devices.share),
            tuple(sorted(model for model, speed in spec.speeds.items() if not speed)),
        ),
        topology=topology.requested_of_role(role.topology, spec.topology),
        node_selector=dict(role.node_selector),
        resources=amounts_of(role, ports),
        nodes=_within_reach(node_rules(spec.nodes, role.nodes), volume_claims(spec, role)),
        affinity=affinity,
        pinned_cell=pinned_cell.requested(spec, role),
    )


def amounts_of(role: Role, ports: int = 0) -> dict[str, int]:
    """Amounts of every resource except CPU, memory, shared memory and devices; `ports` are the framework's."""
    found = {name: amount for name, amount in role.resources.other.items() if amount}
    found |= counted_amounts(role.resources)
    if ports := ports + sum(port.count for port in role.ports):
        found["ports"] = ports
    return found


def fraction_request(share: Share) -> FractionRequest | None:
    """The device fraction that a document requests; None for whole devices."""
    if not share.asked:
        return None
    percent = MILLIONTHS // 100
    return FractionRequest(
        share.compute_percent * percent,
        share.memory_percent * percent,
        share.memory_bytes,
        share.policy == "spread",
    )


def node_rules(*rules: placement_rules.NodeRules) -> NodeRules | None:
    """Combine node rules; a node must be in every non-empty `include` list. None if the result has no rule."""
    included = [each.include for each in rules if each.include]
    named = [{placement_rules.node_name(name) for name in names} for names in included]
    both = NodeRules(
        tuple(Expression(e.key, e.operator, tuple(e.values)) for each in rules for e in each.expressions),
        tuple(_toleration(t) for each in rules for t in each.tolerations),
        tuple(sorted(name for name in included[-1] if all(placement_rules.node_name(name) in each for each in named)))
        if included
        else (),
        tuple(sorted({name for each in rules for name in each.exclude})),
    )
    return None if both == NodeRules() else both


def _within_reach(rules: NodeRules | None, claims: Iterable[str]) -> NodeRules | None:
    """The rules, plus the exclusion of nodes whose labels say that they cannot reach one of these volume claims."""
    reach = tuple(Expression(f"{ELSEWHERE}{claim}", "DoesNotExist") for claim in claims)
    if not reach:
        return rules
    rules = rules or NodeRules()
    return msgspec.structs.replace(rules, expressions=rules.expressions + reach)


def volume_claims(spec: JobSpec, role: Role) -> list[str]:
    """The volume claims that a role mounts: by podTemplate, by the job's inputs and outputs, and by storage name."""
    pod = role.kubernetes.pod_template.get("spec")
    volumes = pod.get("volumes") if isinstance(pod, dict) else None
    named = [
        str(source.get("claimName", ""))
        for volume in (volumes if isinstance(volumes, list) else ())
        if isinstance(volume, dict) and isinstance(source := volume.get("persistentVolumeClaim"), dict)
    ]
    uris = [*(entry.uri for entry in spec.inputs), *(entry.uri for entry in spec.outputs)]
    data = [uri for uri in uris if uri.startswith(_CLAIM)]
    named += [use.name for use in spec.storages]
    return sorted({*filter(None, named), *(uri.removeprefix(_CLAIM).partition("/")[0] for uri in data)})


def _toleration(said: placement_rules.Toleration) -> Toleration:
    return Toleration(said.key, said.operator, said.value, said.effect, said.toleration_seconds)
