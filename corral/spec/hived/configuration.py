"""Read HiveD's own YAML configuration, so that its clusters load unchanged.

```yaml
physicalCluster:
  cellTypes:
    V100-SWITCH: {childCellType: V100, childCellNumber: 4}
    V100-NODE: {childCellType: V100-SWITCH, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
  - {cellType: V100-NODE, cellAddress: worker1, pinnedCellId: for-prod}
  - {cellType: V100-NODE, cellAddress: worker2}
virtualClusters:
  prod: {pinnedCells: [{pinnedCellId: for-prod}]}
  test: {virtualCells: [{cellType: V100-NODE.V100-SWITCH, cellNumber: 2}]}
```

A cell type that `cellTypes` does not define is a leaf: one device. A *chain* is a cell type at the top of
`physicalCells`, with everything below it. Some files wrap the same text in `hivedscheduler: {config: |...}`. The names
of older versions (`gpuTypes`, `reservedCells`, `reservationId`) are read too. Source: HiveD, pkg/api and its user manual.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from corral.spec.base import SpecModel, Text
from corral.spec.errors import Path, SpecError, describe
from corral.spec.go_json import EACH, Shape, as_go_reads, field_of
from corral.spec.hived import validation as rules
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import Source, parse_source

WRAPPER: Final = "hivedscheduler"
"""Key of a services configuration that holds HiveD's text, as `config`."""


def _list(value: Any) -> Any:
    return [] if value is None else value


def _mapping(value: Any) -> Any:
    return {} if value is None else value


TypeName = Annotated[Text, Field(min_length=1, max_length=200)]
CellId = Annotated[Text, Field(max_length=200)]


class HivedCellType(SpecModel):
    """A type of cell: the number and type of its equal children, and whether it is a node."""

    child_cell_type: TypeName = Field(description="The type of its children.")
    child_cell_number: int = Field(ge=1, le=100_000, description="How many children it has.")
    is_node_level: bool = Field(False, description="Whether such a cell is exactly one node.")


class HivedSku(SpecModel):
    """Devices, CPU and memory of one unit of a leaf type; other programs read it, the scheduler does not."""

    model_config = ConfigDict(extra="allow")

    gpu: int = Field(0, ge=0, description="Devices of one unit.")
    cpu: Text = Field("0", description="Processors of one unit.")
    memory: Text = Field("0", description="Memory of one unit.")


class HivedPhysicalCell(SpecModel):
    """An existing cell; its address is one part of the path, and a node's address is the node's name."""

    cell_type: Annotated[Text, Field(max_length=200)] = Field("", description="Its type; below the top it is implied.")
    cell_address: CellId = Field("", description="A node's name, a device's index, or a number; empty is its place.")
    pinned_cell_id: CellId = Field(
        "",
        validation_alias=AliasChoices("pinnedCellId", "reservationId"),
        description="A name under which one virtual cluster can own exactly this cell.",
    )
    cell_children: Annotated[list[HivedPhysicalCell], BeforeValidator(_list)] = Field(
        default_factory=list, max_length=100_000, description="Its children, all or none of them."
    )


class HivedVirtualCell(SpecModel):
    """Cells that a virtual cluster owns; physical ones are bound when they are used."""

    cell_type: TypeName = Field(description="The chain, the types below it, and last the type of the cells.")
    cell_number: int = Field(ge=0, le=1_000_000, description="How many such cells it owns.")


class HivedPinnedCell(SpecModel):
    """A physical cell that a virtual cluster always owns."""

    pinned_cell_id: Annotated[Text, Field(min_length=1, max_length=200)] = Field(
        validation_alias=AliasChoices("pinnedCellId", "reservationId"), description="The physical cell's pinnedCellId."
    )


class HivedVirtualCluster(SpecModel):
    """A tenant and the cells that it owns."""

    virtual_cells: Annotated[list[HivedVirtualCell], BeforeValidator(_list)] = Field(
        default_factory=list, max_length=10_000, description="Cells by type and number."
    )
    pinned_cells: Annotated[list[HivedPinnedCell], BeforeValidator(_list)] = Field(
        default_factory=list,
        max_length=10_000,
        validation_alias=AliasChoices("pinnedCells", "reservedCells"),
        description="Cells by pinnedCellId.",
    )


class HivedPhysicalCluster(SpecModel):
    """The machines as cells."""

    sku_types: Annotated[dict[str, HivedSku], BeforeValidator(_mapping)] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("skuTypes", "gpuTypes"),
        description="What comes with a device of each leaf type.",
    )
    cell_types: Annotated[dict[str, HivedCellType], BeforeValidator(_mapping)] = Field(
        default_factory=dict, max_length=10_000, description="Every type that is not a leaf."
    )
    physical_cells: Annotated[list[HivedPhysicalCell], BeforeValidator(_list)] = Field(
        default_factory=list, max_length=100_000, description="The cells at the top."
    )


class HivedCluster(SpecModel):
    """HiveD's configuration; it keeps every rule of `hived_rules`."""

    physical_cluster: HivedPhysicalCluster = Field(description="The machines as cells.")
    virtual_clusters: Annotated[dict[str, HivedVirtualCluster], BeforeValidator(_mapping)] = Field(
        default_factory=dict, max_length=10_000, description="The tenants by name."
    )
    kube_api_server_address: Text = Field("", description="HiveD's own; not read.")
    kube_config_file_path: Text = Field("", description="HiveD's own; not read.")
    web_server_address: Text = Field("", description="HiveD's own; not read.")
    force_pod_bind_threshold: int = Field(3, description="HiveD's own; not read.")
    waiting_pod_scheduling_block_milli_sec: int = Field(0, description="HiveD's own; not read.")
    quota_exclude_vcs: list[Text] = Field(
        default_factory=list, alias="quotaExcludeVCs", max_length=10_000, description="HiveD's own; not read."
    )

    @model_validator(mode="after")
    def _possible(self) -> HivedCluster:
        found = rules.findings(self)
        if found:
            raise PydanticCustomError("inconsistent", "the parts do not fit together", {"findings": found})
        return self


_CELL: Final[dict[str, Any]] = dict.fromkeys(("cellType", "cellAddress", "pinnedCellId", "reservationId"))
_CELL["cellChildren"] = _CELL
_PIN: Final = dict.fromkeys(("pinnedCellId", "reservationId"))
_SKUS: Final = {EACH: dict.fromkeys(("gpu", "cpu", "memory"))}
_SHAPE: Final[Shape] = {
    "physicalCluster": {
        "skuTypes": _SKUS,
        "gpuTypes": _SKUS,
        "cellTypes": {EACH: dict.fromkeys(("childCellType", "childCellNumber", "isNodeLevel"))},
        "physicalCells": _CELL,
    },
    "virtualClusters": {
        EACH: {
            "virtualCells": dict.fromkeys(("cellType", "cellNumber")),
            "pinnedCells": _PIN,
            "reservedCells": _PIN,
        }
    },
    **dict.fromkeys(
        (
            "kubeApiServerAddress", "kubeConfigFilePath", "webServerAddress", "forcePodBindThreshold",
            "waitingPodSchedulingBlockMilliSec", "quotaExcludeVCs",
        )
    ),
}  # fmt: skip
"""The structs of the configuration, in Go's sense; all other keys are names that users chose."""


def load_hived(document: str | bytes | Mapping[str, Any], *, filename: str = "hivedscheduler.yaml") -> HivedCluster:
    """Read the cells and virtual clusters from HiveD's YAML, or from parsed data.

    Raises SpecError with every problem, each with its path, and with line and column when text was given: invalid
    cells, quotas above the cluster, cycles between types, duplicate addresses, unknown types and pinned cells.
    """
    return hived_of(_source(document, filename))


def is_hived(data: Mapping[str, Any]) -> bool:
    """Whether data is HiveD's configuration, bare or wrapped."""
    return "kind" not in data and (WRAPPER in data or is_bare_hived(data))


def is_bare_hived(data: Mapping[str, Any]) -> bool:
    """Whether data has HiveD's own top-level keys, in any case, as Go reads them."""
    return any(field_of(key, ("physicalCluster",)) for key in data)


def hived_of(source: Source) -> HivedCluster:
    """The configuration in parsed text; raises SpecError as `load_hived` does."""
    filename = source.filename
    if isinstance(source.data, dict) and isinstance(source.data.get(WRAPPER), dict):
        source = _source(source.data[WRAPPER].get("config"), filename)
    if not isinstance(source.data, dict):
        at: Path = ()
        raise SpecError([source.problem(at, f"expected HiveD's configuration, got {describe(source.data)}")])
    source = as_go_reads(source, _SHAPE)
    try:
        return HivedCluster.model_validate(source.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, HivedCluster, source)) from None


def _source(document: object, filename: str) -> Source:
    if isinstance(document, str | bytes):
        return parse_source(document, filename)
    return Source(filename, dict(document) if isinstance(document, Mapping) else document)
