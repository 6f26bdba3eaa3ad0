"""The Cluster document: the machines of one engine and the queues that share them.

```yaml
kind: Cluster
node: {cpu: 4, memory: 8Gi, devices: {count: 4, model: described-a100, cells: {pcie-switch: 2}}}
racks:
  rack1: {nodes: [node1, node2]}
  rack2: {nodes: {node3: {}, node4: {devices: 8}}}
queues:
  research: {weight: 2}
```

Machines may be described without existing, to try policies and gangs without a data centre.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from corral.kernel.amounts import MAX_COUNT
from corral.spec.abbreviations import ShortCpu
from corral.spec.amount_fields import with_amounts
from corral.spec.base import (
    LabelKey,
    Labels,
    LabelValue,
    Memory,
    Name,
    QueueName,
    ResourceName,
    SpecModel,
    Text,
    refusal,
)
from corral.spec.cell_types import CellNames, CellType, DeviceModel, NodeNames, ShortCell, TypeKey
from corral.spec.device_topology import Wiring
from corral.spec.errors import Path, SpecError, describe
from corral.spec.expanded_machines import Machines, NodeDescription
from corral.spec.link_table import read_table
from corral.spec.node_expansion import machines_of
from corral.spec.placement_rules import OWN_FIELDS
from corral.spec.queue import QueueDocument, QueueShape
from corral.spec.quota_check import in_order, queue_findings
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import Source, parse_source

DEFAULT_LEVELS = ("block", "rack", "node", "numa", "nvlink", "pcie-switch", "device")
"""The levels of the cell tree, outermost first, of documents that name none."""

LevelName = Annotated[Name, Field(max_length=40)]


def _count(value: Any) -> Any:
    return {"count": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _names(value: Any) -> Any:
    if isinstance(value, str):
        return {value: {}}
    if isinstance(value, list):
        named: dict[str, Any] = {}
        for name in value:
            if not isinstance(name, str):
                raise refusal(f"expected nodes' names, got {describe(name)}")
            if name in named:
                raise refusal(f"{describe(name)} is there twice; nodes have unique names")
            named[name] = {}
        return named
    return {name: {} if shape is None else shape for name, shape in value.items()} if isinstance(value, dict) else value


class Slices(SpecModel):
    """The slices of one device (NVIDIA's MIG); a device is given whole or in slices."""

    count: int = Field(ge=1, le=64, description="How many slices one device makes.")
    model: Text = Field(
        min_length=1, max_length=128, description="Their model, which jobs ask for, such as mig-1g.10gb."
    )
    memory: Memory = Field("0", min_length=1, description="The memory of each; 0 is unsaid.")


class DescribedDevices(SpecModel):
    """Devices declared by the document, to try policies: processes are real, and see no real device.

    With `source: found` they are the machine's own devices, and the fields here state what it must report.
    """

    source: Literal["described", "found"] = Field(
        "described",
        description="found: the devices are those that the machine reports. A machine that reports other devices is marked "
        "and takes no tasks until both agree.",
    )
    count: int = Field(ge=0, le=1024, description="How many devices the node has.")
    kind: Text = Field("gpu", min_length=1, max_length=63, description="Their kind, such as gpu or npu.")
    model: Text = Field("described", min_length=1, max_length=128, description="Their model; jobs may ask for it.")
    memory: Memory = Field("0", min_length=1, description="The memory of each, such as 80Gi; 0 is unsaid.")
    cells: dict[LevelName, Annotated[int, Field(ge=1, le=1024)]] = Field(
        default_factory=dict,
        max_length=16,
        description="Devices in each cell of a level below the node, such as {numa: 4, pcie-switch: 2}.",
    )
    slices: Slices | None = Field(None, description="What each of them can be cut into; none is nothing.")
    matrix: Annotated[str, Field(max_length=200_000)] = Field(
        "", description="How they are linked, as `nvidia-smi topo -m` prints it; cells (and count) follow from it."
    )

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, value: Any) -> Any:
        """Take the count from a matrix; devices with `source: found` need none."""
        if not isinstance(value, dict) or "count" in value:
            return value
        if isinstance(value.get("matrix"), str):
            return {**value, "count": len(_wiring(value["matrix"]).names)}
        return {**value, "count": 0} if value.get("source") == "found" else value

    @model_validator(mode="after")
    def _wired(self) -> DescribedDevices:
        if not self.matrix:
            return self
        if len(self.wiring.names) != self.count:
            raise refusal(f"the matrix has {len(self.wiring.names)} devices, and count says {self.count}")
        if self.cells or self.slices:
            raise refusal("expected either matrix or cells and slices, got both")
        return self

    @cached_property
    def wiring(self) -> Wiring:
        """The links between the devices; empty without a matrix."""
        return _wiring(self.matrix) if self.matrix else Wiring((), (), ())


def _wiring(matrix: str) -> Wiring:
    try:
        return read_table(matrix, "matrix")
    except SpecError as error:
        raise refusal(error.message) from None


class TaintShape(SpecModel):
    """A taint of a node, which keeps off tasks that do not tolerate it, as in Kubernetes."""

    key: LabelKey = Field(description="What tolerations name.")
    value: LabelValue = Field("", description="What they may compare.")
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] = Field(
        "NoSchedule", description="Whether others are kept off, also sent away, or only placed elsewhere if possible."
    )


class _NamedAmounts(SpecModel):
    """The amounts of a node that code names; the table of amounts has the others."""

    cpu: ShortCpu = Field("0", min_length=1, description="Processors that tasks share, such as 4; 0 is the machine's.")
    memory: Memory = Field(
        "0", min_length=1, description='Memory that tasks share, such as 8Gi; "0" is the machine\'s.'
    )
    shm: Memory = Field("0", min_length=1, description='Shared memory, such as 1Gi; "0" is the machine\'s.')
    devices: Annotated[DescribedDevices, BeforeValidator(_count, json_schema_input_type=int | DescribedDevices)] = (
        Field(
            default_factory=lambda: DescribedDevices(count=0), description="The described devices: a number, or more."
        )
    )
    ports: int = Field(
        0, ge=0, le=65_535, description="How many ports tasks can be given; 0 is as many as the engine's range has."
    )


if TYPE_CHECKING:
    _Amounts = _NamedAmounts
else:
    _Amounts = with_amounts(_NamedAmounts, "of_node")


class NodeShape(_Amounts):
    """The resources of a node; fields that it leaves out come from `node` at the top."""

    other: Annotated[dict[ResourceName, Annotated[int, Field(ge=0, le=MAX_COUNT)]], Field(max_length=100)] = Field(
        default_factory=dict, description="Any other resource by its name, such as {licences: 4}; jobs ask for it so."
    )
    labels: Labels = Field(default_factory=dict, description="Labels that a job's nodeSelector can name.")
    taints: list[TaintShape] = Field(
        default_factory=list, max_length=100, description="Why it takes only tasks that tolerate it."
    )

    @field_validator("other")
    @classmethod
    def _has_no_own_field(cls, value: dict[str, int]) -> dict[str, int]:
        for name in sorted(OWN_FIELDS & value.keys()):
            raise refusal(f"{name} has a field of its own")
        return value


class FreeNode(NodeShape):
    """A node outside the racks; it may name its cells itself."""

    cells: dict[LevelName, CellNames] = Field(
        default_factory=dict, max_length=16, description="The cells above it by level, such as {rack: rack3}."
    )


Nodes = Annotated[
    dict[NodeNames, NodeShape],
    BeforeValidator(_names, json_schema_input_type=NodeNames | list[NodeNames] | dict[NodeNames, NodeShape | None]),
    Field(max_length=100_000),
]
FreeNodes = Annotated[
    dict[NodeNames, FreeNode],
    BeforeValidator(_names, json_schema_input_type=NodeNames | list[NodeNames] | dict[NodeNames, FreeNode | None]),
    Field(max_length=100_000),
]


class Rack(SpecModel):
    """A rack: nodes that are close to each other."""

    nodes: Nodes = Field(
        description="The rack's nodes: names, or names with what each has; many at once as node[1-16]."
    )


class Block(SpecModel):
    """A block: racks that are close to each other."""

    racks: dict[NodeNames, Rack] = Field(
        min_length=1, description="The block's racks by name; those of several blocks at once are shared out evenly."
    )


class ClusterDocument(SpecModel):
    """The machines of one engine and the queues that share them."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Cluster"] = Field("Cluster", description="Always Cluster.")
    engine: Name = Field("local", description="The engine whose machines these are.")
    levels: list[LevelName] = Field(
        default_factory=lambda: list(DEFAULT_LEVELS),
        min_length=2,
        max_length=16,
        description="The levels of the cell tree, outermost first; node and device are always among them.",
    )
    node: NodeShape = Field(default_factory=NodeShape, description="What every node has unless it says otherwise.")
    blocks: dict[NodeNames, Block] = Field(
        default_factory=dict, max_length=10_000, description="Blocks of racks by name."
    )
    racks: dict[NodeNames, Rack] = Field(
        default_factory=dict,
        max_length=10_000,
        description="Racks in no block, by name; `rack[1-512]` with `node[1-8192]` shares the nodes out evenly.",
    )
    free_nodes: FreeNodes = Field(
        default_factory=dict, alias="nodes", description="Nodes in no rack, or in cells they name themselves."
    )
    cell_types: dict[TypeKey, CellType] = Field(
        default_factory=dict,
        max_length=1000,
        description="Types of cells by name, for clusters that are no equal racks.",
    )
    models: dict[TypeKey, DeviceModel] = Field(
        default_factory=dict, max_length=1000, description="What is to be known of the device models in cellTypes."
    )
    cells: list[ShortCell] = Field(
        default_factory=list, max_length=100_000, description="The cells there are, of these types."
    )
    level_labels: dict[LevelName, LabelKey] = Field(
        default_factory=dict,
        max_length=16,
        description="Labels whose value names the cell of a node without another rule, such as "
        "{rack: topology.kubernetes.io/rack}; a level that is not among levels is wider than they are.",
    )
    queue_shapes: dict[QueueName, QueueShape] = Field(
        default_factory=dict,
        alias="queues",
        max_length=10_000,
        description="The queues by name; default always exists.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> ClusterDocument:
        _, found = self._machines
        found = found + queue_findings(self.queue_shapes)
        if found:
            raise PydanticCustomError("inconsistent", "the parts do not fit together", {"findings": found})
        return self

    @property
    def nodes(self) -> tuple[NodeDescription, ...]:
        """All nodes, in document order, complete; empty when the document describes none (the machine as found)."""
        return self.machines.nodes

    @property
    def machines(self) -> Machines:
        """All nodes, levels, pinned cells and cell types, expanded."""
        return self._machines[0]

    @cached_property
    def _machines(self) -> tuple[Machines, list[tuple[Path, str]]]:
        return machines_of(self)

    @property
    def queues(self) -> tuple[QueueDocument, ...]:
        """Each queue as its own document, parents before children; always includes `default`."""
        named = (
            {"default": QueueShape()} | self.queue_shapes if "default" not in self.queue_shapes else self.queue_shapes
        )
        return tuple(QueueDocument(name=name, **dict(shape)) for name, shape in in_order(named).items())


def load_cluster(document: str | bytes | Mapping[str, Any], *, filename: str = "cluster.yaml") -> ClusterDocument:
    """Read a cluster from YAML or JSON text, or from parsed data; also reads HiveD's own configuration.

    Raises SpecError with every problem, each with file, line and column when text was given.
    """
    if isinstance(document, str | bytes):
        source = parse_source(document, filename, frozenset({"labels"}))
    else:
        source = Source(filename, dict(document))
    if isinstance(source.data, dict) and "kind" not in source.data:
        from corral.spec.hived import configuration, importer

        if configuration.is_hived(source.data):
            return importer.cluster_of(configuration.hived_of(source), queues=True, filename=filename)
    if not isinstance(source.data, dict):
        at: Path = ()
        raise SpecError([source.problem(at, f"expected a cluster (a mapping of fields), got {describe(source.data)}")])
    try:
        return ClusterDocument.model_validate(source.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, ClusterDocument, source)) from None
