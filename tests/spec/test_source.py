"""Text from outside is read as YAML 1.2 within bounds, whatever its content."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corral.spec.cluster import load_cluster
from corral.spec.errors import SpecError
from corral.spec.job_reader import load_job
from corral.spec.yaml_source import MAX_BYTES, MAX_DEPTH, parse_source, plain_json

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("12", 12),
        ("-12", -12),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),
        ("1_000", "1_000"),
        ("12:30:00", "12:30:00"),
        ("1e3", 1000.0),
        ("3.10", 3.1),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 40, "9" * 40),
        ("2026-11-21", "2026-11-21"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("=", "="),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    data = parse_source(f"a: {text}").data
    assert data == {"a": value}
    assert type(value) in type(data["a"]).__mro__


def test_scalars_stay_as_written_where_text_is_meant() -> None:
    text = "env: {A: 3.10, B: yes, C: True, D: 007, E: , F: {g: 1.0}}\nn: 3.10\n"
    source = parse_source(text, text_under=frozenset({"env"}))
    assert source.data["env"] == {"A": "3.10", "B": "yes", "C": "True", "D": "007", "E": None, "F": {"g": "1.0"}}
    assert source.data["n"].source == "3.10"


def test_every_value_knows_where_it_was_written() -> None:
    source = parse_source("a:\n  - b\n  - {c: d}\n")
    assert source.values == {(): (1, 1), ("a",): (2, 3), ("a", 0): (2, 5), ("a", 1): (3, 5), ("a", 1, "c"): (3, 9)}
    assert source.keys == {("a",): (1, 1), ("a", 1, "c"): (3, 6)}


def test_aliases_and_merges_mean_what_they_mean_elsewhere() -> None:
    text = "base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\nboth: {<<: [{z: 1}, *b]}\nsame: *b\n"
    data = parse_source(text).data
    assert data["own"] == {"x": 1, "y": 3}
    assert data["both"] == {"x": 1, "y": 2, "z": 1}
    assert data["same"] == data["base"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "more than 100000 values once its aliases are expanded"),
        (
            "a: &a {" + ",".join(f"k{n}: 1" for n in range(1000)) + "}\nb: {<<: [" + "*a," * 9000 + "]}",
            "more than 100000 values once its aliases are expanded",
        ),
        ("a: &a [*a]", "the alias *a contains itself"),
        ("a: &a {<<: *a}", "the alias *a contains itself"),
        ("[" * 100_000, f"nested deeper than {MAX_DEPTH} levels"),
        ("- " * 100_000, f"nested deeper than {MAX_DEPTH} levels"),
        ("? " * 100_000, f"nested deeper than {MAX_DEPTH} levels"),
        ("[" + "1," * 150_000 + "]", "more than 100000 values"),
        ("a: !!python/object/apply:os.system [ls]", "means nothing here"),
        ("x" * (MAX_BYTES + 1), "longer than 1048576 bytes"),
        ("é" * (MAX_BYTES // 2 + 1), "longer than 1048576 bytes"),
        ("a: \x07", "control characters are not allowed"),
        ("\ud800", "not UTF-8 text"),
        ("{a: 1, a: 2}", "repeated; it was already given in line 1"),
        ("a: &x 1\nb: {<<: *x}", "<< takes a mapping"),
    ],
)
def test_hostile_text_is_refused_early(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_source(text)
    assert said in str(caught.value)


def test_nested_aliases_count_towards_the_depth() -> None:
    text = "a: &a0 [x]\n" + "".join(f"k{n}: &a{n + 1} [*a{n}]\n" for n in range(100))
    with pytest.raises(SpecError, match="nested deeper than 64 levels once its aliases are expanded"):
        parse_source(text)


def test_nested_merges_count_towards_the_depth() -> None:
    text = "k0: &a0 {x: 1}\n" + "".join(f"k{n + 1}: &a{n + 1} {{<<: *a{n}}}\n" for n in range(5000))
    with pytest.raises(SpecError, match="nested deeper than 64 levels once its aliases are expanded"):
        parse_source(text)


@pytest.mark.parametrize(
    "value",
    [
        "\U0001f600",
        "\\ud83d\\ude00",
        '\\"\U0001f600',
        "\\\\\U0001f600",
        "/\t\n",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\uffff",
    ],
)
def test_json_is_read_as_json(value: str) -> None:
    assert parse_source(json.dumps({"a": [value]})).data == {"a": [value]}
    assert parse_source(json.dumps({"a": [value]}, ensure_ascii=False)).data == {"a": [value]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4))
@example({"<<": {"a": 1}})
def test_any_json_document_is_read_as_it_is(data: dict[str, Any]) -> None:
    assert parse_source(json.dumps(data)).data == data
    assert parse_source(json.dumps(data, ensure_ascii=False)).data == data


WORDS = (
    "name roles worker w a command x env replicas resources devices kind spec metadata apiVersion UnifiedJob",
    "corral.dev/v1alpha1 parameters racks nodes queues node count {min: 1, max: 2} [a] <% $parameters.x %> &a *a <<",
    "true null 1 -1 2Gi 3.10 'q \" | > ? - : , [ ] { } # ! %",
)
words = st.sampled_from(" ".join(WORDS).split(" "))
lines = st.lists(st.tuples(st.integers(0, 4), st.lists(words, min_size=1, max_size=5)), max_size=12)


@given(lines)
def test_no_text_made_of_our_own_words_is_ever_more_than_refused(parts: list[tuple[int, list[str]]]) -> None:
    text = "\n".join(" " * indent + ": ".join(line) for indent, line in parts)
    _only_refused(text)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_at_all_is_ever_more_than_refused(text: str | bytes) -> None:
    _only_refused(text)


@given(json_values)
def test_no_data_is_ever_more_than_refused(data: Any) -> None:
    for document in (data, {"name": "a", "roles": data}, {"name": "a", "roles": {"w": data}}, {"nodes": data}):
        _only_refused(json.dumps(document))
        if isinstance(document, dict):
            _only_refused(document)


def _only_refused(document: Any) -> None:
    for load in (load_job, load_cluster):
        try:
            load(document)
        except SpecError as refusal:
            assert refusal.problems
            assert str(refusal).isprintable() or "\n" in str(refusal)


_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.sampled_from(["env", "a"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_JSON_VALUES, st.booleans())
@example({"env": {"a": 1, "b": True, "c": None, "d": [12]}, "a": 7}, True)
def test_short_json_is_read_alike_with_and_without_positions(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    quick = plain_json(text.encode("utf-8", "surrogatepass"), "job", frozenset({"env"}))
    if quick is not None:
        slow = parse_source(text, "job", frozenset({"env"}))
        assert (quick.data, repr(quick.data)) == (slow.data, repr(slow.data))


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": 1.0}', '{"a": 1e3}', '{"a": NaN}', '{"a": -0}', '{"a": "\\u0041"}', "[" * 100, "a: 1"],
)
def test_what_json_and_yaml_may_read_differently_is_left_to_the_parser_with_positions(text: str) -> None:
    assert plain_json(text, "job") is None


def test_a_mistake_in_json_is_told_with_its_line() -> None:
    text = '{"name": "a", "framework": "shell",\n "roles": {"worker": {"replicas": "many", "command": ["true"]}}}'
    with pytest.raises(SpecError) as refused:
        load_job(text)
    assert refused.value.problems[0].line == 2
