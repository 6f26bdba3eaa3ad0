"""Read the fields of a foreign document one by one, and report every field that was not read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from corral.spec.errors import MAX_PROBLEMS, Path, Problem, describe, did_you_mean
from corral.spec.yaml_scalars import written
from corral.spec.yaml_source import Source


class Fields:
    """A mapping that records which of its fields were read; `done` reports the others as unknown."""

    def __init__(self, source: Source, data: Any, path: Path = (), problems: list[Problem] | None = None) -> None:
        self.source = source
        self.path = path
        self.problems: list[Problem] = [] if problems is None else problems
        self._read: set[str] = set()
        if data is not None and not isinstance(data, Mapping):
            self.problem((), f"expected a mapping (key: value), got {describe(data)}")
        self.data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}

    def __contains__(self, name: str) -> bool:
        """Whether the field is set and not null; marks it as read."""
        self._read.add(name)
        return self.data.get(name) is not None

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> None:
        """Add an error at `path`, relative to this mapping."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.source.problem((*self.path, *path), message, at_key=at_key))

    def refuse(self, name: str, why: str) -> None:
        """Report the field `name`, if it is set, as unsupported for the reason `why`."""
        self._read.add(name)
        if self.data.get(name) not in (None, [], {}):
            self.problem((name,), why, at_key=True)

    def take(self, name: str) -> Any:
        """The value of `name` unchanged; None when it is absent."""
        self._read.add(name)
        return self.data.get(name)

    def text(self, name: str, default: str | None = "", *, choices: Collection[str] = ()) -> str:
        """The text of `name`; required when the default is None."""
        value = written(self.take(name))
        if value is None:
            if default is None:
                self.problem((name,), "missing")
            return default or ""
        if not isinstance(value, str):
            self.problem((name,), f"expected text, got {describe(value)}")
            return default or ""
        if choices and value not in choices:
            near = did_you_mean(value, choices)
            end = "" if near.startswith("; expected") else near
            self.problem((name,), f"expected one of {', '.join(choices)}, got {describe(value)}{end}")
            return default or ""
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int = 2**31 - 1) -> int:
        """The whole number of `name`; required when the default is None."""
        value = self.take(name)
        if value is None:
            if default is None:
                self.problem((name,), "missing")
            return least if default is None else default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.problem((name,), f"expected a whole number from {least} to {most}, got {describe(value)}")
            return max(least, 0)
        return int(value)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """The boolean of `name`; required when the default is None."""
        value = self.take(name)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.problem((name,), f"expected true or false, got {describe(value)}")
        elif default is None:
            self.problem((name,), "missing; write true or false")
        return bool(default)

    def inner(self, name: str, *, needed: bool = False) -> Fields:
        """The mapping of `name`; an empty one when it is absent."""
        value = self.take(name)
        if value is None and needed:
            self.problem((name,), "missing")
        return Fields(self.source, value, (*self.path, name), self.problems)

    def items(self, name: str) -> list[Fields]:
        """The mappings in the list of `name`; [] when it is absent."""
        base = (*self.path, name)
        return [Fields(self.source, each, (*base, at), self.problems) for at, each in enumerate(self.array(name))]

    def array(self, name: str) -> list[Any]:
        """The list of `name` unchanged; [] when it is absent."""
        value = self.take(name)
        if value is not None and not isinstance(value, list):
            self.problem((name,), f"expected a list, got {describe(value)}")
        return value if isinstance(value, list) else []

    def words(self, name: str) -> list[str]:
        """The texts in the list of `name`."""
        found = [written(each) for each in self.array(name)]
        for at, word in enumerate(found):
            if not isinstance(word, str):
                self.problem((name, at), f"expected text, got {describe(word)}")
        return [word for word in found if isinstance(word, str)]

    def texts(self, name: str) -> dict[str, str]:
        """The mapping of `name`, with text values."""
        inner = self.inner(name)
        return {key: inner.text(key) for key in inner.data}

    def rest(self) -> dict[str, Any]:
        """The unread fields that are not null, for parts passed on unchanged; marks them as read."""
        left = {key: value for key, value in self.data.items() if key not in self._read}
        self._read |= left.keys()
        return {key: value for key, value in left.items() if value is not None}

    def ignore(self, names: Iterable[str]) -> None:
        """Mark fields as read that an API server or controller writes, and that mean nothing to a job."""
        self._read |= set(names)

    def done(self) -> None:
        """Report every unread field as unknown."""
        for name in self.data:
            if name not in self._read:
                near = did_you_mean(name, self._read)
                self.problem((name,), f"unknown field{near}", at_key=True)

    def matches(self, name: str, pattern: re.Pattern[str], meaning: str) -> str:
        """The required text of `name`, which must match `pattern`; `meaning` describes it in the error."""
        found = self.text(name, None)
        if found and not pattern.fullmatch(found):
            self.problem((name,), f"expected {meaning}, got {describe(found)}")
        return found
