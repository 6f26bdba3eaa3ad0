"""Parse Ansible's INI inventories: hosts, groups, children and variables, with the line of each host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from corral.deploy.hosts.document import MOST_HOSTS
from corral.spec.errors import Problem, SpecError, describe, shorten
from corral.spec.yaml_source import decoded

MOST_INVENTORY_GROUPS: Final = 1000
_SECTION: Final = re.compile(r"\[([^\[\]:\s]{1,200})(?::(children|vars))?\]\s*(?:[#;].*)?")
_RANGE: Final = re.compile(r"\[(\d{1,4}):(\d{1,4})\]")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


@dataclass(slots=True)
class InventoryGroup:
    """A group of an inventory."""

    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Inventory:
    """An inventory as it is written; `lines` has the first line of each host."""

    filename: str
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    groups: dict[str, InventoryGroup] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def group(self, name: str, line: int) -> InventoryGroup:
        """The group of that name, made if it is new. Raises SpecError when there are too many."""
        if name not in self.groups and len(self.groups) >= MOST_INVENTORY_GROUPS:
            self.refuse(line, f"more than {MOST_INVENTORY_GROUPS} groups")
        return self.groups.setdefault(name, InventoryGroup())

    def host(self, name: str, line: int) -> dict[str, str]:
        """The variables of a host, added if it is new. Raises SpecError when there are too many."""
        if name not in self.hosts and len(self.hosts) >= MOST_HOSTS:
            self.refuse(line, f"more than {MOST_HOSTS} hosts")
        self.lines.setdefault(name, line)
        return self.hosts.setdefault(name, {})

    def refuse(self, line: int, message: str) -> NoReturn:
        """Raise SpecError at a line."""
        raise SpecError([Problem(message, (), line, 1, self.filename)])


def parse_ini(text: str | bytes, filename: str) -> Inventory:
    """Parse an INI inventory. Raises SpecError for a line that cannot be read."""
    found = Inventory(filename)
    section, kind = "ungrouped", ""
    for number, raw in enumerate(decoded(text, filename).splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            header = _SECTION.fullmatch(line)
            if header is None:
                found.refuse(number, f"expected a section such as [kube_node], got {describe(line)}")
            section, kind = header[1], header[2] or ""
            found.group(section, number)
        elif kind == "vars":
            name, value = _variable(found, number, line)
            found.group(section, number).variables[name] = value
        elif kind == "children":
            child = line.split("#")[0].strip()
            found.group(child, number)
            found.group(section, number).children.append(child)
        else:
            _host_line(found, number, line, section)
    return found


def _host_line(found: Inventory, number: int, line: str, section: str) -> None:
    try:
        pattern, *words = shlex.split(line, comments=True)
    except ValueError:
        found.refuse(number, "a quotation mark is not closed")
    variables = dict(_variable(found, number, word) for word in words)
    for name in _expanded(found, number, pattern):
        found.host(name, number).update(variables)
        if name not in found.group(section, number).hosts:
            found.group(section, number).hosts.append(name)


def _variable(found: Inventory, number: int, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not _VARIABLE.fullmatch(name.strip()):
        found.refuse(number, f"expected NAME=VALUE, got {describe(shorten(name.strip(), 40))}")
    return name.strip(), value.strip().strip("'\"")


def _expanded(found: Inventory, number: int, pattern: str) -> Iterator[str]:
    """The names that a pattern such as `node[01:10]` stands for."""
    match = _RANGE.search(pattern)
    if match is None:
        yield pattern
        return
    first, last = int(match[1]), int(match[2])
    if not 0 <= last - first < MOST_HOSTS:
        found.refuse(number, f"{shorten(pattern)} stands for no hosts, or for more than {MOST_HOSTS}")
    width = len(match[1]) if match[1].startswith("0") else 0
    for each in range(first, last + 1):
        yield f"{pattern[: match.start()]}{each:0{width}}{pattern[match.end() :]}"
