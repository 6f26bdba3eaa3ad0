"""Replace the secrets in the text of an OpenPAI file by placeholders.

People get back the file that they wrote, with its comments, so the text is edited in place at the parser's positions.
The result is parsed again, and a text that may still contain a secret is not kept.
"""

from __future__ import annotations

import copy
import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from corral.compat.openpai.language.command_template import as_text
from corral.compat.openpai.language.secret_search import WHOLE_WORD, Needles, TooMuchWork, folded, folded_comments
from corral.compat.openpai.language.translation import is_template
from corral.spec.errors import Path, SpecError
from corral.spec.own_file import MASK, NO_SECRET
from corral.spec.yaml_source import Source, decoded, parse_source

_QUOTED: Final = f'"{MASK}"'
_BOM: Final = "\ufeff"
_LEAST: Final = 4
"""Characters below which a secret may equal a value of another field by chance."""
_LEAST_WORK, _MOST_WORK = 10_000, 8
"""Maximum comparisons with secrets for any text, plus those per character of the text."""
_COMMENT: Final = re.compile(r"(?:(?<=\s)|^)#[^\n]*", re.MULTILINE)
_ANCHOR: Final = re.compile(r"&\S+\s+")


def secret_places(data: Any) -> dict[Path, str]:
    """Paths of the secrets in a parsed protocol, valid or not, each with the name that it is sealed under.

    The name of a registry's password includes the registry, so that it is never used for another one.
    """
    if not isinstance(data, dict):
        return {}
    found = {path: _json(path) for path in _scalars(data.get("secrets"), ("secrets",)) if len(path) > 1}
    given = data.get("prerequisites")
    for index, each in enumerate(given if isinstance(given, list) else ()):
        auth = each.get("auth") if isinstance(each, dict) else None
        password = auth.get("password") if isinstance(auth, dict) else None
        if auth is None or password is None or isinstance(password, dict | list) or is_template(password):
            continue
        name = ["prerequisites", each.get("type"), each.get("name"), auth.get("registryuri")]
        found["prerequisites", index, "auth", "password"] = _json([as_text(part) for part in name])
    return found


def fill_in(source: Source, sealed: Mapping[str, str]) -> None:
    """Put the secrets of the job that a text came from in place of its placeholders.

    Raises SpecError with a problem for each that `sealed` lacks.
    """
    problems = []
    for path, name in secret_places(source.data).items():
        if _at(source.data, path) != MASK:
            continue
        if name in sealed:
            _put(source.data, path, sealed[name])
        else:
            problems.append(source.problem(path, NO_SECRET))
    if problems:
        raise SpecError(problems)


def without_secrets(text: str, filled: Mapping[str, Any], filename: str) -> tuple[str, dict[str, str]] | None:
    """The text with placeholders, and its secrets by the names they are sealed under; None if one may remain.

    `filled` is the data parsed from the text, without placeholders.
    """
    places = secret_places(filled)
    secrets = {name: as_text(_at(filled, path)) for path, name in places.items()}
    if not places:
        return text, {}
    told = decoded(text, filename)
    if any(value.isspace() for value in secrets.values()):
        return None
    try:
        needles = set(_written_in(told, places)).union(*map(_written, secrets.values()))
        masked = _without_comments_of(_masked(told, places), needles)
        is_proved = _is_proved(told, masked, places, needles, filename)
    except (SpecError, yaml.YAMLError, TooMuchWork):
        return None
    if not is_proved:
        return None
    return (text if masked == told else text[: len(text) - len(text.lstrip(_BOM))] + masked), secrets


class _Span(NamedTuple):
    path: Path | None
    """None for a key."""
    begin: int
    end: int
    value: str | None
    """None for an alias."""


def _masked(text: str, places: Collection[Path]) -> str:
    """The text with a placeholder at each of `places` that has none yet."""
    parts, last = [], 0
    for span in _spans(text):
        if span.path not in places or span.value == MASK:
            continue
        written = text[span.begin : span.end]
        ending = written[len(written.rstrip("\r\n")) :] if written[:1] in ("|", ">") else ""
        parts += [text[last : span.begin], _QUOTED, ending]
        last = span.end
    return "".join([*parts, text[last:]])


def _without_comments_of(text: str, needles: Collection[str]) -> str:
    """The text with placeholders in comments that repeat a secret.

    Raises TooMuchWork.
    """
    looking = _looking_for(needles, text)
    parts, last = [], 0
    for begin, end in _gaps(text):
        gap = text[begin:end]
        found = deque(looking.spans(gap))
        for comment in _COMMENT.finditer(gap) if found else ():
            while found and found[0][1] <= comment.end():
                first, behind = found.popleft()
                if first >= comment.start():
                    parts += [text[last : begin + first], MASK]
                    last = begin + behind
    return "".join([*parts, text[last:]])


def _looking_for(needles: Iterable[str], text: str) -> Needles:
    return Needles(needles, _LEAST_WORK + _MOST_WORK * len(text))


def _is_proved(text: str, masked: str, places: Collection[Path], needles: Collection[str], filename: str) -> bool:
    """Whether the masked text has the same data except for its secrets, and contains none of them.

    Secrets shorter than _LEAST are searched for only outside keys and values.
    """
    expected = copy.deepcopy(parse_source(text, filename).data)
    for path in places:
        _put(expected, path, MASK)
    found = parse_source(masked, filename).data
    if found != expected:
        return False
    said = "\0".join(map(folded, _texts(found)))
    between = "\0".join(masked[begin:end] for begin, end in _gaps(masked))
    longer = _looking_for([each for each in needles if len(each) >= _LEAST], masked)
    shorter = _looking_for([each for each in needles if len(each) < _LEAST], masked)
    anywhere = longer.stand_in(said) or longer.stand_in(folded_comments(masked))
    return not anywhere and not shorter.stand_in(folded_comments(between))


def _written(value: str) -> Iterator[str]:
    """The ways in which a text may write a secret, except for unusual escapes; all folded."""
    if value == MASK:
        return
    for each in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], value.replace("'", "''")):
        yield folded(each)
    yield folded_comments(value)
    yield from _long_lines(value)


def _written_in(text: str, places: Collection[Path]) -> Iterator[str]:
    """The secrets as the text writes them, with escapes and line breaks; all folded."""
    for span in _spans(text):
        if span.path not in places or span.value in (None, MASK):
            continue
        written = text[span.begin : span.end]
        if written[:1] in ("|", ">"):
            written = written.partition("\n")[2]
        elif written[:1] in ("'", '"'):
            written = written[1:-1]
        yield folded(written)
        yield from _long_lines(written)


def _long_lines(text: str) -> Iterator[str]:
    """Each line of at least WHOLE_WORD characters, without the backslash that joins it to the next."""
    lines = (folded(line.rstrip().removesuffix("\\")) for line in text.splitlines())
    return (line for line in lines if len(line) >= WHOLE_WORD)


def _gaps(text: str) -> list[tuple[int, int]]:
    """Ranges of the text outside keys and values; includes a block scalar's first line, which may have a comment."""
    gaps, last = [], 0
    for span in _spans(text):
        begin = span.begin
        if text[begin : begin + 1] in ("|", ">") and span.value is not None:
            ending = text.find("\n", begin, span.end)
            begin = span.end if ending < 0 else ending
        gaps.append((last, begin))
        last = span.end
    gaps.append((last, len(text)))
    return [gap for gap in gaps if gap[0] < gap[1]]


def _spans(text: str) -> Iterator[_Span]:
    """Every scalar and alias of the text, keys included, in order, without its anchor."""
    events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield from _spans_of(text, next(events), events, ())


def _spans_of(text: str, event: Any, events: Iterator[Any], path: Path | None) -> Iterator[_Span]:
    if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
        yield _span(text, event, path)
    elif isinstance(event, yaml.SequenceStartEvent):
        index = 0
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            yield from _spans_of(text, inner, events, None if path is None else (*path, index))
            index += 1
    else:
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            yield from _spans_of(text, key, events, None)
            named = path is not None and isinstance(key, yaml.ScalarEvent)
            yield from _spans_of(text, next(events), events, (*(path or ()), key.value) if named else None)


def _span(text: str, event: Any, path: Path | None) -> _Span:
    begin, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return _Span(path, begin, end, None)
    if event.anchor is not None and (anchor := _ANCHOR.match(text, begin, end)):
        begin = anchor.end()
    return _Span(path, begin, end, event.value)


def _scalars(value: Any, path: Path) -> Iterator[Path]:
    """The paths of the values that are neither collections nor null."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _scalars(inner, (*path, index))
    elif value is not None:
        yield path


def _texts(value: Any) -> Iterator[str]:
    """Every key and value as text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield as_text(value)


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _put(data: Any, path: Path, value: str) -> None:
    _at(data, path[:-1])[path[-1]] = value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
