"""Decide which devices of a node fit a task shape by labels, taints, names, kinds and models, regardless of use.

The result is a device mask per node, cached per shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf

from corral.model.inventory import Node, Taint
from corral.model.requests import Expression, NodeRules, Toleration
from corral.scheduler.cluster.topology_tree import AVOIDED, Tree
from corral.scheduler.placement.shape import TaskShape

_MOST_MASKS = 256
_NUMBER = re.compile("-?[0-9]{1,63}")
"""A whole number of ASCII digits, at most as long as a label value (63)."""
ANY_NODE = NodeRules()
WHOLE = -1
"""The mask that excludes no device."""


def fitting_devices(tree: Tree, shape: TaskShape) -> list[int]:
    """Return by node position the mask of the devices that fit a shape; shapes that differ only in amounts share it."""
    kinds = (shape.devices > 0, shape.kind, shape.model, shape.without, shape.ids)
    key = (*kinds, shape.selector, shape.where, shape.avoid, shape.known)
    found = tree.masks.get(key)
    if found is None:
        if len(tree.masks) >= _MOST_MASKS:
            tree.masks.clear()
        if shape.selector or shape.ids or shape.where:
            found = [_fitting(node, shape) for node in tree.nodes]
        else:
            first = dict(zip(reversed(tree.alike), reversed(tree.nodes), strict=True))
            masks = {number: _fitting(node, shape) for number, node in first.items()}
            found = [masks[number] for number in tree.alike]
        tree.masks[key] = found
    return found


def _fitting(node: Node, shape: TaskShape) -> int:
    """Return the mask of a node's devices that fit; for a shape without devices any nonzero mask if the node fits."""
    if refusal(node, shape):
        return 0
    if not shape.devices:
        return WHOLE
    mask = 0
    for device in node.devices:
        if (device.counted and shape.known) or device.model in shape.without:
            continue
        if (not shape.kind or device.kind == shape.kind) and (not shape.model or device.model == shape.model):
            mask |= 1 << device.index
    if not shape.ids:
        return _undivided(node, mask)
    by_name = {str(device.index): 1 << device.index for device in node.devices}
    by_name |= {device.id: 1 << device.index for device in node.devices}
    named = 0
    for name in shape.ids:
        if not by_name.get(name, 0) & mask:
            return 0
        named |= by_name[name]
    return named if _undivided(node, named) == named else 0


def _undivided(node: Node, mask: int) -> int:
    """Remove slices of parent devices in the mask, so that devices are given whole where possible."""
    for device in node.devices:
        if device.parent >= 0 and mask >> device.parent & 1:
            mask &= ~(1 << device.index)
    return mask


def refusal(node: Node, shape: TaskShape) -> str:
    """Return the reason code why a node takes no task of a shape even when empty, or "" if it does."""
    rules = shape.where or ANY_NODE
    if any(node.labels.get(name) != value for name, value in shape.selector):
        return "node-selector"
    if not all(_says(node, expression) for expression in rules.expressions):
        return "node-selector"
    if rules.include and not _named(node, rules.include):
        return "node-names"
    if _named(node, rules.exclude):
        return "node-names"
    if any(_keeps_off(taint, rules) for taint in node.taints if shape.avoid or taint.effect != AVOIDED):
        return "tainted"
    return ""


def _named(node: Node, names: Iterable[str]) -> bool:
    return any(name in (node.name, node.name.partition("/")[2]) for name in names)


def _says(node: Node, expression: Expression) -> bool:
    """Evaluate a Kubernetes label expression; NotIn also holds without the label, Gt and Lt compare whole numbers."""
    value = node.labels.get(expression.key)
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not (_NUMBER.fullmatch(value) and _NUMBER.fullmatch(expression.values[0])):
        return False
    bound = int(expression.values[0])
    return int(value) > bound if expression.operator == "Gt" else int(value) < bound


def _keeps_off(taint: Taint, rules: NodeRules) -> bool:
    return not any(_tolerates(toleration, taint) for toleration in rules.tolerations)


def stays_until(
    taints: Iterable[tuple[Taint, float]], rules: NodeRules, placed_at: float
) -> tuple[float, Taint | None]:
    """Return the time until which a placed task may stay on a node, and the taint that ends it.

    (inf, None) means that no taint ends it.

    `taints` are pairs of a taint and the time since when it is set; only `NoExecute` matters. As in Kubernetes, the
    first toleration that matches a taint counts, and the shortest time over all taints.
    """
    ends = [(_bears(taint, since, rules, placed_at), taint) for taint, since in taints if taint.effect == "NoExecute"]
    return min(((end, taint) for end, taint in ends if end < inf), key=lambda found: found[0], default=(inf, None))


def _bears(taint: Taint, since: float, rules: NodeRules, placed_at: float) -> float:
    matching = next((each for each in rules.tolerations if _tolerates(each, taint)), None)
    if matching is None:
        return since
    return inf if matching.seconds < 0 else max(since, placed_at) + matching.seconds


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value
