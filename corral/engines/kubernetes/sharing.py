"""Why: fifty thousand pods say the same few things fifty thousand times; kept once, they take a third less memory.

What is shared is equal and never changed, so nobody can tell. Only parts without a person's or a component's free text
are shared: they are the ones that repeat, and the pool stays small.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import force_setattr

from corral.engines.kubernetes.objects import Container, Object, Pod, Requirements

MOST_SHARED: Final = 10_000
"""Different parts; with more the pool begins anew."""


class Pool:
    """The parts that were seen before."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}

    def share(self, thing: Object) -> None:
        """Put what was seen before in the place of equal parts of `thing`, which nobody else has yet."""
        if len(self._parts) > MOST_SHARED:
            self._parts.clear()
        if isinstance(thing, Pod):
            conditions = thing.status.conditions
            if conditions and not any(condition.message for condition in conditions):
                force_setattr(thing.status, "conditions", self._parts.setdefault(conditions, conditions))
            for container in thing.spec.containers:
                self._share_requirements(container)

    def _share_requirements(self, container: Container) -> None:
        asked: Requirements = container.resources
        if asked.requests or asked.limits:
            key = (tuple(asked.requests.items()), tuple(asked.limits.items()), asked.claims)
            force_setattr(container, "resources", self._parts.setdefault(key, asked))
