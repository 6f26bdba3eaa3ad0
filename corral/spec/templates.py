"""Fill in the parameters of a job file.

`<% $parameters.NAME %>` may stand in any text of the document. Text that is one reference and nothing else takes the
parameter's value as if it were written there, so `replicas: <% $parameters.workers %>` is a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from corral.spec.errors import MAX_PROBLEMS, Path, Problem, SpecError, describe, did_you_mean, shorten
from corral.spec.yaml_scalars import resolve
from corral.spec.yaml_source import Source

REFERENCE: Final = re.compile(r"<%\s*\$([^%]{1,200}?)\s*%>")
_PARAMETER: Final = re.compile(r"parameters\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
UNUSED: Final = "nothing in this document refers to that parameter (a stored job has it filled in); set it in its file"
_MAX_GROWTH: Final = 4 * 1024 * 1024


def render(source: Source, given: Any, overrides: Mapping[str, str], text_under: frozenset[str]) -> Any:
    """The data of `source` with every reference replaced; `given` is the document's own `parameters`.

    Raises SpecError for a reference or override of an unknown parameter, and for an override that nothing refers to.
    """
    known = dict(given) if isinstance(given, dict) else {}
    problems = [
        Problem(f"--set {shorten(name)}: no such parameter{did_you_mean(name, known)}", filename=source.filename)
        for name in islice(overrides, MAX_PROBLEMS)
        if name not in known
    ]
    values = {name: _as_text(value) for name, value in (known | dict(overrides)).items()}
    renderer = _Renderer(source, values, text_under)
    data = renderer.value(source.data, (), False)
    problems += [
        Problem(f"--set {shorten(name)}: {UNUSED}", filename=source.filename)
        for name in islice(overrides, MAX_PROBLEMS)
        if name in known and name not in renderer.used
    ]
    if problems or renderer.problems:
        raise SpecError([*problems, *renderer.problems])
    return data


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(getattr(value, "source", value))
    return None


class _Renderer:
    def __init__(self, source: Source, values: Mapping[str, str | None], text_under: frozenset[str]) -> None:
        self._source = source
        self._values = values
        self._text_under = text_under
        self._size = 0
        self.used: set[str] = set()
        self.problems: list[Problem] = []

    def value(self, value: Any, path: Path, as_text: bool) -> Any:
        if isinstance(value, str):
            return self._string(value, path, as_text) if "<%" in value else value
        if isinstance(value, list):
            return [self.value(item, (*path, index), as_text) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {
                key: item
                if key == "parameters" and path in ((), ("spec",))
                else self.value(item, (*path, key), as_text or key in self._text_under)
                for key, item in value.items()
            }
        return value

    def _string(self, text: str, path: Path, as_text: bool) -> Any:
        whole = REFERENCE.fullmatch(text)
        rendered = REFERENCE.sub(lambda match: self._lookup(match, path), text)
        self._size += len(rendered)
        if self._size > _MAX_GROWTH:
            raise SpecError(
                [self._source.problem(path, f"parameters make the document longer than {_MAX_GROWTH} bytes")]
            )
        return resolve(rendered) if whole and not as_text else rendered

    def _lookup(self, match: re.Match[str], path: Path) -> str:
        if len(self.problems) >= MAX_PROBLEMS:
            return ""
        named = _PARAMETER.fullmatch(match[1])
        if named is not None:
            self.used.add(named[1])
        if named is None:
            message = f"cannot fill in {describe(match[0])}; only <% $parameters.NAME %> stands for something"
        elif named[1] not in self._values:
            message = f'there is no parameter "{named[1]}"{did_you_mean(named[1], self._values)}'
        elif (value := self._values[named[1]]) is None:
            message = f'the parameter "{named[1]}" is not text, a number or a yes/no value'
        elif "<%" in value:
            message = f'the parameter "{named[1]}" may not itself hold <%'
        else:
            return value
        self.problems.append(self._source.problem(path, message))
        return ""
