"""Amounts of resources in queue documents: parse and format `devices: 8`, `cpu: 500m`, `memory: 1Ti`.

Devices and processors are counted in thousandths, memory in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from corral.kernel import units
from corral.spec.base import refusal
from corral.spec.errors import describe, did_you_mean
from corral.spec.yaml_scalars import written

RESOURCE: Final = re.compile(r"devices(/[A-Za-z0-9][-A-Za-z0-9_.+() ]{0,126})?|cpu|memory")


def parse_amount(resource: str, text: str) -> int:
    """Parse an amount of a resource: thousandths of devices or processors, or bytes of memory.

    Raises ValueError when the text is no such amount.
    """
    if resource == "cpu":
        return units.parse_cpu(text)
    if resource == "memory":
        return units.parse_memory(text)
    return units.parse_devices(text)


def spoken_amount(resource: str, amount: int) -> str:
    """Format an amount as people write it: `8`, `0.5`, `500m`, `2Gi`."""
    if resource == "cpu":
        return units.format_cpu(amount)
    return units.format_memory(amount) if resource == "memory" else units.format_devices(amount)


def count(amounts: Mapping[str, str]) -> dict[str, int]:
    """Parse validated amounts, by resource name: thousandths of devices and processors, bytes of memory."""
    return {resource: parse_amount(resource, text) for resource, text in amounts.items()}


def _amounts(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    checked: dict[str, str] = {}
    for resource, amount in value.items():
        if not isinstance(resource, str) or not RESOURCE.fullmatch(resource):
            near = did_you_mean(str(resource), ("devices", "devices/MODEL", "cpu", "memory"))
            raise refusal(f"{describe(resource)} is not a resource that queues divide{near}")
        text = written(amount)
        if not isinstance(text, str):
            raise refusal(f"expected an amount of {resource}, got {describe(amount)}")
        try:
            checked[resource] = spoken_amount(resource, parse_amount(resource, text))
        except ValueError as error:
            raise refusal(f"{resource}: {error}, got {describe(amount)}") from None
    return checked


Amounts = Annotated[
    dict[str, str],
    BeforeValidator(_amounts, json_schema_input_type=dict[str, str | int | float]),
    Field(max_length=200),
]
"""Amounts by resource name (`devices`, `devices/MODEL`, `cpu`, `memory`), each as text in its canonical form."""
