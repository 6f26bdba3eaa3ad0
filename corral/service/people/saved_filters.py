"""The filters of the list of jobs that people save under names; everybody has their own."""

from __future__ import annotations

from corral.kernel.errors import InvalidInput
from corral.kernel.names import is_path_name
from corral.model.records import ENDED_PHASES, JOB_ORDERS, LIVE_PHASES
from corral.model.saved_filters import GROUPS, LONGEST_NAME, PRIORITIES, SavedFilter
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context


class SavedFilters:
    """List, save and delete one's filters."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def all(self, actor: Actor) -> list[SavedFilter]:
        """The actor's filters, by name."""
        await self._context.check(actor, "filter.list", _resource(actor))
        return await self._store.filters_of(actor.user)

    async def save(self, actor: Actor, saved: SavedFilter) -> SavedFilter:
        """Save a filter, in the place of one of the same name.

        Raises InvalidInput for a field that no list takes, Conflict `too-many-filters`.
        """
        await self._context.check(actor, "filter.change", _resource(actor, saved.name))
        _check(saved)
        await self._store.save_filter(actor.user, saved)
        return saved

    async def forget(self, actor: Actor, name: str) -> None:
        """Delete a filter.

        Raises NotFound `filter-not-found`.
        """
        await self._context.check(actor, "filter.change", _resource(actor, name))
        await self._store.forget_filter(actor.user, name)


def _resource(actor: Actor, name: str = "") -> Resource:
    return Resource("filter", name, owner=actor.user)


def _check(saved: SavedFilter) -> None:
    name = saved.name
    if not is_path_name(name, LONGEST_NAME):
        raise InvalidInput(
            "invalid-name",
            f"A filter's name has 1 to {LONGEST_NAME} printable characters, no / and no space at its ends; "
            "it is not `.` or `..`.",
        )
    if wrong := [state for state in saved.state if state not in (*LIVE_PHASES, *ENDED_PHASES)]:
        known = ", ".join((*LIVE_PHASES, *ENDED_PHASES))
        raise InvalidInput("invalid-state", f"There is no state {wrong[0][:50]}; a state is one of {known}.")
    if saved.order and saved.order not in JOB_ORDERS:
        raise InvalidInput("invalid-order", f"The order is one of {', '.join(JOB_ORDERS)}.")
    if saved.group and saved.group not in GROUPS:
        raise InvalidInput("invalid-group", f"Jobs are gathered by one of {', '.join(GROUPS)}.")
    if saved.priority and saved.priority not in PRIORITIES:
        raise InvalidInput("invalid-priority", f"The priority of a filter is one of {', '.join(PRIORITIES)}.")
    words = (saved.user, saved.queue, saved.q, saved.tag)
    if any("\0" in each or not each.isprintable() for each in words):
        raise InvalidInput("invalid-filter", "The words of a filter are printable characters.")
