"""Why: a field of a foreign document that nobody read would be a promise silently broken; here it becomes a problem."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from corral.spec.errors import MAX_PROBLEMS, Path, Problem, describe, did_you_mean
from corral.spec.scalars import written
from corral.spec.source import Source


class Fields:
    """A mapping of a foreign document that is read field by field; all that were not read are problems in the end."""

    def __init__(self, source: Source, data: Any, path: Path = (), problems: list[Problem] | None = None) -> None:
        self.source = source
        self.path = path
        self.problems: list[Problem] = [] if problems is None else problems
        self._read: set[str] = set()
        if data is not None and not isinstance(data, Mapping):
            self.problem((), f"expected a mapping (key: value), got {describe(data)}")
        self.data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}

    def __contains__(self, name: str) -> bool:
        """Whether the field has a value; null has none, and is no unknown field either."""
        self._read.add(name)
        return self.data.get(name) is not None

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> None:
        """Something is wrong at `path`, seen from here."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.source.problem((*self.path, *path), message, at_key=at_key))

    def refuse(self, name: str, why: str) -> None:
        """The field `name`, if it is there, cannot be had, for this reason."""
        self._read.add(name)
        if self.data.get(name) not in (None, [], {}):
            self.problem((name,), why, at_key=True)

    def take(self, name: str) -> Any:
        """The value of `name` as it is; None where it is not there."""
        self._read.add(name)
        return self.data.get(name)

    def text(self, name: str, default: str | None = "", *, choices: Collection[str] = ()) -> str:
        """The text of `name`; without a default it has to be there."""
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
        """The whole number of `name`; without a default it has to be there."""
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
        """The yes or no of `name`; without a default it has to be there."""
        value = self.take(name)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.problem((name,), f"expected true or false, got {describe(value)}")
        elif default is None:
            self.problem((name,), "missing; write true or false")
        return bool(default)

    def inner(self, name: str, *, needed: bool = False) -> Fields:
        """The mapping of `name`; an empty one where it is not there."""
        value = self.take(name)
        if value is None and needed:
            self.problem((name,), "missing")
        return Fields(self.source, value, (*self.path, name), self.problems)

    def items(self, name: str) -> list[Fields]:
        """The mappings in the list of `name`; none where it is not there."""
        base = (*self.path, name)
        return [Fields(self.source, each, (*base, at), self.problems) for at, each in enumerate(self.array(name))]

    def array(self, name: str) -> list[Any]:
        """The list of `name` as it is; empty where it is not there."""
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
        """The mapping of texts of `name`."""
        inner = self.inner(name)
        return {key: inner.text(key) for key in inner.data}

    def rest(self) -> dict[str, Any]:
        """What was not read and is not null, now read: for parts that go on as they are."""
        left = {key: value for key, value in self.data.items() if key not in self._read}
        self._read |= left.keys()
        return {key: value for key, value in left.items() if value is not None}

    def ignore(self, names: Iterable[str]) -> None:
        """These fields mean nothing to a job: an API server or a controller wrote them."""
        self._read |= set(names)

    def done(self) -> None:
        """Whatever was not read is unknown."""
        for name in self.data:
            if name not in self._read:
                near = did_you_mean(name, self._read)
                self.problem((name,), f"unknown field{near}", at_key=True)

    def matches(self, name: str, pattern: re.Pattern[str], meaning: str) -> str:
        """The text of `name`, which has to be there and to be as `meaning` says."""
        found = self.text(name, None)
        if found and not pattern.fullmatch(found):
            self.problem((name,), f"expected {meaning}, got {describe(found)}")
        return found
