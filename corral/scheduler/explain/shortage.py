"""Explain why a gang does not fit: the binding constraint, with figures."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from msgspec import structs

from corral.kernel.amounts import COLUMNS, amount_named
from corral.kernel.units import counted
from corral.model.plan import Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.cells.owned_placement import owner_of, place_owned
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.explain.owned_cells import own_cells_in_use
from corral.scheduler.explain.pinned_cell import in_several_cells, not_in_pinned_cell
from corral.scheduler.explain.placement_rule import no_amount, no_share, node_sharing_conflict, not_welcome
from corral.scheduler.placement.engine_request import EngineRequest, EngineRole
from corral.scheduler.placement.search import NOWHERE, Anchors, Search
from corral.scheduler.placement.shape import TaskShape, gang_shape
from corral.scheduler.placement.task_block import no_room_in_block_cell
from corral.scheduler.placement.trial import Trial
from corral.scheduler.queues.gang_resources import asked
from corral.spec.errors import did_you_mean
from corral.spec.placement import topology
from corral.spec.placement.level_name import spoken

_MOST_REFUSALS = 4096
_UNREAD = Reason("unread", "It does not fit now.")


def why_not(trial: Trial, request: GangRequest, shape: Hashable | None = None) -> Reasons:
    """Return why a gang does not fit in the state of a trial.

    Checked in order: the machines even when empty, the machines that work, and the resources in use. For the growth of
    a running gang it explains why one more task does not fit.
    """
    if not any(role.minimum for role in request.roles):
        return _for_one_more(why_not(trial, _one_more(request)))
    shape = shape or gang_shape(request)
    cluster = trial.cluster
    if not any(index.tree.nodes for index in cluster.engines.values()):
        return Reasons(Reason("no-nodes", "No machine is known yet."), possible=False)
    if request.in_several_cells:
        return in_several_cells(request)
    if request.pinned_cell:
        return not_in_pinned_cell(trial, request)
    never = refused_by(cluster.emptied(healed=True), request, shape)
    if never:
        return Reasons(never[0], tuple(never[1:]), possible=False)
    sick = refused_by(cluster.emptied(healed=False), request, shape)
    if sick:
        return Reasons(_out_of_order(cluster, sick[0]), tuple(sick))
    found = _shortages(trial, request, shape)
    own = own_cells_in_use(trial, request)
    return Reasons(own, tuple(found)) if own is not None else Reasons(found[0], tuple(found[1:]))


def only_whether_possible(trial: Trial, request: GangRequest, shape: Hashable | None = None) -> Reasons:
    """Return reasons of which only `possible` is as `why_not` says, for a queue whose reasons nobody reads."""
    if not any(role.minimum for role in request.roles):
        request, shape = _one_more(request), None
    cluster = trial.cluster
    machines = any(index.tree.nodes for index in cluster.engines.values())
    if not machines or request.in_several_cells or request.pinned_cell:
        return why_not(trial, request, shape)
    never = refused_by(cluster.emptied(healed=True), request, shape or gang_shape(request))
    return Reasons(_UNREAD, possible=not never)


def _one_more(request: GangRequest) -> GangRequest:
    """Return the growth request reduced to its first task."""
    role = request.roles[0]
    return structs.replace(request, roles=(structs.replace(role, indexes=role.indexes[:1], minimum=1),))


def _for_one_more(reasons: Reasons) -> Reasons:
    """Reword reasons so that they speak of one more task."""

    def said(reason: Reason) -> Reason:
        needs = reason.message.startswith("Needs ")
        message = f"One more task n{reason.message[1:]}" if needs else f"For one more task: {reason.message}"
        return structs.replace(reason, message=message)

    return structs.replace(reasons, binding=said(reasons.binding), others=tuple(map(said, reasons.others)))


def could_ever_fit(cluster: Cluster, request: GangRequest, *, in_several_cells: bool = False) -> Reasons | None:
    """Return why the gang could not start even if nothing ran: machines too small, or a bound of its queue.

    None if it could. Queue bounds do not apply inside the cells that the queue owns, so a bound counts only where these
    cells, all empty, cannot hold the gang. `in_several_cells`: the planner may place the roles of a gang in different
    cells, so that one that asks for it is not refused.
    """
    bounded = never_allowed(cluster, request)
    if bounded is not None:
        return bounded
    if in_several_cells and request.in_several_cells:
        return None
    reasons = why_not(Trial(cluster), request)
    return None if reasons.possible else reasons


def never_allowed(cluster: Cluster, request: GangRequest) -> Reasons | None:
    """Return the queue bound that never lets a gang start; None if there is none, or its own cells could hold it."""
    if cluster.queues.plain:
        return None
    never = cluster.queues.never(request.queue, asked(request, cluster.queues), request.groups)
    if never is None or _could_fit_in_own_cells(cluster, request):
        return None
    return Reasons(Reason(*never), possible=False)


def _could_fit_in_own_cells(cluster: Cluster, request: GangRequest) -> bool:
    """Return whether the cells that a gang's virtual cluster owns could hold it while nothing runs."""
    if not owner_of(Trial(cluster), request):
        return False
    trial = Trial(cluster.emptied(healed=True, owned=True))
    with trial.tentative():
        return place_owned(trial, request) is not None


def refused_by(empty: Cluster, request: GangRequest, shape: Hashable) -> list[Reason]:
    """Return why even the empty machines do not hold the gang; empty if they do. Cached per shape."""
    found = empty.refusals.get(shape)
    if found is None:
        trial = Trial(empty)
        with trial.tentative():
            fits = trial.place(request, shape) is not None
        found = [] if fits else _shortages(trial, request, shape)
        if len(empty.refusals) >= _MOST_REFUSALS:
            empty.refusals.clear()
        empty.refusals[shape] = found
    return found


def _out_of_order(cluster: Cluster, shortage: Reason) -> Reason:
    unknown = [name for name, index in cluster.engines.items() if index.unknown]
    every = [node for index in cluster.engines.values() for node in index.tree.nodes]
    closed = [node for node in every if node.cordoned]
    nodes = sum(not node.ready for node in every) - len(closed)
    devices = sum(not device.healthy for node in every for device in node.devices)
    counts = {
        "enginesUnknown": len(unknown),
        "nodesNotReady": nodes,
        "nodesCordoned": len(closed),
        "devicesUnhealthy": devices,
    }
    if unknown:
        message = f"The engine {unknown[0]} does not answer. Without it: {shortage.message}"
        return Reason("engine-unknown", message, counts)
    if closed:
        more = f", and {len(closed) - 1} more nodes are closed" if len(closed) > 1 else ""
        sick = (
            f"; {counted(nodes, 'node')} not ready, {counted(devices, 'device')} unhealthy" if nodes or devices else ""
        )
        message = f"{closed[0].name} is {closed[0].ready_reason}{more}{sick}; without them: {shortage.message}"
        return Reason("cordoned", message, counts)
    sick = f"{counted(nodes, 'node')} not ready and {counted(devices, 'device')} unhealthy"
    message = f"{sick}; without them: {shortage.message}"
    return Reason("bad-hardware", message, counts)


def _shortages(trial: Trial, request: GangRequest, shape: Hashable) -> list[Reason]:
    """Return everything found lacking, on the engine that lacks the least; never empty."""
    best: list[Reason] = []
    for index in trial.cluster.engines.values():
        ask = trial.engine_request(request, index, shape, rdma=request.needs_rdma)
        found = list(_on_engine(index, ask, request, trial.anchors(request, index) or NOWHERE))
        if not best or (index.tree.nodes and len(found) < len(best)):
            best = found
    return best or [Reason("no-nodes", "No machine is known yet.")]


def _on_engine(index: EngineIndex, ask: EngineRequest, request: GangRequest, anchors: Anchors) -> Iterator[Reason]:
    if ask.unknown_level:
        names = ", ".join(index.tree.levels)
        near = did_you_mean(ask.unknown_level, index.tree.levels)
        hint = f"{near} Levels here are {names}." if near.endswith("?") else f"; levels here are {names}."
        yield Reason("unknown-level", f'There is no topology level "{ask.unknown_level}"{hint}')
        return
    lacking = False
    single = len(ask.parts) == 1
    for part in ask.parts:
        count = request.roles[part.role].minimum
        scope = max(part.required, ask.required)
        reason = _part_lacks(index, part, count, scope, "" if single else f"Role {request.roles[part.role].role}: ")
        if reason:
            lacking = True
            yield reason
    if not lacking:
        yield no_room_in_block_cell(Search(index, ask, anchors, request.job), request) or _together(index, ask, request)


def _part_lacks(index: EngineIndex, part: EngineRole, count: int, scope: int, who: str) -> Reason | None:
    """Return the reason why one role by itself does not fit in any cell of its scope, or None."""
    shape = part.shape
    if not any(index.slots(shape).masks):
        return _no_such(index, shape, who)
    room, _ = _best_room(index, _bare(shape), scope)
    if room < count:
        closed = sum(left < 0 for left in index.tasks)
        others = f" ({counted(closed, 'node')} held by exclusive jobs)" if closed else ""
        wanted = f"{who}Needs {counted(count, 'task')}{_inside(index, scope)}"
        message = f"{wanted}; the nodes take at most {room} more{others}."
        return Reason("too-many-tasks", message, {"needed": count, "free": room, "exclusive": closed})
    if shape.share is not None:
        room, name = _best_room(index, shape._replace(cpu=0, memory=0, shm=0, more=()), scope)
        if room < count:
            return no_share(shape.share, count, room, _at_best(index, scope, name), who)
    elif shape.devices:
        reason = _devices_lack(index, shape, count, scope, who)
        if reason:
            return reason
    for amount in COLUMNS:
        if size := getattr(shape, amount.name):
            room, name = _best_room(index, _bare(shape)._replace(**{amount.name: size}), scope)
            if room < count:
                return no_amount(amount, count, room, _at_best(index, scope, name), who, _inside(index, scope))
    for each in shape.more:
        room, name = _best_room(index, _bare(shape)._replace(more=(each,)), scope)
        if room < count:
            return no_amount(amount_named(each[0]), count, room, _at_best(index, scope, name), who)
    room, name = _best_room(index, shape, scope)
    if room < count:
        message = (
            f"{who}Needs room for {counted(count, 'task')}{_inside(index, scope)}; at most {room} find devices, "
            f"processors and memory on one node each{_at_best(index, scope, name)}."
        )
        return Reason("fragmented", message, {"needed": count, "free": room})
    return None


def _no_such(index: EngineIndex, shape: TaskShape, who: str) -> Reason:
    refused = not_welcome(index, shape, who)
    if refused:
        return refused
    if shape.known and any(index.slots(shape._replace(ids=(), known=False)).masks):
        return _counted(index, shape, who)
    if shape.ids:
        return Reason("named-devices", f"{who}No node has all of the devices named {', '.join(shape.ids)}.")
    what = " ".join(part for part in (shape.model, shape.kind or "device") if part)
    if shape.without:
        what += f" of another model than {', '.join(shape.without)}"
    return Reason("no-such-device", f"{who}No node has a {what}.")


def _counted(index: EngineIndex, shape: TaskShape, who: str) -> Reason:
    """Report that the suitable devices are on shared nodes, where a device plugin chooses the devices of a task."""
    found = sum(device.counted for node in index.tree.nodes for device in node.devices)
    requirement = f"the devices {', '.join(shape.ids)}" if shape.ids else "a part of a device" if shape.share else ""
    requirement = requirement or "a level below the node"
    message = (
        f"{who}Requires {requirement}, but on shared nodes the device plugin chooses the devices; "
        f"{counted(found, 'device')} there are only counted."
    )
    return Reason("counted-devices", message, {"devices": found})


def _devices_lack(index: EngineIndex, shape: TaskShape, count: int, scope: int, who: str) -> Reason | None:
    only = shape._replace(cpu=0, memory=0, shm=0, more=())
    needed = count * shape.devices
    room, _ = _best_room(index, only, scope)
    if room >= count:
        return None
    free, total, name = _best_cell(index, only, scope)
    level = spoken(index.tree.levels[scope])
    counts = {"needed": needed, "free": free, "total": total, "room": room, "tasks": count}
    if shape.ids:
        return Reason("named-devices", f"{who}Needs the devices {', '.join(shape.ids)}; they are taken.", counts)
    kind = " ".join(part for part in (shape.model, "device") if part)
    if free >= needed:
        largest = max(mask.bit_count() for mask in index.slots(only).masks)
        if largest < shape.devices:
            return Reason(
                "not-enough-devices",
                f"{who}Needs {count} × {counted(shape.devices, kind)}; the largest node has {largest}.",
                counts,
            )
        message = (
            f"{who}Needs {count} × {counted(shape.devices, kind)}{_inside(index, scope)}; {free} of {total} are free"
            f"{_at_best(index, scope, name)}, but scattered: there is room for {room} of {counted(count, 'task')}."
        )
        return Reason("fragmented", message, counts)
    if scope:
        best = f"the best {level} ({name}) has {free} of {total} free"
        message = f"{who}Needs {counted(needed, kind)} inside one {level}; {best}."
        return Reason("no-cell-holds-gang", message, counts)
    there = f"there are {total}" if total < needed else f"{free} of {total} are free"
    return Reason("not-enough-devices", f"{who}Needs {counted(needed, kind)}; {there}.", counts)


def _together(index: EngineIndex, ask: EngineRequest, request: GangRequest) -> Reason:
    """Return the constraint between roles or blocks that binds when every role fits by itself."""
    conflict = node_sharing_conflict(index, ask, request)
    if conflict:
        return conflict
    needed = sum(part.shape.devices * request.roles[part.role].minimum for part in ask.parts)
    for part in ask.parts:
        if part.group_size > 1 or part.group_depth > index.tree.node_depth:
            level = index.tree.levels[part.group_depth]
            return Reason(*topology.unmet_groups(part.group_size, level, needed))
    level = spoken(index.tree.levels[ask.required])
    where = f"no {level} has room for all of them together" if ask.required else "together they need more than is free"
    return Reason("no-cell-holds-gang", f"Each role fits by itself, but {where}.", {"needed": needed})


def _bare(shape: TaskShape) -> TaskShape:
    return TaskShape(0, "", "", (), 0, 0, 0, shape.selector, where=shape.where, avoid=shape.avoid)


def _inside(index: EngineIndex, scope: int) -> str:
    return f" inside one {spoken(index.tree.levels[scope])}" if scope else ""


def _at_best(index: EngineIndex, scope: int, name: str) -> str:
    return f" in the best {spoken(index.tree.levels[scope])} ({name})" if scope else ""


def _best_room(index: EngineIndex, shape: TaskShape, scope: int) -> tuple[int, str]:
    """Return the most tasks of a shape that one cell of the scope holds, and that cell's name."""
    tree, slots = index.tree, index.slots(shape)
    if scope <= tree.node_depth:
        totals = slots.totals[scope]
        best = int(totals.argmax())
        return int(totals[best]), tree.cells[scope].names[best]
    most, where = 0, ""
    for at, layout in enumerate(tree.layouts):
        for mask in layout.depths[scope - tree.node_depth]:
            room = slots.measure(index, at, mask)
            if room > most or not where:
                most, where = max(most, room), tree.nodes[at].name
    return most, where


def _best_cell(index: EngineIndex, shape: TaskShape, scope: int) -> tuple[int, int, str]:
    """Return free and total fitting devices, and the name, of the cell of the scope with the most free ones."""
    tree = index.tree
    if scope <= tree.node_depth:
        single = _bare(shape)._replace(devices=1, kind=shape.kind, model=shape.model)
        free = index.slots(single).totals[scope]
        best = int(free.argmax())
        cells = tree.cells[scope]
        all_of_it = index.slots(single).fitting(int(cells.starts[best]), int(cells.ends[best]))
        return int(free[best]), all_of_it, cells.names[best]
    masks, most = index.slots(shape).masks, (-1, 0, "")
    for at, layout in enumerate(tree.layouts):
        for cell in layout.depths[scope - tree.node_depth]:
            count = (index.free[at] & masks[at] & cell).bit_count()
            if count > most[0]:
                most = (count, (masks[at] & cell).bit_count(), tree.nodes[at].name)
    return most
