"""The page about OpenPAI covers its whole contract, and every test that it names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from corral.model.exits import EXIT_SPECS, RESERVED_SPECS
from tests.api.openpai_description import load, operations

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "openpai.md").read_text()
_TEST = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")
_NAMES = {
    "{user}~{job}": ":id", "{user}": ":u", "{group}": ":g", "{vc}": ":vc", "{storage}": ":name", "{token}": ":token",
    "{jobAttemptId}": ":n", "{attemptIndex}": ":n", "{taskRoleName}": ":r", "{taskIndex}": ":i", "{taskAttemptId}": ":m",
}  # fmt: skip


def section(title: str) -> str:
    """The text below a heading."""
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The rows of the tables below a heading, without their heads."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if not set(row[0]) <= {"-", "|"} and row[-1] != "test"]


def paths(cell: str) -> Iterator[str]:
    """The operations of a row, each a method and a path."""
    methods, _, rest = cell.partition("`")
    for path in re.findall(r"[^`, ]*/[^`, ]*", rest):
        plain = re.sub(r"\[\?.*?\]", "", path).replace("…/attempts", "/jobs/:id/attempts").replace(":user~:job", ":id")
        for method in methods.replace(",", " ").split():
            yield f"{method} {plain}"


def test_every_test_that_is_named_is_there() -> None:
    named = _TEST.findall(PAGE)
    assert len(named) > 200
    for file, name in named:
        path = ROOT / "tests" / file
        assert path.is_file(), file
        assert not name or re.search(rf"^(?:async )?def {name}\(", path.read_text(), re.MULTILINE), f"{file}::{name}"


def test_every_row_names_a_test_and_nothing_is_planned() -> None:
    for title in re.findall(r"^## (.*)$", PAGE, re.MULTILINE):
        for row in rows(title):
            assert _TEST.search(row[-1]), row
    assert "planned" not in PAGE.lower()


def test_every_operation_of_the_description_has_a_row(data_folder: Path) -> None:
    named = {each for row in rows("Operations of version 2") for each in paths(row[0])}
    for method, path, _ in operations(load(data_folder)):
        plain = path.removeprefix("/api/v2").rstrip("/")
        for theirs, ours in _NAMES.items():
            plain = plain.replace(theirs, ours)
        assert f"{method} {plain}" in named, f"{method} {plain}"


def test_every_exit_code_has_a_row_with_what_it_brings_about() -> None:
    told = {int(row[0]): (row[1], row[2]) for row in rows("Exit codes")}
    specs = EXIT_SPECS | RESERVED_SPECS
    assert told == {code: (spec.phrase, spec.reaction) for code, spec in specs.items()}
    assert len(EXIT_SPECS) == 62


def test_every_field_of_the_protocol_has_a_row(data_folder: Path) -> None:
    schema = yaml.safe_load((data_folder / "openpai" / "spec" / "protocol-v2.schema.yaml").read_text())
    told = " ".join(row[0] for row in rows("Protocol v2"))
    for field in sorted(set(_properties(schema["components"]["schemas"]))):
        assert re.search(rf"\b{field}\b", told), field


def test_every_difference_that_is_pointed_to_is_told() -> None:
    told = len(re.findall(r"^\d+\. ", section("What is different, and why"), re.MULTILINE))
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    pointed = {int(number) for number in re.findall(r"\((\d{1,2})\)", tables)}
    assert pointed == set(range(1, told + 1))


def _properties(thing: Any) -> Iterator[str]:
    if isinstance(thing, list):
        for each in thing:
            yield from _properties(each)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            if key == "properties" and isinstance(value, dict):
                yield from value
            if key != "example":
                yield from _properties(value)
