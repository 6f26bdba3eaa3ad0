"""Every setting, command, endpoint and document field is explained, and the generated pages are up to date."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from docs import generate

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("generator", generate.GENERATORS, ids=lambda generator: str(generator.__name__))
def test_generated_pages_are_up_to_date(generator: Callable[[], dict[str, str]]) -> None:
    for path, text in generator().items():
        written = (ROOT / "docs" / path).resolve()
        name = written.relative_to(ROOT)
        assert written.is_file() and written.read_text() == text, f"{name} is out of date: run `make docs`"


def test_every_setting_is_explained() -> None:
    from corral.service.tenant_settings import tenant_settings
    from corral.settings import Settings

    declared = [Settings.model_fields, *(each.model_fields for each in tenant_settings().values())]
    unexplained = [name for fields in declared for name, field in fields.items() if not _explains(field.description)]
    assert not unexplained


def test_every_command_and_option_is_explained() -> None:
    from corral.cli.command_table import corral

    unexplained: list[str] = []

    def visit(command: click.Command, path: str) -> None:
        if not _explains(command.help):
            unexplained.append(path)
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden and not _explains(param.help, words=2):
                unexplained.append(f"{path} {param.opts[0]}")
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                visit(inner, f"{path} {name}")

    visit(corral, "corral")
    assert not unexplained


def test_every_endpoint_and_parameter_is_explained() -> None:
    unexplained = []
    for path, methods in generate.openapi()["paths"].items():
        for method, said in methods.items():
            if not _explains(said.get("description"), words=2):
                unexplained.append(f"{method} {path}")
            unexplained += [
                f"{method} {path} {each['name']}"
                for each in said.get("parameters", [])
                if each["in"] != "path" and not _explains(each.get("description"), words=2)
            ]
    assert not unexplained


@pytest.mark.parametrize("form", ["short_schema", "canonical_schema", "cluster_schema"])
def test_every_document_field_is_explained(form: str) -> None:
    from corral.spec import schema

    document = getattr(schema, form)()
    unexplained: list[str] = []

    def visit(part: dict[str, Any], path: str) -> None:
        for name, said in part.get("properties", {}).items():
            target = document["$defs"].get(said.get("$ref", "").rsplit("/", 1)[-1], {})
            if not _explains(said.get("description") or target.get("description"), words=2):
                unexplained.append(f"{path}.{name}")

    visit(document, form)
    for name, part in document["$defs"].items():
        visit(part, name)
    assert not unexplained


def pages() -> list[str]:
    """Every page of the documentation, and the readme."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@pytest.mark.parametrize("page", pages())
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    broken = [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()]
    assert not broken


def test_every_reference_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    missing = [
        page for page in pages() if page.startswith("docs/") and page != "docs/index.md" and page[5:] not in index
    ]
    assert not missing, f"name these in docs/index.md: {missing}"


def _explains(text: str | None, words: int = 3) -> bool:
    return bool(text) and len(str(text).split()) >= words


def test_every_row_of_a_table_has_the_cells_of_its_head() -> None:
    odd = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        cells, quoted = 0, False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            quoted ^= line.lstrip().startswith("```")
            found = line.replace("\\|", "").count("|") if line.startswith("|") and not quoted else 0
            if cells and found and found != cells:
                odd.append(f"{page.relative_to(ROOT)}:{number}")
            cells = cells if cells and found else found
    assert not odd, "these rows belong to another table"
