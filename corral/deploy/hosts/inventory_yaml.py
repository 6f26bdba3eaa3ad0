"""Parse Ansible's YAML inventories to the same form as INI ones."""

from __future__ import annotations

from typing import Any

from corral.deploy.hosts.inventory_ini import Inventory
from corral.spec.errors import Path, SpecError, describe
from corral.spec.yaml_scalars import written
from corral.spec.yaml_source import Source, parse_source


def parse_yaml(text: str | bytes, filename: str) -> Inventory:
    """Parse a YAML inventory. Raises SpecError with the line of what cannot be read."""
    source = parse_source(text, filename)
    if not isinstance(source.data, dict):
        raise SpecError([source.problem((), f"expected groups of an inventory, got {describe(source.data)}")])
    reader = _Reader(source)
    for name in source.data:
        reader.group(str(name), (name,))
    return reader.found


class _Reader:
    """Walks the tree of groups; depth and size are bounded by the parser."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.found = Inventory(source.filename)

    def group(self, name: str, path: Path) -> None:
        data = self._mapping(path)
        line = self._source.problem(path, "").line
        entry = self.found.group(name, line)
        for key in data:
            if key not in ("hosts", "children", "vars"):
                self._refuse((*path, key), f"a group has hosts, children and vars, not {describe(key)}")
        for host in self._mapping((*path, "hosts")) if "hosts" in data else {}:
            place = (*path, "hosts", host)
            variables = self._variables(place)
            self.found.host(host, self._source.problem(place, "").line).update(variables)
            if host not in entry.hosts:
                entry.hosts.append(host)
        for child in self._mapping((*path, "children")) if "children" in data else {}:
            if child not in entry.children:
                entry.children.append(child)
            self.group(child, (*path, "children", child))
        entry.variables.update(self._variables((*path, "vars")) if "vars" in data else {})

    def _variables(self, path: Path) -> dict[str, str]:
        """The scalar variables; lists and mappings are kept by name alone, so that they are mentioned."""
        values = {name: written(value) for name, value in self._mapping(path).items()}
        return {name: value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else ""
                for name, value in values.items()}  # fmt: skip

    def _mapping(self, path: Path) -> dict[str, Any]:
        here: Any = self._source.data
        for part in path:
            here = here[part]
        if here is None:
            return {}
        if not isinstance(here, dict):
            self._refuse(path, f"expected a mapping (key: value), got {describe(here)}")
        return dict(here)

    def _refuse(self, path: Path, message: str) -> Any:
        raise SpecError([self._source.problem(path, message)])
