"""Parse YAML or JSON into data with the line and column of every value, within bounds.

PyYAML's C parser produces events with marks, and the tree is built here. Depth, size, aliases, tags and repeated keys
are refused at their position. The cost of a hostile text is bounded by its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import yaml

from corral.spec.errors import Path, Problem, SpecError, describe, shorten
from corral.spec.yaml_scalars import Scalar, resolve

MAX_BYTES: Final = 1024 * 1024
"""Maximum size of a document in bytes."""
MAX_DEPTH: Final = 64
"""Maximum nesting depth of mappings and lists."""
MAX_DOCUMENTS: Final = 1000
"""Maximum documents in one text."""
MAX_NODES: Final = 100_000
"""Maximum values in a document; an aliased value counts once per use."""

Mark = tuple[int, int]
_JSON: Final = re.compile(r'\s*(?:[{\[]\s*(?:["{}\[\]]|-?\d|(?:true|false|null)\b)|"(?:[^"\\]|\\.)*"\s*$)')
_RAW_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that a JSON string may contain unescaped, and that YAML refuses or reads as a line break."""
_ESCAPED_PAIR: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


@dataclass
class Source:
    """A document's data, and the position of each value and key."""

    filename: str
    data: Any = None
    values: dict[Path, Mark] = field(default_factory=dict)
    keys: dict[Path, Mark] = field(default_factory=dict)
    grouped: dict[Path, int] = field(default_factory=dict)
    """Unquoted texts such as `1_000` as the integers that YAML 1.1 reads; a dialect may mean these."""

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """A problem at `path`, placed at the nearest value that exists in the document."""
        for end in range(len(path), -1, -1):
            near = path[:end]
            mark = (self.keys.get(near) if at_key and end == len(path) else None) or self.values.get(near)
            if mark is not None:
                return Problem(message, path, *mark, filename=self.filename)
        return Problem(message, path, filename=self.filename)

    def nearest(self, path: Path) -> Path:
        """The longest prefix of `path` that exists in the document; all of it when positions are unknown.

        Where the path has a key and the document has a list, a list item equal to the key matches.
        """
        if not self.values:
            return path
        here, place = self.data, 0
        while place < len(path) and path[: place + 1] in self.values:
            here = here[path[place]]
            place += 1
        if place < len(path) and isinstance(here, list) and path[place] in here:
            return (*path[:place], here.index(path[place]))
        return path[:place]


@dataclass(slots=True)
class _Node:
    mark: Mark
    text: str = ""
    plain: bool = False
    items: list[_Node] | None = None
    pairs: list[tuple[_Node, _Node]] | None = None
    open: bool = False


def parse_source(text: str | bytes, filename: str = "document", text_under: frozenset[str] = frozenset()) -> Source:
    """Parse one YAML 1.2 or JSON document; unquoted scalars below keys in `text_under` stay text.

    Raises SpecError when the text is not one well-formed document within the bounds.
    """
    return parse_sources(text, filename, text_under, most=1)[0]


def parse_sources(
    text: str | bytes,
    filename: str = "documents",
    text_under: frozenset[str] = frozenset(),
    *,
    most: int = MAX_DOCUMENTS,
) -> list[Source]:
    """Parse YAML documents separated by `---`; a text without documents gives one Source without data.

    Raises SpecError when one is not well formed, or there are more than `most`.
    """
    try:
        roots = _Composer(filename).compose(decoded(text, filename), most)
    except yaml.YAMLError as error:
        raise SpecError([_syntax_problem(error, filename)]) from None
    sources = []
    for root in roots or (None,):
        source = Source(filename)
        if root is not None:
            source.data = _Builder(source, text_under).build(root, (), 1, False)
        sources.append(source)
    return sources


def plain_json(text: str | bytes, filename: str, text_under: frozenset[str] = frozenset()) -> Source | None:
    """Parse a short JSON document without positions; None when `parse_source` must read it.

    It takes a tenth of the time of `parse_source`. Programs send JSON that is nearly always valid, so positions are
    computed only for a document with errors. Input that JSON and YAML may read differently (repeated keys, fractions,
    escaped characters) is left to `parse_source`.
    """
    if len(text) > _SHORT or (b"\\u" in text if isinstance(text, bytes) else "\\u" in text):
        return None
    try:
        data = _PLAIN.decode(text.decode() if isinstance(text, bytes) else text)
        return Source(filename, _as_read(data, text_under, False, 1))
    except (ValueError, RecursionError):
        return None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is repeated")
    return data


def _whole(text: str) -> int:
    if len(text) > 18 or text == "-0":
        raise ValueError("not written as it would be read")
    return int(text)


def _not_plain(text: str) -> NoReturn:
    raise ValueError(f"{text} may be meant as it is written")


def _as_read(value: Any, text_under: frozenset[str], as_text: bool, depth: int) -> Any:
    """A JSON value as `parse_source` returns it: numbers and booleans below keys in `text_under` are text."""
    if isinstance(value, dict | list) and depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, dict):
        return {
            key: _as_read(inner, text_under, as_text or key in text_under, depth + 1) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_as_read(inner, text_under, as_text, depth + 1) for inner in value]
    if not as_text or value is None or isinstance(value, str):
        return value
    return json.dumps(value)


_SHORT: Final = 64 * 1024
_PLAIN: Final = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_int=_whole, parse_float=_not_plain, parse_constant=_not_plain
)


def decoded(text: str | bytes, filename: str) -> str:
    """Decode the text, and escape characters in JSON that YAML refuses.

    Raises SpecError when it is too long, or not UTF-8.
    """
    if len(text) > MAX_BYTES:
        raise SpecError(
            [Problem(f"longer than {MAX_BYTES} bytes; put large things in code or inputs", filename=filename)]
        )
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        size = len(decoded.encode())
    except UnicodeError:
        raise SpecError([Problem("not UTF-8 text; save it as UTF-8", filename=filename)]) from None
    if size > MAX_BYTES:
        raise SpecError(
            [Problem(f"longer than {MAX_BYTES} bytes; put large things in code or inputs", filename=filename)]
        )
    decoded = decoded.removeprefix("\ufeff")
    if _JSON.match(decoded):
        decoded = _ESCAPED_PAIR.sub(_joined_pair, _RAW_IN_JSON.sub(lambda raw: f"\\u{ord(raw[0]):04x}", decoded))
    return decoded


def _joined_pair(match: re.Match[str]) -> str:
    """Join an escaped UTF-16 surrogate pair into its character.

    JSON escapes characters above U+FFFF as such a pair, which YAML refuses.
    """
    high, low = int(match[2], 16), int(match[3], 16)
    return match[1] + chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _syntax_problem(error: yaml.YAMLError, filename: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be parsed"
    context = getattr(error, "context", None)
    message = f"not well-formed YAML: {reason}" + (f" {context}" if context else "")
    if mark is None:
        return Problem(shorten(message, 200), filename=filename)
    return Problem(shorten(message, 200), (), mark.line + 1, mark.column + 1, filename)


class _Composer:
    """Builds nodes from parser events; refuses tags, extra documents, and undefined or recursive aliases."""

    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._anchors: dict[str, _Node] = {}
        self._count = 0

    def compose(self, text: str, most: int) -> list[_Node]:
        events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        roots: list[_Node] = []
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if len(roots) == most:
                    one = "a second document; put each document in its own file"
                    self._refuse(event, one if most == 1 else f"more than {most} documents")
                self._anchors.clear()
                roots.append(self._node(next(events), events, 1))
        return roots

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> _Node:
        if depth > MAX_DEPTH:
            self._refuse(event, f"nested deeper than {MAX_DEPTH} levels")
        self._count += 1
        if self._count > MAX_NODES:
            self._refuse(event, f"more than {MAX_NODES} values")
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        if event.tag is not None:
            self._refuse(event, f"the tag {shorten(event.tag)} means nothing here; remove it")
        node = _Node((event.start_mark.line + 1, event.start_mark.column + 1), open=True)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if isinstance(event, yaml.ScalarEvent):
            node.text, node.plain = event.value, event.implicit[0]
        elif isinstance(event, yaml.SequenceStartEvent):
            node.items = []
            while not isinstance(inner := next(events), yaml.SequenceEndEvent):
                node.items.append(self._node(inner, events, depth + 1))
        else:
            node.pairs = []
            while not isinstance(inner := next(events), yaml.MappingEndEvent):
                key = self._node(inner, events, depth + 1)
                node.pairs.append((key, self._node(next(events), events, depth + 1)))
        node.open = False
        return node

    def _aliased(self, event: Any) -> _Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            self._refuse(event, f"the alias *{shorten(event.anchor)} is not defined above")
        if node.open:
            self._refuse(event, f"the alias *{shorten(event.anchor)} contains itself")
        return node

    def _refuse(self, event: Any, message: str) -> NoReturn:
        mark = event.start_mark
        raise SpecError([Problem(message, (), mark.line + 1, mark.column + 1, self._filename)])


_GROUPED: Final = re.compile(r"(?=.{3,24}\Z)[-+]?[1-9][0-9]*(?:_[0-9]+)+", re.ASCII)


class _Builder:
    """Builds data and positions from nodes; an alias is expanded at each use and counted each time."""

    def __init__(self, source: Source, text_under: frozenset[str]) -> None:
        self._source = source
        self._text_under = text_under
        self._count = 0

    def build(self, node: _Node, path: Path, depth: int, as_text: bool) -> Any:
        self._spend(1, depth, node, path)
        self._source.values[path] = node.mark
        if node.items is not None:
            return [self.build(item, (*path, i), depth + 1, as_text) for i, item in enumerate(node.items)]
        if node.pairs is not None:
            return self._mapping(node.pairs, path, depth, as_text)
        if node.plain and _GROUPED.fullmatch(node.text):
            self._source.grouped[path] = int(node.text)
        return self._scalar(node, as_text)

    def _spend(self, count: int, depth: int, node: _Node, path: Path) -> None:
        self._count += count
        if self._count > MAX_NODES:
            self._refuse(node, path, f"more than {MAX_NODES} values once its aliases are expanded")
        if depth > MAX_DEPTH:
            self._refuse(node, path, f"nested deeper than {MAX_DEPTH} levels once its aliases are expanded")

    def _scalar(self, node: _Node, as_text: bool) -> Scalar:
        if not node.plain:
            return node.text
        value = resolve(node.text)
        return node.text if as_text and value is not None else value

    def _mapping(self, pairs: list[tuple[_Node, _Node]], path: Path, depth: int, as_text: bool) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value in pairs:
            if key.plain and key.text == "<<":
                continue
            name = self._key(key, path)
            inner = (*path, name)
            if name in data:
                line = self._source.keys[inner][0]
                self._refuse(key, inner, f"repeated; it was already given in line {line}")
            self._source.keys[inner] = key.mark
            data[name] = self.build(value, inner, depth + 1, as_text or name in self._text_under)
        for key, value in pairs:
            if key.plain and key.text == "<<":
                self._merge(data, value, path, depth, as_text)
        return data

    def _merge(self, data: dict[str, Any], value: _Node, path: Path, depth: int, as_text: bool) -> None:
        for part in value.items if value.items is not None else [value]:
            if part.pairs is None:
                self._refuse(part, path, "<< takes a mapping, or a list of mappings")
            self._spend(len(part.pairs) + 1, depth + 1, part, path)
            missing = [(k, v) for k, v in part.pairs if (k.plain and k.text == "<<") or k.text not in data]
            data |= self._mapping(missing, path, depth + 1, as_text)

    def _key(self, key: _Node, path: Path) -> str:
        if key.items is not None or key.pairs is not None:
            self._refuse(key, path, "a key must be text, not a list or a mapping")
        if key.plain and not isinstance(resolve(key.text), str):
            self._refuse(key, path, f"the key {describe(resolve(key.text))} must be text; put quotes around it")
        return key.text

    def _refuse(self, node: _Node, path: Path, message: str) -> NoReturn:
        raise SpecError([Problem(message, path, *node.mark, filename=self._source.filename)])
