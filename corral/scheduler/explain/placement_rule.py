"""Explain which placement rule besides room keeps a gang waiting, with figures.

The rules are node selection, device shares, exclusive nodes, one task per node, anti-affinity, same model and spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from corral.kernel.amounts import Amount
from corral.kernel.units import counted, format_memory
from corral.model.inventory import Node
from corral.model.plan import Reason
from corral.model.requests import Expression, FractionRequest, GangRequest, NodeSharing
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.placement.engine_request import EngineRequest, EngineRole
from corral.scheduler.placement.model_choice import model_choices
from corral.scheduler.placement.node_fit import refusal
from corral.scheduler.placement.node_sharing import LimitedSlots, Limits, limited
from corral.scheduler.placement.shape import TaskShape
from corral.spec.placement import sharing, topology

_PERCENT = 10_000
_NAMED = 4


def not_welcome(index: EngineIndex, shape: TaskShape, who: str) -> Reason | None:
    """Return the reason why no node takes a task of a shape even when empty; None if some node does."""
    nodes = index.tree.nodes
    codes = Counter(refusal(node, shape) for node in nodes)
    if codes[""]:
        return None
    counts = {"nodes": len(nodes), "labels": codes["node-selector"], "names": codes["node-names"]}
    counts["tainted"] = codes["tainted"]
    for code in ("tainted", "node-names", "node-selector"):
        if codes[code]:
            return Reason(code, f"{who}{_WORDS[code](nodes, shape)}", counts)
    return None


def _no_labels(nodes: tuple[Node, ...], shape: TaskShape) -> str:
    wanted = [f"{name}={value}" for name, value in shape.selector]
    wanted += [_said(each) for each in (shape.where.expressions if shape.where else ())]
    return f"No node has the labels {', '.join(wanted)}."


def _no_names(nodes: tuple[Node, ...], shape: TaskShape) -> str:
    rules = shape.where
    names = ", ".join(rules.include[:_NAMED]) if rules else ""
    if rules and rules.include:
        return f"No node is among those that it includes by name ({names}) and does not exclude."
    return "It excludes every suitable node by name."


def _tainted(nodes: tuple[Node, ...], shape: TaskShape) -> str:
    refused = [node for node in nodes if refusal(node, shape) == "tainted"]
    taints = {f"{taint.key}={taint.value}:{taint.effect}" for node in refused for taint in node.taints}
    more = "…" if len(taints) > _NAMED else ""
    named = ", ".join(sorted(taints)[:_NAMED])
    suit = "suits it except for its" if len(refused) == 1 else "suit it except for their"
    return f"{counted(len(refused), 'node')} {suit} taints, which it does not tolerate ({named}{more})."


_WORDS = {"tainted": _tainted, "node-names": _no_names, "node-selector": _no_labels}


def _said(each: Expression) -> str:
    return f"{each.key} {each.operator} {', '.join(each.values)}".strip()


def no_share(share: FractionRequest, count: int, room: int, where: str, who: str) -> Reason:
    """Return the reason that too few devices have a large enough part left."""
    wanted = [f"{share.compute / _PERCENT:g} % of the computing power"] if share.compute else []
    if share.memory_bytes:
        wanted.append(f"{format_memory(share.memory_bytes)} of the memory")
    elif share.memory:
        wanted.append(f"{share.memory / _PERCENT:g} % of the memory")
    asked = f"{who}Needs {' and '.join(wanted)} of a device for {counted(count, 'task')}"
    message = f"{asked}; there is enough for {room}{where}."
    return Reason("no-device-share", message, {"needed": count, "free": room})


def no_amount(amount: Amount, count: int, room: int, where: str, who: str, inside: str = "") -> Reason:
    """Return the reason that an amount is short."""
    message = f"{who}Needs {amount.word} for {counted(count, 'task')}{inside}; there is enough for {room}{where}."
    return Reason(amount.code, message, {"needed": count, "free": room})


def node_sharing_conflict(index: EngineIndex, ask: EngineRequest, request: GangRequest) -> Reason | None:
    """Return the rule across nodes that keeps the gang waiting although each role has room by itself, or None."""
    if ask.plain and not limited(index, ask):
        return None
    for reason in (*_rules(index, ask, request), *_models(index, ask, request), *_spread(index, ask, request)):
        return reason
    if not limited(index, ask):
        return None
    return Reason("company", "Each of its placement rules can be met, but not all of them together.")


def _rules(index: EngineIndex, ask: EngineRequest, request: GangRequest) -> Iterator[Reason]:
    asked, near = ask.sharing, [index.tree.position[node] for node in request.beside if node in index.tree.position]
    avoided = bool(ask.tags and index.neighbours.anti_affinity)
    for rule in asked.each(avoided=avoided):
        tags = () if rule.exclusive or rule.one_per_node else ask.tags
        limits = Limits(index, ask._replace(sharing=rule, tags=tags), request.job, near, [])
        for part in ask.parts:
            count, room = request.roles[part.role].minimum, _best(index, ask, part, limits)
            if room < count:
                yield _rule(index, ask, rule, count, room, int((limits.caps() > 0).sum()))
                break
    if asked.one_per_node:
        needed, nodes = sum(request.roles[part.role].minimum for part in ask.parts), len(index.tree.nodes)
        if needed > nodes:
            yield _rule(index, ask, NodeSharing(one_per_node=True), needed, nodes, nodes)


def _best(index: EngineIndex, ask: EngineRequest, part: EngineRole, limits: Limits) -> int:
    """Return the most tasks of a role that one cell of its scope holds under these limits."""
    depth = min(max(ask.required, part.required), index.tree.node_depth)
    return int(LimitedSlots(index.slots(part.shape), limits).totals[depth].max())


def _rule(index: EngineIndex, ask: EngineRequest, rule: NodeSharing, count: int, room: int, nodes: int) -> Reason:
    level = index.tree.levels[ask.anti_affinity_depth]
    return Reason(*sharing.unmet(rule, level, count, room, nodes, len(index.tree.nodes)))


def _models(index: EngineIndex, ask: EngineRequest, request: GangRequest) -> Iterator[Reason]:
    if not ask.topology.same_model and not any(part.topology.same_model for part in ask.parts):
        return
    best, named = -1, ""
    for variant in model_choices(index, ask):
        rooms = []
        for part in variant.parts:
            depth = min(max(ask.required, part.required), index.tree.node_depth)
            count = request.roles[part.role].minimum
            rooms.append(min(count, int(index.slots(part.shape).totals[depth].max())))
        if sum(rooms) > best:
            best, named = sum(rooms), next((part.shape.model for part in variant.parts if part.shape.devices), "")
    needed = sum(role.minimum for role in request.roles)
    if best < needed:
        yield Reason(*topology.unmet_model(needed, named, max(best, 0)))


def _spread(index: EngineIndex, ask: EngineRequest, request: GangRequest) -> Iterator[Reason]:
    for part in ask.parts:
        if part.spread and part.topology.bounded:
            room = index.slots(part.shape).totals[part.spread].tolist()
            count, level = request.roles[part.role].minimum, index.tree.levels[part.spread]
            yield Reason(*topology.unmet_spread(part.topology, level, count, room))
