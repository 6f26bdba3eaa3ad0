"""Read a document's keys as Go's `encoding/json` does: field names in any case, null for an unset field.

HiveD reads its configuration and its annotation so; Kubernetes matches the keys of its objects by exact case. An
unknown key is kept as written, so that the document's validator can refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from corral.spec.errors import MAX_PROBLEMS, Path, Problem, SpecError
from corral.spec.yaml_source import Source

Shape = Mapping[str, Any]
"""The fields of a struct by name, each with the shape of its value or list items; None: no struct."""
EACH: Final = "*"
"""The only key of a shape that is a map; the map's keys are names, read as written."""


def as_go_reads(source: Source, shape: Shape) -> Source:
    """The same document with every field under its declared name, and null fields dropped.

    Raises SpecError when a struct gives one field twice.
    """
    reader = _Reader(source)
    data = reader.read(source.data, shape, ())
    if reader.problems:
        raise SpecError(reader.problems)
    if not reader.renamed and not reader.dropped:
        return Source(source.filename, data, source.values, source.keys)
    return Source(source.filename, data, reader.moved(source.values), reader.moved(source.keys))


def field_of(key: str, names: Iterable[str]) -> str | None:
    """The field that a key matches: by exact name, else by the same letters in any case; None if none does."""
    same = [name for name in names if _same(key, name)]
    return key if key in same else next(iter(same), None)


def _same(key: str, name: str) -> bool:
    return len(key) == len(name) and key.casefold() == name.casefold()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.problems: list[Problem] = []
        self.renamed: dict[Path, str] = {}
        self.dropped: set[Path] = set()
        self._source = source

    def read(self, data: Any, shape: Shape | None, path: Path) -> Any:
        """The value that Go reads from `data`, which is at `path` of the document as written."""
        if shape is None:
            return data
        if isinstance(data, list):
            return [self.read({} if each is None else each, shape, (*path, at)) for at, each in enumerate(data)]
        if not isinstance(data, dict):
            return data
        if EACH in shape:
            return {
                key: self.read({} if value is None else value, shape[EACH], (*path, key)) for key, value in data.items()
            }
        found: dict[str, Any] = {}
        for key, value in data.items():
            self._field(found, key, value, shape, path)
        return found

    def _field(self, found: dict[str, Any], key: str, value: Any, shape: Shape, path: Path) -> None:
        name = key if key in shape else field_of(key, shape)
        inner: Path = (*path, key)
        if name is None:
            found[key] = value
        elif value is None:
            self.dropped.add(inner)
        elif name in found:
            if len(self.problems) < MAX_PROBLEMS:
                self.problems.append(self._source.problem(inner, f"repeated; {name} was already given", at_key=True))
        else:
            if name != key:
                self.renamed[inner] = name
            found[name] = self.read(value, shape[name], inner)

    def moved(self, marks: Mapping[Path, tuple[int, int]]) -> dict[Path, tuple[int, int]]:
        """The positions, keyed by paths of the resulting document."""
        return {self._moved(path): mark for path, mark in marks.items() if path not in self.dropped}

    def _moved(self, path: Path) -> Path:
        return tuple(self.renamed.get(path[: at + 1], step) for at, step in enumerate(path))
