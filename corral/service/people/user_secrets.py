"""Store the secrets of users, sealed, for their jobs to read."""

from __future__ import annotations

import re
from typing import Final

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.views import SecretView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

_SECRET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_SECRET_BYTES: Final = 64 * 1024
_MAX_SECRETS: Final = 1000


class Secrets:
    """The secrets of users."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def names(self, actor: Actor) -> list[SecretView]:
        """The names of the actor's secrets."""
        await self._context.check(actor, "secret.list", Resource("secret", owner=actor.user))
        return [SecretView(name) for name in await self._store.secrets(_owner(actor))]

    async def put(self, actor: Actor, name: str, value: str) -> None:
        """Store a secret of the actor, sealed.

        Raises InvalidInput for a name or a size out of bounds, Conflict `too-many-secrets`.
        """
        resource = Resource("secret", name, owner=actor.user)
        decision = await self._context.check(actor, "secret.put", resource)
        if not _SECRET.fullmatch(name):
            raise InvalidInput(
                "bad-secret-name", "A secret's name has letters, digits, . _ - and begins with one of the first two."
            )
        if len(value.encode("utf-8", "replace")) > _SECRET_BYTES:
            raise InvalidInput("secret-too-long", f"A secret has at most {_SECRET_BYTES} bytes.")
        there = await self._store.secrets(_owner(actor))
        if name not in there and len(there) >= _MAX_SECRETS:
            raise Conflict("too-many-secrets", f"There are {_MAX_SECRETS} secrets already; delete some first.")
        await self._store.put_secret(
            _owner(actor), name, self._context.secret_box.seal(_owner(actor), name, value), self._clock.now()
        )
        await self._context.note(actor, "secret.put", resource, decision)

    async def delete(self, actor: Actor, name: str) -> None:
        """Delete a secret; jobs that received it keep it.

        Raises NotFound.
        """
        resource = Resource("secret", name, owner=actor.user)
        decision = await self._context.check(actor, "secret.delete", resource)
        if not await self._store.remove_secret(_owner(actor), name):
            raise NotFound("secret-not-found", f"There is no secret {name[:100]} of yours.")
        await self._context.note(actor, "secret.delete", resource, decision)


def _owner(actor: Actor) -> str:
    return f"user:{actor.user}"
