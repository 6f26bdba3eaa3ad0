"""The service is made of components that stand apart, with the context and each other for all they know."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Generic

import pytest

from corral.compat.openpai.service.tenant import OpenPai
from corral.service.context import Context
from corral.service.service import Service

ROOT = Path(__file__).parents[2]
ROOMS = ("corral/service", "corral/compat/openpai/service")
MOST_METHODS = 18
"""Most public methods of one component; OpenPAI's users and groups, which are one table there, have the most."""
Components = dict[str, Any]


def components(whole: object) -> Components:
    found = vars(whole).items()
    return {name: each for name, each in found if not isinstance(each, Context | Service)}


@pytest.fixture(params=["the service", "OpenPAI"])
def parts(request: pytest.FixtureRequest, service: Service, openpai: OpenPai) -> Components:
    return components(service if request.param == "the service" else openpai)


async def test_no_component_inherits_from_another(parts: Components) -> None:
    assert parts
    assert {
        name: found for name, each in parts.items() if (found := type(each).__bases__) not in ((object,), (Generic,))
    } == {}


async def test_a_component_knows_no_whole(parts: Components) -> None:
    wholes = (Service, OpenPai)
    knowing = [name for name, each in parts.items() if any(isinstance(one, wholes) for one in vars(each).values())]
    assert knowing == []


async def test_a_component_has_a_small_face(parts: Components) -> None:
    sizes = {name: sum(not word.startswith("_") for word in vars(type(each))) for name, each in parts.items()}
    assert {name: size for name, size in sizes.items() if size > MOST_METHODS} == {}


def imported() -> dict[str, set[str]]:
    """By module of the service and of OpenPAI's: those modules of both that it imports when it is loaded."""
    found = {}
    for path in (each for room in ROOMS for each in (ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text())
        names = set()
        for each in tree.body:
            if isinstance(each, ast.ImportFrom) and each.module is not None:
                names |= {each.module, *(f"{each.module}.{alias.name}" for alias in each.names)}
            elif isinstance(each, ast.Import):
                names |= {alias.name for alias in each.names}
        found[module] = names
    return {module: names & found.keys() for module, names in found.items()}


def test_the_core_of_the_service_imports_no_tenant() -> None:
    tenant = "corral.compat."
    outside = {module: names for module, names in imported().items() if not module.startswith(tenant)}
    assert {m: n for m, names in outside.items() if (n := {each for each in names if each.startswith(tenant)})} == {}


def test_no_modules_of_the_service_import_each_other_in_a_circle() -> None:
    left = imported()
    while free := {module for module, names in left.items() if not names & left.keys()}:
        left = {module: names for module, names in left.items() if module not in free}
    assert left == {}
