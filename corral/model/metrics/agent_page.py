"""What a node's agent tells a server: its figures as JSON, with the node's name and the time of its clock."""

from __future__ import annotations

import math
from typing import Annotated, Final

import msgspec

from corral.kernel.errors import InvalidInput
from corral.model.metrics.device_families import DEVICE_FAMILIES
from corral.model.metrics.family import Family
from corral.model.metrics.node_families import NODE_FAMILIES
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TASK_FAMILIES

PATH: Final = "/samples"
"""The path below which an agent tells it."""
MOST_BYTES: Final = 8 * 2**20
"""Bytes of an answer; one of 2,000 tasks has six million."""
MOST_VALUES: Final = 60_000
MOST_CHECKS: Final = 100
"""Check scripts of a node."""
_LONGEST_LABELS: Final = 1000
"""Characters of all labels of a series; one with longer labels is left out."""
_TOLD: Final[dict[str, Family]] = {each.name: each for each in (*DEVICE_FAMILIES, *NODE_FAMILIES, *TASK_FAMILIES)}
"""The families that a collector measures. An agent tells nothing else: not how the scheduler is."""


class CheckTold(msgspec.Struct, frozen=True):
    """How the last run of a check script on the node ended."""

    script: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    code: int | None
    """Its exit code, None for a run that could not tell: 0 is well, 1 a problem."""
    message: Annotated[str, msgspec.Meta(max_length=200)]
    at: float
    """When it ended, by the node's clock: another run has another time."""


_Word = Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[ -~]*$")]


class AgentVersions(msgspec.Struct, frozen=True):
    """What an agent and its machine run."""

    agent: _Word = ""
    kernel: _Word = ""
    runs_on: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=16)] = ()
    """The operating system and drivers of devices, with their versions."""


NO_VERSIONS: Final = AgentVersions()


class AgentPage(msgspec.Struct, frozen=True):
    """One answer of an agent."""

    node: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    """Its machine's name."""
    clock: float
    """The machine's time when it answered, in seconds since 1970."""
    values: Annotated[tuple[Value, ...], msgspec.Meta(max_length=MOST_VALUES)]
    checks: Annotated[tuple[CheckTold, ...], msgspec.Meta(max_length=MOST_CHECKS)] = ()
    """None of an agent that runs no check scripts, or is older than they are."""
    versions: AgentVersions = NO_VERSIONS
    """Nothing of an agent that is older than its server."""


class _Made(msgspec.Struct):
    node: str
    clock: float
    values: msgspec.Raw
    checks: tuple[CheckTold, ...]
    versions: AgentVersions


def encode_values(samples: Samples) -> bytes:
    """The values of an answer as JSON, which stay the same until the next round."""
    told = [each for each in samples.values if each.family in _TOLD and math.isfinite(each.value)]
    return msgspec.json.encode(told[:MOST_VALUES])


def encode_page(
    node: str,
    clock: float,
    values: bytes,
    checks: tuple[CheckTold, ...] = (),
    versions: AgentVersions = NO_VERSIONS,
) -> bytes:
    """An answer with values that `encode_values` made."""
    return msgspec.json.encode(_Made(node, clock, msgspec.Raw(values), checks, versions))


def read_page(data: bytes) -> AgentPage:
    """The answer in these bytes, with those of its values that can be series.

    Families that are not known are left out, because an agent may be newer than its server. Raises InvalidInput for what
    is no answer of an agent.
    """
    try:
        page = msgspec.json.decode(data, type=AgentPage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidInput("agent-not-understood", "Its answer is not that of a node's agent.") from None
    if not math.isfinite(page.clock):
        raise InvalidInput("agent-not-understood", "Its answer has no time.")
    once = {(each.family, each.labels): each for each in page.values if _is_series(each)}
    return AgentPage(page.node, page.clock, tuple(once.values()), page.checks, page.versions)


def _is_series(value: Value) -> bool:
    family = _TOLD.get(value.family)
    return (
        family is not None
        and len(value.labels) == len(family.labels)
        and sum(map(len, value.labels)) <= _LONGEST_LABELS
        and math.isfinite(value.value)
    )
