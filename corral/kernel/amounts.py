"""The table of the amounts that a task takes of its node: processors, memory, disk space and others.

One row declares everything about an amount: how documents write it, the fields of job and cluster documents, the words
of messages, how a smaller amount is proposed, and the resource that each kind of engine asks for. A row without a
`column` needs no other code: its fields are made by `corral.spec.amount_fields`, and the scheduler counts it by name.

A resource that a job names under `resources.other` has no row. `amount_named` describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from corral.kernel.units import format_cpu, format_memory, parse_cpu, parse_memory

_MEBI, _GIBI = 2**20, 2**30
_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


class Unit(NamedTuple):
    """How an amount is counted, checked and written, and in which steps a smaller one is proposed."""

    pieces: str
    """The pieces that it is counted in, such as bytes."""
    parse: Callable[[str], int]
    """Parse the text of a document; raises ValueError with the expected form."""
    written: Callable[[int], str | int]
    """Format for a document and for messages."""
    step: Callable[[int], int]
    """The finest step in which this much is reduced, a round amount."""
    quantity: Callable[[int], str]
    """Format as a Kubernetes quantity."""
    per_quantity: int = 1
    """The pieces in a Kubernetes quantity of 1."""
    most_text: int = 0
    """The most characters of its text in a document; 0 where a document has a whole number instead."""
    least: int = 0
    """Fewer pieces than this, but more than 0, are refused: the author forgot the unit."""


def _cpu_step(millis: int) -> int:
    return 1000 if millis > 2000 else 100


def _memory_step(size: int) -> int:
    return _GIBI if size > 2 * _GIBI else _MEBI  # 1Mi is the least that a job file may state


MILLIS: Final = Unit(
    "thousandths", parse_cpu, format_cpu, _cpu_step, "{}m".format, per_quantity=1000, most_text=20
)  # fmt: skip
"""Thousandths of a processor."""
BYTES: Final = Unit("bytes", parse_memory, format_memory, _memory_step, str, most_text=40, least=_MEBI)
COUNT: Final = Unit("pieces", int, int, lambda _: 1, str)
"""Whole pieces, which a document gives as a number."""
MAX_COUNT: Final = 2**50
"""The largest number of pieces that a document may give."""


class Amount(NamedTuple):
    """One amount that a task takes of its node."""

    name: str
    """Its name in documents and in the resources of requests and nodes."""
    unit: Unit
    word: str
    """Its name in a sentence: "Needs disk space for 3 tasks"."""
    after_figure: str
    """Its name after a figure: "with 20Gi of disk space a task"."""
    code: str = "not-enough-resource"
    """The reason's code where nodes have too little of it."""
    of_task: str = ""
    """The description of its field among a role's resources; "" where the field is written in the model, or none."""
    of_node: str = ""
    """The description of its field of a cluster document's node; "" as above."""
    path: str = ""
    """Its field in a role of a job document; "" is `resources.NAME`."""
    column: str = ""
    """The field of requests, nodes and launches that holds it; "" is their amounts by name."""
    unbounded: bool = False
    """Whether a node that reports none has it without limit, and not none of it."""
    reducible: bool = True
    """Whether a smaller amount is proposed where too little is free."""
    engine_names: Mapping[str, str] = _NO_NAMES
    """By kind of engine, the resource that is asked for; an engine that is not named only reserves it."""

    @property
    def job_path(self) -> str:
        """Its field in a role of a job document."""
        return self.path or f"resources.{self.name}"


AMOUNTS: Final = (
    Amount(
        "cpu",
        MILLIS,
        word="processors",
        after_figure="processors",
        code="not-enough-cpu",
        column="cpu_millis",
        engine_names={"kubernetes": "cpu"},
    ),
    Amount(
        "memory",
        BYTES,
        word="memory",
        after_figure="of memory",
        code="not-enough-memory",
        column="memory_bytes",
        engine_names={"kubernetes": "memory"},
    ),
    Amount(
        "shm",
        BYTES,
        word="shared memory",
        after_figure="of shared memory",
        code="not-enough-shm",
        path="shm",
        column="shm_bytes",
    ),
    Amount(
        "ports",
        COUNT,
        word="ports",
        after_figure="of ports",
        code="not-enough-ports",
        path="ports",
        unbounded=True,
        reducible=False,
    ),
    Amount(
        "disk",
        BYTES,
        word="disk space",
        after_figure="of disk space",
        code="not-enough-disk",
        of_task='Disk space: "20Gi"; "0" reserves nothing.',
        of_node='Disk space that tasks share; "0" is not counted.',
        unbounded=True,
        engine_names={"kubernetes": "ephemeral-storage"},
    ),
)
COLUMNS: Final = tuple(each for each in AMOUNTS if each.column)
"""The amounts with a field of their own in requests, nodes and launches."""
UNBOUNDED: Final = frozenset(each.name for each in AMOUNTS if each.unbounded)
"""Resources that a node has without limit if it reports no amount; of any other resource it then has none."""
_BY_NAME: Final = {each.name: each for each in AMOUNTS}


def amount_named(name: str) -> Amount:
    """The row of an amount; for a resource of `resources.other` a row that counts pieces."""
    return _BY_NAME.get(name) or Amount(name, COUNT, name, f"of {name}", path=f"resources.other.{name}")


def names_for(engine_kind: str) -> dict[str, Amount]:
    """The amounts that a kind of engine asks for, by the resource's name there."""
    return {each.engine_names[engine_kind]: each for each in AMOUNTS if engine_kind in each.engine_names}
