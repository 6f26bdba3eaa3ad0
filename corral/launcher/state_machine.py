"""State machines as tables from (state, trigger) to a rule, which can be drawn and checked as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from corral.kernel.errors import CorralError

S = TypeVar("S", bound=StrEnum)


class InvalidTransition(CorralError):
    """An impossible event: a defect of its sender. `details` has the state and the event."""

    def __init__(self, message: str, **story: object) -> None:
        super().__init__("invalid-transition", message, **story)


class Row(NamedTuple):
    """One rule: its action, the states that it may lead to, and a note if it does nothing."""

    act: Callable[..., None]
    exits: tuple[StrEnum, ...] = ()
    note: str = ""


def go(act: Callable[..., None], *exits: StrEnum) -> Row:
    """A rule that runs `act` and may lead to `exits`."""
    return Row(act, exits)


def ignore(note: str) -> Row:
    """A rule that changes nothing, because of `note`."""
    return Row(_nothing, (), note)


def impossible(note: str) -> Row:
    """A rule for an event that cannot happen here, because of `note`; it raises InvalidTransition."""

    def refuse(change: Any, subject: object, trigger: object) -> None:
        raise change.invalid(note, subject, trigger)

    return Row(refuse, (), note)


def _nothing(change: object, subject: object, trigger: object) -> None:
    """The action of `ignore`."""


class Machine(Generic[S]):
    """A whole state machine: one row per state and trigger."""

    def __init__(self, name: str, states: type[S], rows: Mapping[S, Mapping[type, Row]]) -> None:
        self.name = name
        self.states = states
        self.rows = {(state, trigger): row for state, by_trigger in rows.items() for trigger, row in by_trigger.items()}
        self.triggers = tuple(dict.fromkeys(trigger for _, trigger in self.rows))
        self.arrows = {state: self._exits(state) for state in states}

    def _exits(self, state: S) -> frozenset[StrEnum]:
        return frozenset(to for (start, _), row in self.rows.items() if start is state for to in row.exits)

    def check(self, start: S, *path: S) -> None:
        """Raise InvalidTransition unless the table has an arrow for every hop of `path` from `start`."""
        for state in path:
            if state not in self.arrows[start]:
                raise InvalidTransition(f"the {self.name} machine has no arrow from {start} to {state}")
            start = state


def diagram(machine: Machine[Any]) -> str:
    """Draw the machine as a mermaid state diagram; each arrow is labelled with its triggers."""
    labels: dict[tuple[StrEnum, StrEnum], list[str]] = {}
    for (state, trigger), row in machine.rows.items():
        for to in row.exits:
            labels.setdefault((state, to), []).append(trigger.__name__)
    states = list(machine.arrows)
    lines = ["stateDiagram-v2", f"    [*] --> {states[0].name}"]
    for state in states:
        for to in states:
            if (state, to) in labels:
                lines.append(f"    {state.name} --> {to.name}: {', '.join(labels[state, to])}")
    lines.append(f"    {states[-1].name} --> [*]")
    return "\n".join(lines) + "\n"
