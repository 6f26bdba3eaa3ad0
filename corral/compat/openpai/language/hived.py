"""Read and validate the HiveD options in a job's extras, as OpenPAI does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from corral.compat.openpai.language.protocol import ProtocolError
from corral.spec.errors import Path, Problem, describe

PRIORITIES: Final = {"prod": 100, "test": 10, "oppo": -1}
"""The priority classes that OpenPAI accepts; its schema also lists `crit`, which its server refuses."""
DEFAULT_PRIORITY: Final = "test"
_HOME: Final[Path] = ("extras", "hivedScheduler")


@dataclass(frozen=True, slots=True)
class RoleTerms:
    """The cells that the tasks of one role request."""

    sku_type: str = ""
    sku_count: int = 0
    """SKUs of one task; 0 derives them from its resources."""
    pinned_cell: str = ""
    affinity_group: str = ""


_NOTHING: Final = RoleTerms()


@dataclass(frozen=True, slots=True)
class HivedTerms:
    """The HiveD options of a job."""

    priority: str = DEFAULT_PRIORITY
    lazy_preemption: bool = False
    gang_release: bool = False
    ignore_suggested_nodes: bool = True
    roles: Mapping[str, RoleTerms] = field(default_factory=dict)
    """By task role; roles without options are absent."""

    @property
    def pinned_cells(self) -> set[str]:
        """The pinned cells that roles name."""
        return {role.pinned_cell for role in self.roles.values() if role.pinned_cell}

    def of(self, name: str) -> RoleTerms:
        """The options of a task role."""
        return self.roles.get(name, _NOTHING)


def hived_terms(protocol: Mapping[str, Any]) -> HivedTerms:
    """The HiveD options of a protocol.

    Raises ProtocolError where OpenPAI would refuse them.
    """
    extras = protocol.get("extras", {})
    if "hivedScheduler" in extras and extras["hivedScheduler"] is None:
        _refuse(_HOME, "hivedScheduler should be object, got nothing.")
    given = _mapping(extras.get("hivedScheduler"), _HOME)
    priority = given.get("jobPriorityClass")
    if priority is None:
        priority = DEFAULT_PRIORITY
    if not isinstance(priority, str) or priority not in PRIORITIES:
        words = ", ".join(PRIORITIES)
        _refuse((*_HOME, "jobPriorityClass"), f"jobPriorityClass should be one of {words}, got {describe(priority)}.")
    said = _mapping(given.get("taskRoles"), (*_HOME, "taskRoles"))
    roles = {}
    for name, each in said.items():
        path = (*_HOME, "taskRoles", name)
        if name not in protocol["taskRoles"]:
            _refuse(path, f"Taskrole {name} does not exist.")
        roles[name] = _role(name, _mapping(each, path), path)
    _agree(roles)
    return HivedTerms(
        priority,
        _flag(given, "lazyPreemptionEnable", False),
        _flag(given, "gangReleaseEnable", False),
        _flag(given, "ignoreK8sSuggestedNodes", True),
        roles,
    )


def job_cell(protocol: Mapping[str, Any], terms: HivedTerms) -> str:
    """The pinned cell of the whole job: the only one named, and named by every role that requests GPUs or SKUs.

    "" when there is none; each role then gets its own.
    """
    named = terms.pinned_cells
    if len(named) != 1:
        return ""
    for name, role in protocol["taskRoles"].items():
        said = terms.of(name)
        asks = role["resourcePerInstance"]["gpu"] or said.sku_count or said.sku_type
        if asks and not said.pinned_cell:
            return ""
    return named.pop()


def _role(name: str, given: Mapping[str, Any], path: Path) -> RoleTerms:
    count_field = "skuNum" if given.get("skuNum") is not None else "skuNumber"
    count = given.get(count_field)
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        _refuse((*path, count_field), f"{count_field} should be a whole number of at least 1, got {describe(count)}.")
    terms = RoleTerms(
        _word(given, "skuType", path),
        count or 0,
        _word(given, "pinnedCellId", path),
        _word(given, "affinityGroupName", path),
    )
    if terms.sku_type and terms.pinned_cell:
        _refuse((*path, "pinnedCellId"), f"Taskrole {name} has both skuType and pinnedCellId, only one is allowed.")
    return terms


def _agree(roles: Mapping[str, RoleTerms]) -> None:
    """Require the roles of one affinity group to request the same kind of cells, as they are placed together."""
    first: dict[str, RoleTerms] = {}
    for name, terms in roles.items():
        if not terms.affinity_group:
            continue
        known = first.setdefault(terms.affinity_group, terms)
        if (terms.sku_type, terms.pinned_cell) != (known.sku_type, known.pinned_cell):
            _refuse(
                (*_HOME, "taskRoles", name),
                f"AffinityGroup {terms.affinity_group} has inconsistent skuType or pinnedCellId.",
            )


def _mapping(value: Any, path: Path) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _refuse(path, f"{path[-1]} should be object, got {describe(value)}.")
    return value


def _word(given: Mapping[str, Any], name: str, path: Path) -> str:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        _refuse((*path, name), f"{name} should be string, got {describe(value)}.")
    return value or ""


_QUOTED: Final = {"true": True, "false": False}
"""Texts that OpenPAI's validator accepts as booleans."""


def _flag(given: Mapping[str, Any], name: str, default: bool) -> bool:
    value = given.get(name)
    if isinstance(value, str):
        value = _QUOTED.get(value, value)
    if value is not None and not isinstance(value, bool):
        _refuse((*_HOME, name), f"{name} should be boolean, got {describe(value)}.")
    return default if value is None else value


def _refuse(path: Path, message: str) -> NoReturn:
    raise ProtocolError([Problem(message, path)], message)
