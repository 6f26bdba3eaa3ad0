"""Placement rules of tasks: devices and device shares, node selection, tolerations, anti-affinity and spread."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from corral.kernel.amounts import AMOUNTS
from corral.kernel.units import DEVICE, parse_memory
from corral.spec.base import LabelKey, Memory, SpecModel, Text, refusal
from corral.spec.errors import describe
from corral.spec.yaml_scalars import written

MILLIONTHS: Final = 1_000_000
MOST_BITS: Final = 64
OWN_FIELDS: Final = frozenset({"devices", *(amount.name for amount in AMOUNTS)})
"""Names that a resource in `other` may not have, because they are fields."""
_COMPARED: Final = ("Gt", "Lt")
_NUMBER: Final = re.compile("-?[0-9]+")
_VALUED: Final = ("In", "NotIn")


def bitmap_bits(text: str) -> int:
    """The integer value of a bitmap such as 0x33 or 51; 0 for "".

    Raises ValueError when it is neither, or has more than 64 bits.
    """
    bits = int(text, 16 if text.lower().startswith("0x") else 10) if text else 0
    if bits < 0 or bits.bit_length() > MOST_BITS or "_" in text:
        raise ValueError("a bitmap has at most 64 bits")
    return bits


def node_name(name: str) -> str:
    """A node's name without its engine's prefix."""
    return name.rpartition("/")[2]


def _bitmap(value: Any) -> Any:
    text = written(value)
    if isinstance(text, str):
        try:
            bitmap_bits(text)
        except ValueError:
            raise refusal(f"expected a bitmap of at most 64 bits, such as 0x33, got {describe(text)}") from None
    return text


class Share(SpecModel):
    """A share of one device; an unset share of computing power or memory equals the other one."""

    compute_percent: int = Field(0, ge=0, le=100, description="Of its computing power; 0 is unsaid.")
    memory_percent: int = Field(0, ge=0, le=100, description="Of its memory; 0 is unsaid.")
    memory: Memory = Field("", description='Its memory as an amount instead, such as 10Gi; "" is unsaid.')
    policy: Literal["pack", "spread"] = Field(
        "pack",
        description="pack: on devices that others have parts of already, so that the rest stay whole; "
        "spread: on the emptiest.",
    )

    @property
    def asked(self) -> bool:
        """Whether a share is requested at all."""
        return bool(self.compute_percent or self.memory_percent or self.memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory requested; 0 when unset, or when written as any zero."""
        return parse_memory(self.memory) if self.memory else 0

    @property
    def percent(self) -> int:
        """Percent of a device; 100 when only memory in bytes is given, as devices differ in size."""
        return max(self.compute_percent, self.memory_percent) or 100


class Devices(SpecModel):
    """The accelerators of one replica."""

    count: int = Field(0, ge=0, le=1024, description="How many devices one replica gets; all of them or none.")
    kind: Text = Field("", max_length=63, description='The kind of device, such as gpu or npu; "" is any.')
    model: Text = Field("", max_length=128, description='The model, such as A100 or described-a100; "" is any.')
    ids: list[Annotated[Text, Field(min_length=1, max_length=128)]] = Field(
        default_factory=list,
        max_length=1024,
        description="Named devices: indexes within the node or ids; each replica gets exactly these of its node.",
    )
    bitmap: Annotated[str, Field(max_length=20), BeforeValidator(_bitmap)] = Field(
        "",
        description="The same as bits, such as 0x33 for the devices 0, 1, 4 and 5; its bits and count agree; "
        "0 is by count.",
    )
    share: Share = Field(default_factory=Share, description="A part of one device instead of whole ones.")

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, value: Any) -> Any:
        """Set an omitted count: the number of named devices, or 1 for a share."""
        if not isinstance(value, dict) or "count" in value:
            return value
        if isinstance(ids := value.get("ids"), list) and ids:
            return value | {"count": len(ids)}
        if isinstance(bitmap := written(value.get("bitmap")), str):
            try:
                return value | {"count": bitmap_bits(bitmap).bit_count()}
            except ValueError:
                return value
        if isinstance(value.get("share"), dict):
            return value | {"count": 1}
        return value

    @property
    def millis(self) -> int:
        """Thousandths of devices of one replica."""
        return self.count * (self.share.percent * DEVICE // 100 if self.share.asked else DEVICE)

    @property
    def bits(self) -> int:
        """The bitmap as an integer."""
        return bitmap_bits(self.bitmap)

    @property
    def named(self) -> tuple[str, ...]:
        """Indexes or ids of the named devices, from `ids` or the bitmap."""
        bits = self.bits
        return tuple(self.ids) or tuple(str(at) for at in range(bits.bit_length()) if bits >> at & 1)


class Expression(SpecModel):
    """A requirement on a node's label; a node must meet all of them."""

    key: LabelKey = Field(description="The label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        "In", description="As in Kubernetes; Gt and Lt compare whole numbers."
    )
    values: list[Annotated[Text, Field(max_length=63)]] = Field(
        default_factory=list, max_length=1000, description="One of them (In), none of them (NotIn), or the one bound."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Expression:
        count = len(self.values)
        if self.operator in _COMPARED and (count != 1 or not _NUMBER.fullmatch(self.values[0])):
            raise refusal(f"{self.operator} compares with one whole number, got {describe(self.values)}")
        if self.operator in _VALUED and not count:
            raise refusal(f"{self.operator} needs values, got none")
        if self.operator not in (*_COMPARED, *_VALUED) and count:
            raise refusal(f"{self.operator} takes no values, got {describe(self.values)}")
        return self


class Toleration(SpecModel):
    """A taint of nodes that the tasks tolerate, as in Kubernetes."""

    key: Annotated[Text, Field(max_length=317)] = Field("", description='The taint\'s key; "" with Exists is any.')
    operator: Literal["Equal", "Exists"] = Field("Equal", description="Whether the value matters.")
    value: Annotated[Text, Field(max_length=63)] = Field("", description="The taint's value.")
    effect: Literal["", "NoSchedule", "NoExecute", "PreferNoSchedule"] = Field(
        "", description='The taint\'s effect; "" is any.'
    )
    toleration_seconds: int = Field(
        -1,
        ge=-1,
        le=10**9,
        description="How long the tasks stay on a node with a NoExecute taint before they yield; -1: forever.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Toleration:
        if self.operator == "Equal" and not self.key:
            raise refusal("Equal needs a key; Exists without one tolerates every taint")
        if self.operator == "Exists" and self.value:
            raise refusal(f"Exists takes no value, got {describe(self.value)}")
        if self.toleration_seconds >= 0 and self.effect != "NoExecute":
            raise refusal("tolerationSeconds is for the effect NoExecute, which has to be named with it")
        return self


NodeName = Annotated[Text, Field(min_length=1, max_length=317)]


class NodeRules(SpecModel):
    """Which nodes the tasks may be on."""

    include: list[NodeName] = Field(
        default_factory=list, max_length=10_000, description="Only these nodes, with or without the engine's name."
    )
    exclude: list[NodeName] = Field(default_factory=list, max_length=10_000, description="None of these nodes.")
    expressions: list[Expression] = Field(
        default_factory=list, max_length=100, description="What their labels have to be, besides nodeSelector."
    )
    tolerations: list[Toleration] = Field(
        default_factory=list, max_length=100, description="The taints that the tasks do not mind."
    )
