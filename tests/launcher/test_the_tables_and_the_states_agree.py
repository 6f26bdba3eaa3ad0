"""The states' docstrings, the transition tables and the diagrams agree."""

from __future__ import annotations

import ast
import inspect
import re
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

import corral
from corral.launcher import JOB_MACHINE, TASK_MACHINE, diagram
from corral.launcher.state_machine import InvalidTransition, Machine
from corral.launcher.task_machine import TaskTrigger
from corral.model import states
from corral.model.events import JobEvent
from corral.model.states import JobState, TaskState

MACHINES = pytest.mark.parametrize("machine", [JOB_MACHINE, TASK_MACHINE], ids=lambda machine: machine.name)


def documented(kind: type[StrEnum]) -> dict[str, str]:
    """The docstring of each member, by name."""
    tree = ast.parse(inspect.getsource(states))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    found = {}
    for line, after in pairwise(body):
        if isinstance(line, ast.Assign) and isinstance(after, ast.Expr):
            name = line.targets[0]
            assert isinstance(name, ast.Name)
            found[name.id] = ast.literal_eval(after.value)
    return found


def arrows(text: str) -> set[str]:
    """The exits that a docstring names."""
    match = re.search(r"^\s*-> (.+)$", text, re.MULTILINE)
    assert match, text
    return set() if match[1] == "(end)" else set(match[1].split(" | "))


@MACHINES
def test_the_arrows_in_the_docstrings_are_those_of_the_table(machine: Machine[Any]) -> None:
    said = documented(machine.states)
    assert {state.name: arrows(said[state.name]) for state in machine.states} == {
        state.name: {to.name for to in exits} for state, exits in machine.arrows.items()
    }


@MACHINES
def test_every_state_says_its_invariant(machine: Machine[Any]) -> None:
    for name, text in documented(machine.states).items():
        assert re.match(r"[A-Z].{20,}\.", text.strip()), name


@pytest.mark.parametrize(
    ("machine", "triggers"), [(JOB_MACHINE, get_args(JobEvent)), (TASK_MACHINE, get_args(TaskTrigger))]
)
def test_every_event_has_a_row_in_every_state(machine: Machine[Any], triggers: tuple[type, ...]) -> None:
    assert set(machine.rows) == {(state, trigger) for state in machine.states for trigger in triggers}


@MACHINES
def test_a_row_that_does_nothing_says_why(machine: Machine[Any]) -> None:
    for key, row in machine.rows.items():
        if row.act.__name__ in {"_nothing", "refuse"}:
            assert row.note and not row.exits, key


@MACHINES
def test_the_diagram_shows_every_arrow_once_with_what_leads_along_it(machine: Machine[Any]) -> None:
    text = diagram(machine)
    assert text.startswith("stateDiagram-v2\n    [*] --> CREATION_PENDING\n")
    drawn = re.findall(r"^    (\w+) --> (\w+): (.+)$", text, re.MULTILINE)
    assert {(start, to) for start, to, _ in drawn} == {
        (state.name, to.name) for state, exits in machine.arrows.items() for to in exits
    }
    assert len(drawn) == len({(start, to) for start, to, _ in drawn})
    assert all(labels for _, _, labels in drawn)


def test_a_hop_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(InvalidTransition, match="no arrow from completed to running"):
        TASK_MACHINE.check(TaskState.COMPLETED, TaskState.RUNNING)
    with pytest.raises(InvalidTransition, match="no arrow from running to creation-pending"):
        JOB_MACHINE.check(JobState.RUNNING, JobState.CREATION_PENDING)


def test_the_product_sends_every_event_that_the_tables_know() -> None:
    """A state that only such an event leads to could never happen without a sender."""
    known = {trigger.__name__ for machine in (JOB_MACHINE, TASK_MACHINE) for trigger in machine.triggers}
    sources = (file.read_text() for file in Path(corral.__file__).parent.rglob("*.py"))
    called = {
        node.func.id
        for source in sources
        if any(f"{name}(" in source for name in known)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert known - called == set()
