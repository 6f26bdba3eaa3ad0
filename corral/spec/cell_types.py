"""Cell types and cells: the notation for clusters that are not racks of equal nodes.

```yaml
cellTypes:
  v100-switch: {level: pcie-switch, child: V100, count: 2}      # V100 is not a type, so it is a device model
  v100-socket: {level: numa, child: v100-switch, count: 2}
  dgx1: {child: v100-socket, count: 2, node: true}
  dgx1-rack: {level: rack, child: dgx1, count: 16}
cells:
- {type: dgx1-rack, name: "rack[001-512]", nodes: "node[0001-8192]"}
- {type: dgx1, name: old1, devices: 4-11, pinned: ours}
```

It covers several models, chains of any depth and odd device numbers. The model is HiveD's (OSDI 2020, section 3): every
cell of a type has the same number of the same child.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from corral.spec import hostlists
from corral.spec.abbreviations import ShortCpu
from corral.spec.base import Labels, Memory, SpecModel, Text, refusal
from corral.spec.errors import describe
from corral.spec.yaml_scalars import written

NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
CELL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?", re.ASCII)
_BRACKETS: Final = re.compile(r"\[[^\[\]]*\]")


def _named(pattern: re.Pattern[str], meaning: str) -> BeforeValidator:
    """Validate one name, or many in brackets, without expanding them."""

    def check(value: Any) -> Any:
        text = written(value)
        bad = (
            isinstance(text, str)
            and text
            and any(not pattern.fullmatch(_BRACKETS.sub("0", part)) for part in hostlists.parts(text))
        )
        if bad:
            raise refusal(f"expected {meaning}, got {describe(text)}")
        return text

    return BeforeValidator(check)


NodeNames = Annotated[
    str,
    Field(min_length=1, max_length=253),
    _named(NODE_NAME, "lower-case letters, digits, '-' and '.', or many such names as node[1-16]"),
]
"""A node's name as its engine knows it, or many: `node[0001-8192]`."""
CellNames = Annotated[
    str, Field(max_length=253), _named(CELL_NAME, "letters, digits, '-', '_', '.' and '/', or many as rack[1-16]")
]
"""A cell's name, or many; with "" Corral names the cell."""
TypeName = Annotated[Text, Field(max_length=200)]
InnerLevel = Annotated[str, Field(max_length=63, pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")]


class NodeAmounts(SpecModel):
    """The amounts of a node besides devices; fields that it leaves out come from `node` at the top."""

    cpu: ShortCpu = Field("0", min_length=1, description="Processors that tasks share, such as 4; 0 is the machine's.")
    memory: Memory = Field(
        "0", min_length=1, description='Memory that tasks share, such as 8Gi; "0" is the machine\'s.'
    )
    shm: Memory = Field("0", min_length=1, description='Shared memory, such as 1Gi; "0" is the machine\'s.')
    labels: Labels = Field(default_factory=dict, description="Labels that a job's nodeSelector can name.")


class DeviceModel(SpecModel):
    """Kind and memory of a device model."""

    kind: Text = Field("gpu", min_length=1, max_length=63, description="Its kind, such as gpu or npu.")
    memory: Memory = Field("0", min_length=1, description="The memory of each, such as 80Gi; 0 is unsaid.")


def _node(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    return value


class CellType(SpecModel):
    """A type of cell: its child type and their number."""

    child: TypeName = Field(
        min_length=1, description="The type of its children; what names no type is the model of a device."
    )
    count: int = Field(1, ge=1, le=100_000, description="How many children each has.")
    level: InnerLevel = Field(
        "",
        description="The level its cells are of, such as rack or pcie-switch, that jobs can ask for; the type's own name "
        "in lower case if unsaid.",
    )
    node: Annotated[NodeAmounts | None, BeforeValidator(_node, json_schema_input_type=bool | NodeAmounts | None)] = (
        Field(None, description="Whether each is a machine: true, or what it has besides devices.")
    )


def _devices(value: Any) -> Any:
    text = written(value)
    if not isinstance(text, str):
        return value
    try:
        return hostlists.expand_numbers(text)
    except ValueError as error:
        raise refusal(str(error)) from None


def _list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _entry(value: Any) -> Any:
    text = written(value)
    return {"name": text} if isinstance(text, str) else value


class Cell(SpecModel):
    """A cell, or many equal ones; fields that it leaves out follow from its type."""

    type: TypeName = Field("", description="Its type; a child's follows from its parent's.")
    name: CellNames = Field(
        "",
        description="Its name; of a node the machine's; many cells at once as rack[1-16]. Below the node it is for you.",
    )
    nodes: Annotated[
        list[NodeNames],
        BeforeValidator(_list, json_schema_input_type=str | list[str]),
        Field(max_length=100_000),
    ] = Field(default_factory=list, description="The names of all nodes inside it in order, such as node[0001-8192].")
    devices: Annotated[
        list[Annotated[int, Field(ge=0, lt=hostlists.MOST_DEVICES)]],
        BeforeValidator(_devices, json_schema_input_type=str | int | list[int]),
        Field(max_length=hostlists.MOST_DEVICES),
    ] = Field(
        default_factory=list,
        description="The numbers of its devices in their node, in order, such as 8-15; from 0 if unsaid.",
    )
    pinned: Text = Field("", max_length=253, description="A name under which one queue can own exactly this cell.")
    children: list[ShortCell] = Field(
        default_factory=list, max_length=100_000, description="Its children, all of them, where they need words."
    )


ShortCell = Annotated[Cell, BeforeValidator(_entry, json_schema_input_type=str | Cell)]
TypeKey = Annotated[str, Field(min_length=1, max_length=200)]
Cell.model_rebuild()
