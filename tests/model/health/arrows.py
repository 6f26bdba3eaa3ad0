"""The exits that the docstrings of states name."""

from __future__ import annotations

import ast
import inspect

from corral.model.health import states
from corral.model.health.states import HealthState


def documented_exits() -> dict[HealthState, set[HealthState]]:
    """By state, those after the arrow of its docstring."""
    (made,) = [each for each in ast.parse(inspect.getsource(states)).body if getattr(each, "name", "") == "HealthState"]
    assert isinstance(made, ast.ClassDef)
    found: dict[HealthState, set[HealthState]] = {}
    state: HealthState | None = None
    for each in made.body:
        if isinstance(each, ast.Assign):
            state = HealthState[ast.unparse(each.targets[0])]
        elif isinstance(each, ast.Expr) and state is not None:
            text = str(ast.literal_eval(each.value))
            found[state] = {HealthState(name.strip()) for name in text.partition("->")[2].split(",")}
    return found
