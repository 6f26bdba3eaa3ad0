"""Validate a node: the job that checks it, and the judgement of its figures against those of similar nodes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, Final

import msgspec

from corral.frameworks.runnable_job import load_runnable_job
from corral.kernel.errors import InvalidInput
from corral.model.cordons import VALIDATING
from corral.model.inventory import Node
from corral.runtime import node_validation
from corral.spec.job import UnifiedJob

TAG: Final = "node-validation"
"""The tag of validation jobs."""
LOG_BYTES: Final = 65_536
"""The last bytes of a validation's log in which its figures are looked for."""
_LEAST_ALIKE: Final = 3
"""Similar nodes whose figures must be known before a node is compared with them."""
_LEAST_PART: Final = 0.7
"""The least part of the median of similar nodes that a figure may have; all figures are rates."""
_MOST_FIGURES: Final = 256
_MINUTES: Final = 30
_TORCH_GIB: Final = 4


class Figures(msgspec.Struct, frozen=True):
    """What a validation measured on a node. Each figure is a rate; higher is better."""

    node: str
    alike: str
    """Equal for nodes that can be compared."""
    at: float
    figures: dict[str, float] = {}


def validation_job(node: Node, name: str, text: str = "") -> UnifiedJob:
    """The job that validates a node: the administrator's document, or without one the built-in check.

    It goes to this node alone, tolerates the taint that keeps others away, and is not retried. Raises SpecError for a
    document that is not valid, InvalidInput for one of several jobs.
    """
    job = load_runnable_job(text or built_in(node), filename="the validation document")
    if job.is_array:
        raise InvalidInput("bad-validation", "The validation document is an array; it must be one job.")
    document: dict[str, Any] = job.to_document()
    spec = document["spec"]
    rules = spec.setdefault("nodes", {})
    rules["include"] = [node.name]
    rules["tolerations"] = [*rules.get("tolerations", []), {"key": VALIDATING, "operator": "Exists"}]
    spec["tags"] = [*[tag for tag in spec.get("tags", []) if tag != TAG], TAG]
    document["metadata"]["name"] = name
    return load_runnable_job(json.dumps(document), filename="the validation document")


def built_in(node: Node) -> str:
    """The built-in job: the check on all healthy devices of the node."""
    devices = sum(device.healthy and device.parent < 0 for device in node.devices)
    resources = {"cpu": 1, "memory": validation_memory(node, devices), "devices": devices}
    command = ["python3", "-c", inspect.getsource(node_validation)]
    role = {"replicas": 1, "command": command, "resources": resources, "retryPolicy": {"maxRetries": 0}}
    return json.dumps(
        {
            "name": "validation",
            "framework": "shell",
            "roles": {"check": role},
            "retryPolicy": {"maxRetries": 0},
            "maxDuration": f"{_MINUTES}m",
        }
    )


def validation_memory(node: Node, devices: int, *, least: int = 1, of_device: int = 1) -> str:
    """The memory of a validation job: GiB for itself and for each device, at most half of the node's.

    PyTorch with CUDA's libraries takes gigabytes before it has begun.
    """
    wanted = (least + (_TORCH_GIB + of_device * devices if devices else 0)) * 2**30
    half = node.memory_bytes // 2
    return str(max(least * 2**30, min(wanted, half)) if half else wanted)


def alike(node: Node, tool: str = "") -> str:
    """A text that is equal for nodes whose figures can be compared: devices, processors and what the check ran on."""
    models = sorted(device.model or device.kind for device in node.devices if device.parent < 0)
    counts = ", ".join(f"{models.count(model)} {model}" for model in dict.fromkeys(models))
    return f"{counts or 'no devices'}, {node.cpu_millis // 1000} processors, {tool}"[:200]


def read_figures(node: Node, log: bytes, at: float) -> Figures | None:
    """The figures that a validation printed last; None if it printed none that can be read."""
    mark = node_validation.MARK.encode()
    for line in reversed(log[-LOG_BYTES:].splitlines()):
        _, found, text = line.partition(mark)
        if not found:
            continue
        try:
            told = msgspec.json.decode(text, type=_Told)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        figures = {name[:64]: value for name, value in list(told.figures.items())[:_MOST_FIGURES] if value > 0}
        return Figures(node.name, alike(node, told.tool), at, figures)
    return None


class _Told(msgspec.Struct):
    figures: dict[str, float] = {}
    tool: str = msgspec.field(default="", name="with")


def slow_figures(found: Figures, others: Iterable[Figures]) -> str:
    """What is too slow on a node, in one clause; "" if nothing is, or too few similar nodes are known."""
    known: Mapping[str, list[float]] = {name: [] for name in found.figures}
    for other in others:
        if other.node != found.node and other.alike == found.alike:
            for name, values in known.items():
                if name in other.figures:
                    values.append(other.figures[name])
    slow = [
        f"{name.replace('_', ' ')} is {found.figures[name]:.4g}, and {median(values):.4g} on {len(values)} similar nodes"
        for name, values in known.items()
        if len(values) >= _LEAST_ALIKE and found.figures[name] < _LEAST_PART * median(values)
    ]
    return "; ".join(slow)


def below_data_sheet(node: Node, found: Figures) -> str:
    """What is below the data sheet of a node's devices, in one clause; "" if nothing is, or they are of several models."""
    from corral.benchmarks.rules.expected import read_expected, too_low
    from corral.benchmarks.suites.named import expected_text

    models = {device.model for device in node.devices if device.parent < 0}
    if len(models) != 1:
        return ""
    return "; ".join(too_low(next(iter(models)), found.figures, read_expected(expected_text(""))))
