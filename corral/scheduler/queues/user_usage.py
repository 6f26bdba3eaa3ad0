"""Current and past usage of each user of a queue; it orders gangs of equal rank under the fair policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, log
from operator import add

from corral.model.queues import UserUsage

HALF_LIFE = 86_400.0
"""The default half-life in seconds, for queues without their own."""
_DIGITS = 9
"""Decimals to which usage shares are compared, so that use of weeks ago makes no difference."""
_FORGOTTEN = 20
"""Half-lives without holdings after which past usage is dropped; about a millionth of it is left then."""

_LOG_2 = log(2)

Key = tuple[str, str]
"""A queue and a user."""


class Use:
    """One user's current usage of a queue, and its decaying average until `seen`."""

    __slots__ = ("past", "seen", "used")

    def __init__(self, used: list[int], past: list[float], seen: float) -> None:
        self.used = used
        self.past = past
        self.seen = seen

    def average(self, half_life: float, now: float) -> list[float]:
        """Return the decaying average at `now`."""
        keep = exp(-_LOG_2 * max(0.0, now - self.seen) / half_life)
        return [past * keep + used * (1 - keep) for past, used in zip(self.past, self.used, strict=True)]


class Users:
    """The usage of all users in a tree of queues; amounts are queue resource vectors over `names`."""

    def __init__(self, names: Sequence[str]) -> None:
        self.changed: set[Key] = set()
        """The users with past usage that changed since it was last stored."""
        self._names = names
        self._uses: dict[Key, Use] = {}

    def charge(self, queue: str, user: str, amounts: Sequence[int]) -> None:
        """Add the amounts of a user's gang; negative ones are subtracted."""
        found = self._uses.get((queue, user))
        if found is None:
            found = self._uses[queue, user] = self._nothing()
        found.used[:] = map(add, found.used, amounts)
        if not (found.seen or any(found.used)):
            del self._uses[queue, user]

    def remember(self, queue: str, user: str, half_life: float, now: float) -> None:
        """Update the decaying average to `now`, before the user's holdings change."""
        found = self._uses.get((queue, user))
        if found is None:
            found = self._uses[queue, user] = self._nothing()
        if now > found.seen:
            found.past, found.seen = found.average(half_life, now), now
            self.changed.add((queue, user))

    def standing(self, queue: str, user: str, half_life: float, total: Sequence[int], now: float) -> float:
        """Return the dominant share of the mean of current and decayed past usage; 0 for an unknown user."""
        return self.standings([(queue, user)], half_life, total, now)[0]

    def standings(self, keys: Iterable[Key], half_life: float, total: Sequence[int], now: float) -> list[float]:
        """Return `standing` of several users of queues with the same half-life."""
        standings = []
        for key in keys:
            found, highest = self._uses.get(key), 0.0
            if found is not None:
                keep = exp(-_LOG_2 * (now - found.seen) / half_life) if now > found.seen else 1.0
                gone = 1 - keep
                for held, before, all_ in zip(found.used, found.past, total, strict=True):
                    if all_ and (share := (held + (before * keep + held * gone)) / 2 / all_) > highest:
                        highest = share
                highest = round(highest, _DIGITS)
            standings.append(highest)
        return standings

    def usage(self, key: Key) -> UserUsage | None:
        """Return the stored form of a user's past usage; None if the user is forgotten."""
        found = self._uses.get(key)
        if found is None or not found.seen:
            return None
        amounts = {name: amount for name, amount in zip(self._names, found.past, strict=True) if amount}
        return UserUsage(*key, found.seen, amounts)

    def usages(self) -> Iterator[UserUsage]:
        """Yield all remembered usage, by queue and user."""
        for key in sorted(self._uses):
            if (usage := self.usage(key)) is not None:
                yield usage

    def recall(self, usages: Iterable[UserUsage]) -> None:
        """Restore stored usage; users without a record keep only their current usage."""
        for use in self._uses.values():
            use.past = [0.0] * len(self._names)
        for usage in usages:
            use = self._uses.setdefault((usage.queue, usage.user), self._nothing())
            use.past, use.seen = [usage.amounts.get(name, 0.0) for name in self._names], usage.at
        self._uses = {key: use for key, use in self._uses.items() if use.seen or any(use.used)}
        self.changed.clear()

    def forget(self, now: float, half_life: Callable[[str], float]) -> None:
        """Drop users without holdings after their past usage has almost decayed."""
        for key, use in [*self._uses.items()]:
            if not any(use.used) and now - use.seen > _FORGOTTEN * half_life(key[0]):
                del self._uses[key]
                self.changed.add(key)

    def copy(self, *, cleared: bool = False) -> Users:
        """Return an independent copy; with `cleared`, nothing is held in it."""
        twin = Users(self._names)
        twin.changed = set(self.changed)
        for key, use in self._uses.items():
            if use.seen or not cleared:
                used = [0] * len(self._names) if cleared else use.used[:]
                twin._uses[key] = Use(used, use.past[:], use.seen)
        return twin

    def columns(self) -> list[tuple[Key, list[int]]]:
        """Return all current holdings, for hashing and comparing."""
        return sorted((key, use.used) for key, use in self._uses.items() if any(use.used))

    def _nothing(self) -> Use:
        return Use([0] * len(self._names), [0.0] * len(self._names), 0.0)
