"""The groups of waiting gangs as plans read them, listed anew only when a group comes or goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from corral.scheduler.queues.waiting_queue import Finding, Group

Holder = tuple[str, str]
"""A queue and a user."""


class Turns(NamedTuple):
    """The groups of one user of a queue, by their numbers in a list."""

    runs: tuple[tuple[int, ...], ...]
    """Groups whose first gangs have one rank, by their first gangs; the lowest rank first."""
    turned: bool
    """Whether a gang of theirs has a turn of its own."""


class GroupList:
    """Groups that a plan handles one after the other, with what their order reads of all of them."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self.groups: Sequence[Group] = [*groups]
        few = len(self.groups) < 2
        self.kinds = len(self.groups) if few else len({group.finding for group in self.groups})
        """How many findings they share."""
        self.several_queues = not few and len({group.queue for group in self.groups}) > 1
        self.several_users = not few and len({group.user for group in self.groups}) > 1
        self._numbers: dict[Holder, list[int]] = {}
        self._turns: dict[Holder, Turns] = {}
        for at, group in enumerate(self.groups if self.several_users else ()):
            self._numbers.setdefault(group.holder, []).append(at)
        self._changed = set(self._numbers)

    def note(self, group: Group) -> None:
        """Note that a gang of a group, which may be of another list, came or went."""
        if group.holder in self._numbers:
            self._changed.add(group.holder)

    def turns(self) -> Mapping[Holder, Turns]:
        """Return the groups by queue and user, where there are several users; O(groups of those that changed)."""
        for holder in self._changed:
            self._turns[holder] = self._sorted(self._numbers[holder])
        self._changed.clear()
        return self._turns

    def _sorted(self, numbers: Iterable[int]) -> Turns:
        groups = self.groups
        order = sorted(numbers, key=lambda at: groups[at].keys[0])
        runs = tuple(tuple(run) for _, run in groupby(order, key=lambda at: groups[at].lead.rank))
        return Turns(runs, any(groups[at].lead.turned for at in order))


_NO_GROUPS: Final = GroupList(())


class GroupLists:
    """All groups of a queue in the lists that plans read."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._groups = [*groups]
        self._made: list[GroupList] = []
        self.queues = frozenset([group.queue for group in self._groups])
        """The queues with waiting gangs."""
        # Not `cached_property`, which takes a lock: lists are made anew for each gang that is alone in the queue.
        self._starting: GroupList | None = None
        self._usual: GroupList | None = None
        self._opportunistic: GroupList | None = None
        self._growing: GroupList | None = None
        self._firsts: dict[Finding, Group] | None = None

    @property
    def starting(self) -> GroupList:
        """Return those with a minimum."""
        if self._starting is None:
            self._starting = self._list([group for group in self._groups if group.starts])
        return self._starting

    @property
    def usual(self) -> GroupList:
        """Return those with a minimum that are not opportunistic."""
        if self._usual is None:
            self._usual = self._list([group for group in self._groups if group.starts and group.priority >= 0])
        return self._usual

    @property
    def opportunistic(self) -> GroupList:
        """Return those with a minimum and a priority below 0."""
        if self._opportunistic is None:
            self._opportunistic = self._list([group for group in self._groups if group.starts and group.priority < 0])
        return self._opportunistic

    @property
    def growing(self) -> GroupList:
        """Return growth of running gangs."""
        if self._growing is None:
            self._growing = self._list([group for group in self._groups if not group.starts])
        return self._growing

    @property
    def firsts(self) -> Mapping[Finding, Group]:
        """Return the first group of each finding."""
        if self._firsts is None:
            self._firsts = {}
            for group in self._groups:
                self._firsts.setdefault(group.finding, group)
        return self._firsts

    def _list(self, groups: Sequence[Group]) -> GroupList:
        if not groups:
            return _NO_GROUPS
        made = GroupList(groups)
        self._made.append(made)
        return made

    def note(self, group: Group) -> None:
        """Note that a gang of a group came or went."""
        for each in self._made:
            each.note(group)
