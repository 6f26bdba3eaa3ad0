"""Expected values of known devices: what a data sheet promises, and the part of it that a healthy device reaches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from corral.benchmarks.results.lines import NodeResult, without_rank
from corral.benchmarks.rules.diagnosis import Breach, Diagnosis
from corral.benchmarks.suite.document import read_document
from corral.kernel.errors import InvalidInput

RULE: Final = "expected"
_SKU: Final = re.compile(r"\d+x (.+)")
_SOURCE: Final = 200


class Expected(NamedTuple):
    """What is expected of one metric of a device."""

    peak: float
    """What the data sheet promises, as far as the metric can show it."""
    least: float
    """The least value of a healthy device."""
    source: str


Table = Mapping[str, Mapping[str, Expected]]
"""For each model, as `_plain` writes it, the expected value of each metric, its name without the rank."""


def read_expected(text: bytes) -> Table:
    """Read a file of expected values. Raises InvalidInput with the path of the fault."""
    document = read_document(text, "expected values")
    metrics, devices = document.get("metrics"), document.get("devices")
    if not isinstance(metrics, dict) or not isinstance(devices, list):
        raise _fault("it", "must have metrics and devices")
    table: dict[str, dict[str, Expected]] = {}
    for at, device in enumerate(devices):
        path = f"devices[{at}]"
        if not isinstance(device, dict) or not isinstance(device.get("models"), list):
            raise _fault(path, "must have a list of models")
        source = device.get("source")
        if not isinstance(source, str) or not 0 < len(source) <= _SOURCE:
            raise _fault(f"{path}.source", "must say where the values are from")
        found = {str(name): each for name, rule in metrics.items() if (each := _of(device, rule, path, source))}
        table |= {_plain(str(model)): found for model in device["models"]}
    return table


def _of(device: Mapping[str, Any], rule: Any, path: str, source: str) -> Expected | None:
    if not isinstance(rule, dict) or not isinstance(rule.get("of"), str):
        raise _fault("metrics", 'must say which value each is a part "of"')
    if rule["of"] not in device:
        return None
    part, least = (_number(rule.get(name), 1, f"metrics.{name}") for name in ("part", "least"))
    peak = part * _number(device[rule["of"]], 1e9, f"{path}.{rule['of']}")
    return Expected(peak, peak * least, source)


def _number(value: Any, most: float, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise _fault(path, f"must be a number above 0, and at most {most:g}")
    return float(value)


def _plain(model: str) -> str:
    """A model's name as the driver and Kubernetes' labels have it alike: `NVIDIA-A100-SXM4-80GB` has no spaces there."""
    return re.sub(r"[\s_-]+", "-", model).casefold()


def model_of(sku: str) -> str:
    """Return the model of the devices of a SKU such as `8x NVIDIA H200`; "" for nodes without devices."""
    found = _SKU.fullmatch(sku)
    return found[1] if found else ""


def expected_of(model: str, metric: str, table: Table) -> Expected | None:
    """Return what is expected of a metric, its name without the rank, on devices of a model."""
    return table.get(_plain(model), {}).get(metric)


def too_low(model: str, metrics: Mapping[str, float], table: Table) -> list[str]:
    """Return what is said of each metric that is below the least of a known model."""
    known = table.get(_plain(model), {})
    return [
        f"{name} is {value:.4g}, {value / each.peak:.0%} of the {each.peak:.4g} of {model} ({each.source}); "
        f"{each.least:.4g} is the least"
        for name, value in sorted(metrics.items())
        if (each := known.get(without_rank(name))) is not None and value < each.least
    ]


def with_expected(found: Iterable[Diagnosis], results: Iterable[NodeResult], table: Table) -> list[Diagnosis]:
    """Add to diagnoses which metrics are below what is expected of the nodes' devices."""
    low = {each.node: too_low(model_of(each.sku), each.metrics, table) for each in results}
    return [
        Diagnosis(each.node, (*each.breaches, Breach(RULE, "Data sheet", tuple(low[each.node]))))
        if low.get(each.node)
        else each
        for each in found
    ]


def _fault(path: str, what: str) -> InvalidInput:
    return InvalidInput("bad-expected", f"The expected values are not understood: {path[:200]} {what}.")
