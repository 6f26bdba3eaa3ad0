"""Resolve the name of a node, written with or without its engine."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from corral.cli.paging import items
from corral.kernel.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from corral.client.sync import Client

_NEAR: Final = 3
"""Names that a message suggests at most."""
_LONGEST: Final = 100
"""Characters of an unknown name that a message repeats."""


def node_named(client: Client, word: str) -> str:
    """Return ENGINE/NODE; a name without an engine is that of the only node which has it.

    Raises NotFound, with the nearest names, and InvalidInput where several engines have such a node. What has an engine
    is left to the server.
    """
    return nodes_named(client, (word,))[0]


def nodes_named(client: Client, words: Sequence[str]) -> list[str]:
    """Return the same of each name; the nodes are listed once, and only for names without an engine."""
    names = [] if all("/" in word for word in words) else [node["name"] for node in items(client.nodes)]
    return [word if "/" in word else _among(names, word) for word in words]


def _among(names: Sequence[str], word: str) -> str:
    alike = [name for name in names if name.partition("/")[2] == word]
    if len(alike) == 1:
        return alike[0]
    if alike:
        several = f"Several engines have a node {word[:_LONGEST]}; name one of them: {', '.join(alike[:_NEAR])}."
        raise InvalidInput("ambiguous-node", several)
    near = get_close_matches(word[:_LONGEST], {name.partition("/")[2] for name in names}, n=_NEAR)
    meant = [name for name in names if name.partition("/")[2] in near][:_NEAR]
    hint = f"did you mean {' or '.join(meant)}?" if meant else "`corral nodes` lists them."
    raise NotFound("node-not-found", f"There is no node {word[:_LONGEST]}; {hint}")
