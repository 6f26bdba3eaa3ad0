"""The addresses of agents, as an administrator gives them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from corral.kernel.errors import InvalidInput

NODE: Final = "{node}"
"""In the host of an address, the name of each node."""
DEFAULT_PORT: Final = 9102
_MOST_GIVEN: Final = 1000
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""Names of nodes that can be part of a host's name."""
_PATH: Final = re.compile(r"[!-~]*")


class Address(NamedTuple):
    """One address: a host that may have several network addresses, with an agent at each."""

    encrypted: bool
    host: str
    port: int
    path: str = ""
    node: str = ""
    """The node whose agent this is, where the address was made from its name; else the agent says it."""
    engine: str = ""
    """The engine that runs this agent, and has its token; "" for one of an administrator's."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.encrypted else 'http'}://{host}:{self.port}{self.path}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses of a list separated by commas. Raises InvalidInput for one that is none."""
    given = [word.strip() for word in text.split(",") if word.strip()]
    if len(given) > _MOST_GIVEN:
        raise InvalidInput("invalid-setting", f"At most {_MOST_GIVEN} addresses of agents can be given.")
    return tuple(map(_parsed, given))


def addresses_for(given: Iterable[Address], nodes: Iterable[str]) -> Iterator[Address]:
    """The addresses to ask: one with `{node}` becomes one for each of the nodes whose names a host can have."""
    names = [name for name in nodes if _HOST.fullmatch(name)]
    for each in given:
        if NODE in each.host:
            yield from (each._replace(host=each.host.replace(NODE, name), node=name) for name in names)
        else:
            yield each


def _parsed(text: str) -> Address:
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        host = parts.hostname or ""
        plain = parts.username is None and not parts.query and not parts.fragment
        named = ":" in host or _HOST.fullmatch(host.replace(NODE, "node"))
        if parts.scheme in ("http", "https") and plain and named and _PATH.fullmatch(parts.path):
            encrypted, port = parts.scheme == "https", parts.port or DEFAULT_PORT
            return Address(encrypted, host, port, parts.path.rstrip("/"))
    raise InvalidInput(
        "invalid-setting",
        f"The address of an agent is http://HOST:PORT or https://HOST:PORT, without a user, not {_shown(text)!r}.",
    )


def _shown(text: str) -> str:
    """The address without a password that it may have."""
    return re.sub(r"//[^/]*@", "//", text)[:100]
