"""The Devices document: devices without a vendor's driver that `corral device-plugin` publishes to Kubernetes.

```yaml
kind: Devices
devices:
- {kind: npu, model: a2, count: 4, cells: {numa: 2}, pcieRoots: [pci0000:00, pci0000:80], visible: NPU_VISIBLE_DEVICES}
- {kind: fpga, model: u250, nodes: ["node[1-4]"], deviceNodes: [{path: /dev/xdma$(number)}], mounts: [{host: /opt/fpga}]}
```
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator

from corral.kernel.units import parse_memory
from corral.spec import hostlists
from corral.spec.base import PATTERN_MEANINGS, EnvValue, Memory, Name, OptionalEnvName, SpecModel, Text, refusal
from corral.spec.cell_types import NodeNames
from corral.spec.cluster import LevelName
from corral.spec.errors import SpecError, describe
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import parse_source

MOST_DEVICES: Final = 1024
"""Maximum devices of one node."""
DEFAULT_DRIVER: Final = "devices.corral.dev"
_DRIVER: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_PATH: Final = r"^/[^\x00]*$"
_IDENTIFIER: Final = "^[A-Za-z_][A-Za-z0-9_]*$"
_PERMISSIONS: Final = "^(r?w?m?)$"
_OPTIONAL_PATH: Final = r"^(/[^\x00]*)?$"
_VARIABLE: Final = r"^[A-Za-z_]([A-Za-z0-9_]|\$\((index|number)\))*$"
PATTERN_MEANINGS.update(
    {
        _DRIVER: "a domain name in lower case, such as npu.example.com",
        _PATH: "an absolute path",
        _IDENTIFIER: "letters, digits and '_', not beginning with a digit",
        _PERMISSIONS: "some of r, w and m, in this order",
        _OPTIONAL_PATH: "an absolute path, or nothing",
        _VARIABLE: "letters, digits, '_', $(index) and $(number), not beginning with a digit",
    }
)
RESERVED: Final = frozenset({"kind", "model", "index", "levels", "healthy", "healthReason"})
"""Attribute names that the driver publishes itself, besides those of levels."""

AbsolutePath = Annotated[str, Field(min_length=1, max_length=4096, pattern=_PATH)]
OptionalPath = Annotated[str, Field(max_length=4096, pattern=_OPTIONAL_PATH)]
Variable = Annotated[str, Field(min_length=1, max_length=256, pattern=_VARIABLE)]
ShortText = Annotated[Text, Field(min_length=1, max_length=64)]
AttributeName = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=_IDENTIFIER)]


class DeviceNode(SpecModel):
    """A device file given to containers with the device."""

    path: AbsolutePath = Field(description="Where containers see it; `$(index)` and `$(number)` are replaced.")
    host: OptionalPath = Field(
        "", description="Where the machine has it, if elsewhere. A device whose file is absent is unhealthy."
    )
    permissions: Annotated[str, Field(max_length=3, pattern=_PERMISSIONS)] = Field(
        "rw", description="What containers may do with it: r (read), w (write), m (make)."
    )


class DeviceMount(SpecModel):
    """A file or folder of the machine mounted into containers with the device."""

    host: AbsolutePath = Field(description="Where the machine has it; `$(index)` and `$(number)` are replaced.")
    path: OptionalPath = Field("", description="Where containers see it, if elsewhere.")
    read_only: bool = Field(True, description="Whether containers may only read it.")


class Broken(SpecModel):
    """A device that is marked unhealthy."""

    number: int = Field(ge=0, lt=MOST_DEVICES, description="Which of the group it is, from 0.")
    reason: ShortText = Field("unhealthy", description="What is wrong with it.")


class DeviceGroup(SpecModel):
    """Equal devices of a node."""

    kind: Name = Field("gpu", description="Their kind, such as fpga or npu; devices are called KIND-INDEX.")
    model: ShortText = Field("described", description="Their model; jobs may ask for it.")
    count: int = Field(1, ge=1, le=MOST_DEVICES, description="How many a node has.")
    memory: Memory = Field("0", min_length=1, description="The memory of each, such as 80Gi; 0 is unsaid.")
    nodes: list[NodeNames] = Field(
        default_factory=list, max_length=1000, description="Which nodes have them, such as node[1-4]; none said: all."
    )
    cells: dict[LevelName, Annotated[int, Field(ge=1, le=MOST_DEVICES)]] = Field(
        default_factory=dict,
        max_length=8,
        description="Devices in each cell of a level below the node, outermost first, such as {numa: 4, pcie-switch: 2}.",
    )
    pcie_roots: list[ShortText] = Field(
        default_factory=list,
        max_length=MOST_DEVICES,
        description="The PCIe roots that they are under, such as pci0000:00, shared out evenly in order.",
    )
    attributes: dict[AttributeName, ShortText] = Field(
        default_factory=dict, max_length=12, description="Further attributes that claims can select by."
    )
    visible: OptionalEnvName = Field(
        "", description="A variable that tells containers the numbers of theirs, such as NPU_VISIBLE_DEVICES."
    )
    env: dict[Variable, EnvValue] = Field(
        default_factory=dict,
        max_length=100,
        description="Variables for containers; `$(index)` and `$(number)` are replaced, in names too.",
    )
    device_nodes: list[DeviceNode] = Field(default_factory=list, max_length=64, description="The device files of each.")
    mounts: list[DeviceMount] = Field(
        default_factory=list, max_length=64, description="What of the machine containers see with it."
    )
    unhealthy: list[Broken] = Field(
        default_factory=list, max_length=MOST_DEVICES, description="Those that are broken: no container gets them."
    )

    @field_validator("nodes")
    @classmethod
    def _names_nodes(cls, value: list[str]) -> list[str]:
        try:
            hostlists.expand_all(value)
        except ValueError as error:
            raise refusal(str(error)) from None
        return value

    @model_validator(mode="after")
    def _fits(self) -> DeviceGroup:
        sizes = [self.count, *self.cells.values()]
        for outer, size, level in zip(sizes, sizes[1:], self.cells, strict=False):
            if outer % size:
                raise refusal(f"{level}: cells of {size} devices do not divide the {outer} around them evenly")
        if self.pcie_roots and self.count % len(self.pcie_roots):
            raise refusal(f"{self.count} devices cannot be shared out evenly under {len(self.pcie_roots)} PCIe roots")
        for path, host in self._places():
            if "$(" in host and "$(" not in path and self.count > 1:
                raise refusal(f"{describe(path)}: containers with two devices would see one; write $(number) here too")
        taken = RESERVED | {attribute_of(level) for level in self.cells}
        for name in sorted(taken & self.attributes.keys()):
            raise refusal(f"the attribute {name} is published already")
        for broken in self.unhealthy:
            if broken.number >= self.count:
                raise refusal(f"unhealthy names device {broken.number}, and there are {self.count}")
        return self

    def _places(self) -> list[tuple[str, str]]:
        """(path in containers, path on the machine) of every device file and mount."""
        nodes = [(node.path, node.host or node.path) for node in self.device_nodes]
        return nodes + [(mount.path or mount.host, mount.host) for mount in self.mounts]

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory of each device; 0 when not given."""
        return parse_memory(self.memory)


class DevicesDocument(SpecModel):
    """The devices that `corral device-plugin` publishes, and the files and variables that containers with each get."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Devices"] = Field("Devices", description="Always Devices.")
    driver: Annotated[str, Field(min_length=1, max_length=63, pattern=_DRIVER)] = Field(
        DEFAULT_DRIVER, description="The DRA driver's name, which claims and slices carry."
    )
    devices: list[DeviceGroup] = Field(default_factory=list, max_length=1000, description="Groups of equal devices.")

    def of_node(self, node: str) -> list[DeviceGroup]:
        """The groups that a node has, in the order written."""
        return [group for group in self.devices if not group.nodes or _among(node, tuple(group.nodes))]


@lru_cache(maxsize=1024)
def _among(node: str, names: tuple[str, ...]) -> bool:
    """Whether the names include `node`; cached, because it is asked every few seconds for up to 200,000 names."""
    return node in hostlists.expand_all(list(names))


def attribute_of(level: str) -> str:
    """The attribute with a device's cell at a level: `pcie-switch` becomes `pcieSwitch`."""
    first, *others = level.split("-")
    return first + "".join(other.capitalize() for other in others)


def load_devices(text: str | bytes, *, filename: str = "devices.yaml") -> DevicesDocument:
    """Read a Devices document from YAML or JSON text.

    Raises SpecError with every problem, each with line and column.
    """
    source = parse_source(text, filename, frozenset({"env", "attributes"}))
    data: Any = source.data
    if not isinstance(data, dict):
        raise SpecError([source.problem((), f"expected devices (a mapping of fields), got {describe(data)}")])
    try:
        return DevicesDocument.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, DevicesDocument, source)) from None
