"""Generate relaxations of a gang's request, to find the smallest change that would let it start.

Each series (`Relaxations`) relaxes one requirement further with every step, so that if one step fits, all later ones do.
`size` is the cost of a relaxation: sharing and topology are cheap, amounts cost the fraction of the gang that they
remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from corral.kernel.amounts import COLUMNS, Amount, amount_named
from corral.kernel.units import counted
from corral.model.inventory import ELSEWHERE
from corral.model.requests import (
    DeviceRequest,
    FractionRequest,
    GangRequest,
    NodeRules,
    RoleRequest,
    TopologyRequest,
)
from corral.model.start_estimates import Change, Written
from corral.spec.placement import network, pinned_cell, sharing, topology
from corral.spec.placement.network import RDMA_LABEL
from corral.spec.placement.rule import Weaker

_GRAIN = 32
"""The number of steps in which an amount is reduced to nothing."""
_PERCENT, _STEP = 10_000, 5
"""Millionths of a device per percent, and the step in percent by which device parts are reduced."""


class Relaxation(NamedTuple):
    """A relaxation: the request with one requirement weakened."""

    size: float
    change: Change
    request: GangRequest


Relaxations = Sequence[Relaxation]


def relaxations(request: GangRequest, levels: Sequence[str]) -> Iterator[Relaxations]:
    """Yield every series of relaxations of a gang; `levels` are the machines' levels from engine down to device."""
    yield from _closeness(request, levels)
    yield from _node_sharing(request)
    yield from _nodes(request)
    for role in request.roles:
        yield from _devices(request, role)
        yield _tasks(request, role)
    for series in pinned_cell.weaker(request.pinned_cell):
        yield [_relaxed(each, "pinnedCell", structs.replace(request, pinned_cell=each.ask)) for each in series]
    for series in network.weaker(request.network_rdma):
        yield [_relaxed(each, "network", structs.replace(request, network_rdma=each.ask)) for each in series]


def amounts(request: GangRequest) -> Iterator[Relaxations]:
    """Yield the series that reduce resources other than devices."""
    for role in request.roles:
        whole = {each.name: getattr(role, each.column) for each in COLUMNS} | role.resources
        for name, size in whole.items():
            amount = amount_named(name)
            if size and amount.reducible:
                yield _amount(request, role, amount, size)


def _sentence(condition: str) -> str:
    return f"It would start now {condition}."


def _of(request: GangRequest, role: RoleRequest) -> str:
    return f" of role {role.role}" if len(request.roles) > 1 else ""


def _for(request: GangRequest, role: RoleRequest) -> str:
    return f" for the tasks of role {role.role}" if len(request.roles) > 1 else ""


def _with_role(request: GangRequest, role: RoleRequest, **fields: object) -> GangRequest:
    lesser = structs.replace(role, **fields)
    return structs.replace(request, roles=tuple(lesser if each is role else each for each in request.roles))


# -- amounts ----------------------------------------------------------------------------------------------------------


def _part(request: GangRequest, role: RoleRequest) -> float:
    """Return the role's fraction of the gang's devices, or of its tasks if it needs no devices."""
    weights = [each.minimum * max(each.devices.count, len(each.devices.ids), 0) for each in request.roles]
    if not any(weights):
        weights = [each.minimum for each in request.roles]
    return weights[request.roles.index(role)] / max(1, sum(weights))


def _tasks(request: GangRequest, role: RoleRequest) -> Relaxations:
    part, elastic = _part(request, role), role.minimum < len(role.indexes)
    path = f"roles.{role.role}.replicas.min" if elastic else f"roles.{role.role}.replicas"
    steps: list[Relaxation] = []
    if role.indexes != tuple(range(len(role.indexes))):
        return steps  # some of its tasks have ended already
    step = max(1, role.minimum // _GRAIN)
    for count in dict.fromkeys(
        (*range((role.minimum - 1) // step * step, 0, -step), *([1] if role.minimum > 1 else []))
    ):
        tasks = f"{'at least ' if elastic else ''}{counted(count, 'task')}"
        words = f"with {tasks}{_of(request, role)} instead of {role.minimum}"
        fields: dict[str, object] = {"minimum": count}
        if not elastic:
            fields["indexes"] = role.indexes[:count]
        change = Change(path, role.minimum, count, _sentence(words))
        steps.append(Relaxation(part * (1 - count / role.minimum), change, _with_role(request, role, **fields)))
    return steps


def _devices(request: GangRequest, role: RoleRequest) -> Iterator[Relaxations]:
    ask, part = role.devices, _part(request, role)
    path = f"roles.{role.role}.resources.devices"

    def relaxation(
        size: float, field: str, before: Written, after: Written, words: str, lesser: DeviceRequest
    ) -> Relaxation:
        name = f"{path}.{field}" if field else path
        change = Change(name, before, after, _sentence(words + _for(request, role)))
        return Relaxation(size, change, _with_role(request, role, devices=lesser))

    if ask.ids:
        count = len(ask.ids)
        words = f"with any {counted(count, 'device')} of a node instead of {', '.join(ask.ids)}"
        yield [relaxation(0.2, "", ",".join(ask.ids), count, words, DeviceRequest(count))]
        return
    if ask.model:
        words = f"with devices of any model, not only {ask.model}"
        yield [relaxation(0.2, "model", ask.model, "", words, structs.replace(ask, model=""))]
    if ask.kind:
        words = f"with devices of any kind, not only {ask.kind}"
        yield [relaxation(0.25, "kind", ask.kind, "", words, structs.replace(ask, kind=""))]
    if ask.share is not None:
        yield _share(request, role, ask.share)
    else:
        field = "" if ask == DeviceRequest(ask.count) else "count"
        yield [
            relaxation(
                part * (1 - count / ask.count),
                field,
                ask.count,
                count,
                f"with {counted(count, 'device')} a task instead of {ask.count}",
                structs.replace(ask, count=count),
            )
            for count in range(ask.count - 1, 0, -1)
        ]


def _share(request: GangRequest, role: RoleRequest, share: FractionRequest) -> Relaxations:
    """Return reductions of a device part, if it is given as only compute or only a fraction of memory."""
    said = [name for name in ("compute", "memory", "memory_bytes") if getattr(share, name)]
    if said not in (["compute"], ["memory"]):
        return []
    name, part = said[0], _part(request, role)
    percent: int = getattr(share, name) // _PERCENT
    path = f"roles.{role.role}.resources.devices.share.{name}Percent"
    steps = []
    for less in range((percent - 1) // _STEP * _STEP, 0, -_STEP):
        words = f"with {less} % of a device for each task{_of(request, role)} instead of {percent} %"
        lesser = structs.replace(role.devices, share=structs.replace(share, **{name: less * _PERCENT}))
        change = Change(path, percent, less, _sentence(words))
        steps.append(Relaxation(part * (1 - less / percent), change, _with_role(request, role, devices=lesser)))
    return steps


def _amount(request: GangRequest, role: RoleRequest, amount: Amount, size: int) -> Relaxations:
    """Return reductions of an amount in round steps."""
    path, unit, column = f"roles.{role.role}.{amount.job_path}", amount.unit, amount.column
    finest = unit.step(size)
    step = max(finest, size // _GRAIN)
    step -= step % finest
    steps = []
    for lesser in range((size - 1) // step * step, 0, -step):
        before, after = unit.written(size), unit.written(lesser)
        words = f"with {after} {amount.after_figure} a task instead of {before}{_for(request, role)}"
        change = Change(path, before, after, _sentence(words))
        fields: dict[str, object] = (
            {column: lesser} if column else {"resources": role.resources | {amount.name: lesser}}
        )
        steps.append(Relaxation(0.3 * (1 - lesser / size), change, _with_role(request, role, **fields)))
    return steps


# -- topology ---------------------------------------------------------------------------------------------------------


def _closeness(request: GangRequest, levels: Sequence[str]) -> Iterator[Relaxations]:
    for of_job in topology.weaker(request.topology, levels, ""):
        yield [_relaxed(each, "topology.", structs.replace(request, topology=each.ask)) for each in of_job]
    for of_all in topology.weaker_of_all([role.topology for role in request.roles]):
        yield [_relaxed(each, "topology.", _with_topologies(request, each.ask)) for each in of_all]
    for role in request.roles:
        place = f"roles.{role.role}.topology."
        for of_role in topology.weaker(role.topology, levels, _for(request, role)):
            yield [_relaxed(each, place, _with_role(request, role, topology=each.ask)) for each in of_role]


def _with_topologies(request: GangRequest, asks: Sequence[TopologyRequest]) -> GangRequest:
    roles = (structs.replace(role, topology=ask) for role, ask in zip(request.roles, asks, strict=True))
    return structs.replace(request, roles=tuple(roles))


# -- nodes and sharing ------------------------------------------------------------------------------------------------


def _node_sharing(request: GangRequest) -> Iterator[Relaxations]:
    for series in sharing.weaker(request.company) if request.company is not None else ():
        yield [
            _relaxed(each, "sharing.", structs.replace(request, company=each.ask if each.ask.asked else None))
            for each in series
        ]


def _relaxed(weaker: Weaker[Any], place: str, request: GangRequest) -> Relaxation:
    """Return the relaxation that a weaker rule makes of a request; `place` is the path of the rule in the file."""
    change = Change(f"{place}{weaker.field}", weaker.before, weaker.after, _sentence(weaker.condition))
    return Relaxation(weaker.size, change, request)


def _nodes(request: GangRequest) -> Iterator[Relaxations]:
    """Yield relaxations without single node labels, per role or for roles that share one, then without node rules."""
    labels = dict.fromkeys(item for role in request.roles for item in role.node_selector.items() if item != RDMA_LABEL)
    for key, value in labels:
        concerned = [role for role in request.roles if role.node_selector.get(key) == value]
        if len(concerned) == len(request.roles) > 1:
            yield _without_label(request, concerned, key, value)
        else:
            for role in concerned:
                yield _without_label(request, [role], key, value)
    yield from _rules(request)


def _without_label(request: GangRequest, concerned: Sequence[RoleRequest], key: str, value: str) -> Relaxations:
    kept = [
        structs.replace(role, node_selector={name: text for name, text in role.node_selector.items() if name != key})
        if role in concerned
        else role
        for role in request.roles
    ]
    one = len(concerned) == 1
    words = _sentence(f"on nodes without the label {key}={value}{_for(request, concerned[0]) if one else ''}")
    path = f"roles.{concerned[0].role}." if one else ""
    return [
        Relaxation(
            0.2, Change(f"{path}nodeSelector.{key}", value, "", words), structs.replace(request, roles=tuple(kept))
        )
    ]


def _rules(request: GangRequest) -> Iterator[Relaxations]:
    """Yield a relaxation without the only kind of node rule, or without all kinds and their tolerations."""
    ruled = [_binding_rules(role.nodes) for role in request.roles]
    named = sorted({field for fields in ruled for field in fields})
    if not named:
        return
    roles = []
    for role in request.roles:
        rules = role.nodes
        if rules is not None:
            out_of_reach = tuple(each for each in rules.expressions if each.key.startswith(ELSEWHERE))
            kept = rules.tolerations if len(named) == 1 else ()
            rules = NodeRules(expressions=out_of_reach, tolerations=kept)
        roles.append(structs.replace(role, nodes=rules if rules != NodeRules() else None))
    field = f"nodes.{named[0]}" if len(named) == 1 else "nodes"
    words = _sentence("on nodes that its rules for nodes leave out")
    change = Change(f"{_path(request, map(bool, ruled))}{field}", "rules", "", words)
    yield [Relaxation(0.25, change, structs.replace(request, roles=tuple(roles)))]


def _binding_rules(rules: NodeRules | None) -> list[str]:
    """Return the job file fields that exclude nodes, without the internal rule for unreachable volumes."""
    if rules is None:
        return []
    said = any(not each.key.startswith(ELSEWHERE) for each in rules.expressions)
    return [
        *(["expressions"] if said else []),
        *(["include"] if rules.include else []),
        *(["exclude"] if rules.exclude else []),
    ]


def _path(request: GangRequest, concerned: Iterable[bool]) -> str:
    """Return the path of a field that some roles have: inside the role if there is only one, else at the top."""
    named = [role.role for role, has in zip(request.roles, concerned, strict=True) if has]
    return f"roles.{named[0]}." if len(named) == 1 else ""
