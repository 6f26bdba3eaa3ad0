"""Translate the node selection of a pod spec (nodeName, node affinity, tolerations) to a role's node rules."""

from __future__ import annotations

from typing import Any, Final

from corral.spec.dialects.field_reader import Fields

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def node_rules(pod: Fields) -> dict[str, Any]:
    """A role's `nodes`, from `nodeName`, node affinity and tolerations of a pod."""
    include: list[str] = []
    if name := pod.text("nodeName"):
        include.append(name)
    expressions: list[dict[str, Any]] = []
    affinity = pod.inner("affinity")
    affinity.refuse("podAffinity", "say how close the tasks are to each other in a job file (topology)")
    affinity.refuse("podAntiAffinity", "say how far apart the tasks are in a job file (topology.spread, sharing)")
    node = affinity.inner("nodeAffinity")
    why = "Corral weighs no preferences between nodes; require the label, or leave it out"
    node.refuse("preferredDuringSchedulingIgnoredDuringExecution", why)
    required = node.inner("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required.items("nodeSelectorTerms")
    if len(terms) > 1:
        required.problem(("nodeSelectorTerms",), "several terms are alternatives, and a job has none; give one term")
    for term in terms[:1]:
        expressions += [_expression(each) for each in term.items("matchExpressions")]
        for each in term.items("matchFields"):
            include += _named(each)
        term.done()
    for part in (required, node, affinity):
        part.done()
    rules: dict[str, Any] = {
        "include": include,
        "expressions": expressions,
        "tolerations": [_toleration(each) for each in pod.items("tolerations")],
    }
    return {key: value for key, value in rules.items() if value}


def _expression(given: Fields) -> dict[str, Any]:
    found = {"key": given.text("key", None), "operator": given.text("operator", None, choices=_OPERATORS)}
    values = given.words("values")
    given.done()
    return found | ({"values": values} if values else {})


def _named(given: Fields) -> list[str]:
    if given.text("key", None) != "metadata.name" or given.text("operator", None) != "In":
        given.problem((), "of a node's fields only metadata.name can be asked for, with In")
    names = given.words("values")
    given.done()
    return names


def _toleration(given: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {
        "key": given.text("key"),
        "operator": given.text("operator", "Equal", choices=("Equal", "Exists")),
        "value": given.text("value"),
        "effect": given.text("effect", choices=("", *_EFFECTS)),
    }
    if "tolerationSeconds" in given:
        found["tolerationSeconds"] = given.whole("tolerationSeconds")
    given.done()
    return {key: value for key, value in found.items() if value != ""}
