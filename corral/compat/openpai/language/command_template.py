"""Assemble the command of an OpenPAI task: add the chosen deployment's commands and fill in templates.

Secrets are not filled in, so that a stored job never has one: `<% $secrets.NAME %>` is filled in inside the task.
Templates that name nothing stay as they are too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from corral.compat.openpai.language.protocol import PREREQUISITE_TYPES, by_name

_TEMPLATE: Final = re.compile(r"<%\s*(\$[A-Za-z_](?:[^%<>]*[^%<>\s])?)\s*%>", re.ASCII)
"""The name does not end with a blank, so that a long run of blanks is scanned only once."""
_INDEX: Final = re.compile(r"\[\s*(\d{1,9})\s*\]", re.ASCII)
_LEAST_POWER: Final = -6
_MOST_POWER: Final = 21
"""JavaScript writes numbers between these powers of ten without an exponent."""


def render(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol with prerequisites and deployments by name, and each task role's final command as `entrypoint`."""
    rendered = dict(protocol)
    prerequisites = rendered["prerequisites"] = _grouped(protocol.get("prerequisites"))
    deployments = rendered["deployments"] = by_name(protocol.get("deployments"))
    chosen = deployments.get(protocol.get("defaults", {}).get("deployment"), {}).get("taskRoles", {})
    chosen = chosen if isinstance(chosen, dict) else {}  # OpenPAI accepts a list here; it names no role
    roles = protocol["taskRoles"]
    rendered["taskRoles"] = {
        name: {**role, "entrypoint": _entrypoint(protocol, role, chosen.get(name, {}), prerequisites)}
        for name, role in (roles.items() if isinstance(roles, dict) else ())
    }
    return rendered


def _grouped(prerequisites: Any) -> dict[str, dict[str, Any]]:
    if isinstance(prerequisites, dict):
        return prerequisites
    found: dict[str, dict[str, Any]] = {kind: {} for kind in PREREQUISITE_TYPES}
    for each in prerequisites or ():
        found[each["type"]][each["name"]] = each
    return found


def _entrypoint(
    protocol: Mapping[str, Any],
    role: Mapping[str, Any],
    around: Mapping[str, Any],
    prerequisites: Mapping[str, Mapping[str, Any]],
) -> str:
    commands = [*around.get("preCommands", ()), *role["commands"], *around.get("postCommands", ())]
    values = {"$parameters": protocol.get("parameters", {})}
    for kind in ("script", "output", "data"):
        values[f"${kind}"] = prerequisites[kind].get(role.get(kind, ""))
    return fill("\n".join(command.strip() for command in commands), values)


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Fill in every `<% $name.of[0].value %>` that `values` defines.

    An undefined one stays, in OpenPAI's dotted form: `<%$name.of[0]%>` becomes `<% $name.of.0 %>`.
    """

    def value(match: re.Match[str]) -> str:
        found = look_up(values, match[1])
        return f"<% {_dotted(match[1])} %>" if found is None else as_text(found)

    return _TEMPLATE.sub(value, text) if "<%" in text else text


def _dotted(name: str) -> str:
    """A name with its indexes in OpenPAI's dotted form: `$data.uri.0`."""
    return _INDEX.sub(r".\1", name)


def names_used(text: str, root: str) -> set[str]:
    """Names below `root` that the text's templates use: `a` and `b.c` for `$secrets.a` and `$secrets.b.c`."""
    used = set()
    for match in _TEMPLATE.finditer(text):
        first, _, rest = _dotted(match[1]).partition(".")
        if first == root:
            used.add(rest)
    return used


def unfilled(text: str) -> list[str]:
    """The names in the text's templates, in order."""
    return list(dict.fromkeys(match[1] for match in _TEMPLATE.finditer(text)))


def look_up(values: Mapping[str, Any], name: str) -> Any:
    """The value of `name` (`$data.uri[0]`) in `values`; None when there is none."""
    here: Any = values
    for part in _dotted(name).split("."):
        if isinstance(here, Mapping):
            here = here.get(part)
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            return None
    return here


def as_text(value: Any) -> str:
    """A value as JavaScript converts it to text: lists joined by commas, numbers in their shortest form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return ",".join("" if each is None else as_text(each) for each in value)
    return "[object Object]" if isinstance(value, Mapping) else str(value)


def _number(value: float) -> str:
    number = Decimal(repr(value)).normalize()
    power = number.adjusted()
    if _LEAST_POWER <= power < _MOST_POWER:
        return f"{number:f}"
    return f"{number.scaleb(-power):f}e{power:+d}"
