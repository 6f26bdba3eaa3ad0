"""The tokens of services and slots: signed by a secret of the server's, so that any of its processes can check them.

A token is `KIND.NAME.SIGNATURE`, with HMAC-SHA256. A service's admits its containers; a slot's is for one container of one
job. What a slot may do with its token is the engine's to say (`YarnEngine`).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from corral.kernel.errors import Unauthenticated

_SERVICE, _SLOT, _AGENTS = "service", "slot", "agents"
_LONGEST: Final = 400
"""Characters of a token that are looked at."""


class SlotTokens:
    """Makes and checks the tokens of one server."""

    def __init__(self, secret: bytes) -> None:
        """`secret` has 32 bytes, equal in all processes of the server."""
        self._secret = secret

    def of_service(self, service: str) -> str:
        """The token that the containers of a service are given."""
        return self._signed(_SERVICE, service)

    def of_slot(self, key: str) -> str:
        """The token of a slot; `key` names its job and container."""
        return self._signed(_SLOT, key)

    def of_agent(self, server: str, node: str) -> str:
        """The token by which the agent of a node knows the server; it admits to nothing of the server's."""
        return self._signed(_AGENTS, f"{server}/{node}")

    def service(self, token: str) -> str:
        """The service that a token admits to. Raises Unauthenticated."""
        return self._name(token, _SERVICE)

    def slot(self, token: str) -> str:
        """The key of the slot that a token belongs to. Raises Unauthenticated."""
        return self._name(token, _SLOT)

    def owner(self, token: str) -> str:
        """Who has a token, as `service NAME` or `slot KEY`. Raises Unauthenticated."""
        kind = token.partition(".")[0]
        return f"{kind} {self._name(token, kind if kind in (_SERVICE, _SLOT) else _SLOT)}"

    def _name(self, token: str, kind: str) -> str:
        given, _, rest = token[: _LONGEST + 1].partition(".")
        name = rest.rpartition(".")[0]
        if len(token) > _LONGEST or given != kind or not token.isascii() or not self._is_mine(token, kind, name):
            raise Unauthenticated("slot-refused", "This call needs the token of a slot of this server.")
        return name

    def _is_mine(self, token: str, kind: str, name: str) -> bool:
        return bool(name) and hmac.compare_digest(token, self._signed(kind, name))

    def _signed(self, kind: str, name: str) -> str:
        digest = hmac.new(self._secret, f"{kind} {name}".encode(), hashlib.sha256).hexdigest()
        return f"{kind}.{name}.{digest}"
