"""The waiting gangs, kept in order and grouped by shape, so that a cycle's cost follows changes, not queue length."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Reasons
from corral.model.requests import GangRequest
from corral.scheduler.events import (
    GangNominated,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    NominationLapsed,
    QueueEvent,
    QueuesConfigured,
)
from corral.scheduler.placement.shape import gang_shape
from corral.scheduler.policy.faults import PartFailed, key_of
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import Order, PriorityOrder, QueueKey, rank
from corral.scheduler.queues.group_lists import GroupLists
from corral.scheduler.queues.queue_tree import limiting


class Entry:
    """One waiting gang, and its last reported reasons."""

    __slots__ = ("alike", "group", "key", "reported", "request", "shape")

    def __init__(self, request: GangRequest, key: QueueKey, *, limited: bool, by_user: bool, by_duration: bool) -> None:
        self.request = request
        self.key = key
        self.shape = gang_shape(request)
        person = (request.user, request.groups) if limited else None
        duration = request.max_duration_seconds if by_duration else 0
        self.alike = (request.queue, person, request.priority, request.preemptible, duration, self.shape)
        """Equal for gangs that every rule treats alike, except user turns and, without `by_duration`, durations."""
        self.group = (request.user if by_user else "", self.alike)
        """Equal for gangs that user turns do not tell apart either."""
        self.reported: Reasons | None = None

    def copy(self) -> Entry:
        """Return an independent copy."""
        twin = object.__new__(Entry)
        twin.request, twin.key, twin.shape, twin.alike, twin.group, twin.reported = (
            self.request, self.key, self.shape, self.alike, self.group, self.reported,
        )  # fmt: skip
        return twin


class Finding:
    """The last cycle's result for gangs that differ at most by user and duration; owned by planning.

    It is dropped with the last of its groups.
    """

    __slots__ = ("groups", "verdict")

    def __init__(self, verdict: object = None) -> None:
        self.verdict = verdict
        self.groups = 0
        """The number of groups that share it."""


class Lead(NamedTuple):
    """What the order of groups reads of the gangs of one group."""

    rank: QueueKey
    """The rank of the first gang."""
    turned: bool
    """Whether a gang has a turn of its own."""
    shortest: int
    """The least `max_duration_seconds` of a gang; 0: one has none."""


class Group:
    """The waiting gangs of one shape, in order; rules tell them apart at most by their `maxDuration`."""

    __slots__ = (
        "_lead", "durations", "elastic", "entries", "finding", "fresh", "holder", "keys", "priority", "queue", "reported",
        "shape", "shared", "starts", "user",
    )  # fmt: skip

    def __init__(self, request: GangRequest, shape: Hashable, user: str, finding: Finding) -> None:
        self.shape = shape
        self.queue = request.queue
        self.user = user
        """Their user, where users take turns."""
        self.holder = (request.queue, user)
        self.priority = request.priority
        self.starts = any(role.minimum for role in request.roles)
        """Whether they have a minimum; growth of running gangs has none."""
        self.elastic = any(role.minimum < len(role.indexes) for role in request.roles)
        """Whether they can run with fewer than all their tasks."""
        self.keys: list[QueueKey] = []
        self.durations: dict[int, list[QueueKey]] = {}
        """The same keys by `max_duration_seconds`."""
        self.entries: dict[QueueKey, Entry] = {}
        self.fresh: set[QueueKey] = set()
        """The gangs for which no reasons were reported yet."""
        self.reported: Reasons | None = None
        """The reasons last reported for them."""
        self.finding = finding
        """Shared with the groups of other users."""
        self.shared = False
        """Whether `keys`, `durations` and `entries` are those of the group that this one was copied from."""
        self._lead: Lead | None = None

    @property
    def lead(self) -> Lead:
        """Return what the order of groups reads of their gangs; kept until a gang comes or goes."""
        found = self._lead
        if found is None:
            first, last = self.keys[0], self.keys[-1]
            found = self._lead = Lead(rank(first), bool(first[0]) or first[0] != last[0], min(self.durations))
        return found

    @property
    def verdict(self) -> object:
        """Return the last cycle's result for them."""
        return self.finding.verdict

    @verdict.setter
    def verdict(self, found: object) -> None:
        self.finding.verdict = found

    def add(self, entry: Entry) -> None:
        """Add a gang that no reasons were reported for."""
        self._own()
        self._lead = None
        insort(self.keys, entry.key)
        insort(self.durations.setdefault(entry.request.max_duration_seconds, []), entry.key)
        self.entries[entry.key] = entry
        self.fresh.add(entry.key)

    def remove(self, entry: Entry) -> None:
        """Remove a gang."""
        self._own()
        self._lead = None
        duration, key = entry.request.max_duration_seconds, entry.key
        keys = self.durations[duration]
        del self.keys[bisect_left(self.keys, key)], keys[bisect_left(keys, key)], self.entries[key]
        if not keys:
            del self.durations[duration]
        self.fresh.discard(key)

    def sort(self, entries: list[Entry]) -> None:
        """Hold exactly these entries."""
        self.shared, self._lead = False, None
        self.entries = {entry.key: entry for entry in entries}
        self.keys = sorted(self.entries)
        self.durations = {}
        for key in self.keys:
            self.durations.setdefault(self.entries[key].request.max_duration_seconds, []).append(key)

    def first_of_each(self, most: int) -> list[QueueKey]:
        """Return the first `most` keys of each duration, in order."""
        if len(self.durations) == 1:
            return self.keys[:most]
        return sorted(key for keys in self.durations.values() for key in keys[:most])

    def copy(self, keys: Iterable[QueueKey], finding: Finding) -> Group:
        """Return an independent copy with copies of these entries."""
        twin = self._bare_copy(finding)
        twin.sort([self.entries[key].copy() for key in keys])
        twin.fresh = self.fresh & twin.entries.keys()
        return twin

    def share(self, keys: Sequence[QueueKey], finding: Finding) -> Group:
        """Return a copy with these entries themselves; it must not be used any more once this group changes."""
        twin = self._bare_copy(finding)
        if len(keys) == len(self.keys):
            twin.keys, twin.durations, twin.entries = self.keys, self.durations, self.entries
            twin.shared, twin.fresh = True, set(self.fresh)
        else:
            twin.sort([self.entries[key] for key in keys])
            twin.fresh = self.fresh & twin.entries.keys()
        return twin

    def _bare_copy(self, finding: Finding) -> Group:
        """Return a copy that still lacks its gangs."""
        twin = object.__new__(Group)
        twin.shape, twin.queue, twin.user, twin.holder = self.shape, self.queue, self.user, self.holder
        twin._lead = self._lead
        twin.priority, twin.starts, twin.elastic = self.priority, self.starts, self.elastic
        twin.reported, twin.finding = self.reported, finding
        return twin

    def replace(self, entry: Entry) -> None:
        """Hold this entry instead of the one with the same key."""
        self._own()
        self.entries[entry.key] = entry

    def _own(self) -> None:
        """Hold copies of what is shared with another group."""
        if self.shared:
            self.keys, self.entries, self.shared = [*self.keys], dict(self.entries), False
            self.durations = {duration: [*keys] for duration, keys in self.durations.items()}


class Queue:
    """The waiting gangs of all jobs; changed only by `apply`, except for caches that planning keeps here."""

    def __init__(self) -> None:
        self.revision = 0
        """Counts the applied events."""
        self.groups: dict[Hashable, Group] = {}
        self._lists: GroupLists | None = None
        """The groups as plans read them; None until the next plan."""
        self._growing = 0
        """The groups of growth of running gangs."""
        self.unexplained = False
        """Whether nobody asks why gangs wait, as in a simulation: then plans report no reasons, and no times of return."""
        self.about: JobId | None = None
        """The only job of which plans report why it waits, in a copy that answers a question about it; None: all jobs."""
        self.memory: object = None
        """The planning cache between cycles; owned by planning."""
        self.expected: set[JobId] = set()
        """The jobs placed by the last plan for which no placement event has arrived yet."""
        self.nominated: set[JobId] = set()
        """The jobs for which other gangs are terminating."""
        self.history = History()
        """What the order may ask about jobs; the planner gives its cluster's."""
        self._order: Order = PriorityOrder()
        self._now = 0.0
        """When keys were computed last."""
        self._by_user, self._by_duration = True, False
        self._findings: dict[Hashable, Finding] = {}
        self._keys: list[QueueKey] = []
        self._jobs: dict[JobId, list[Entry]] = {}
        self._turns: dict[QueueKey, dict[str, list[QueueKey]]] | None = None
        """The waiting keys in order, by rank and user; None until `ahead` or `ranks` needs them."""
        self._ranks: dict[QueueKey, int] = {}
        self._ranked = -1
        self._counted = 0
        """The cost so far of counting gangs ahead one by one; above the cost of a full table, the table is built."""
        self._limited: frozenset[str] = frozenset()
        """The queues with a limit per user or group."""

    def apply(self, event: QueueEvent) -> None:
        """Fold one committed event; a placed gang leaves the queue even if it got fewer tasks than requested."""
        match event:
            case GangQueued(request=request):
                self._insert(request)
            case GangWithdrawn(job=job, tasks=tasks):
                self._withdraw(job, frozenset(tasks))
            case GangNominated(job=job):
                self.nominated.add(job)
            case NominationLapsed(job=job):
                self.nominated.discard(job)
            case GangPlaced(job=job):
                self.expected.discard(job)
                self.nominated.discard(job)
                placed = {task.key for task in event.placement.tasks}
                for entry in [*self._jobs.get(job, ())]:
                    if not placed.isdisjoint(entry.request.tasks):
                        self._remove(entry)
            case QueuesConfigured(queues=queues):
                self._limited = limiting(queues)
                self._rearrange()
        self.revision += 1

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def one_asks(self) -> bool:
        """Return whether at most one job asks why it waits, so that plans need not say when evicted gangs return."""
        return self.unexplained or self.about is not None

    @property
    def lists(self) -> GroupLists:
        """Return the groups as plans read them."""
        if self._lists is None:
            self._lists = GroupLists(self.groups.values())
        return self._lists

    @property
    def grows(self) -> bool:
        """Return whether growth of running gangs waits."""
        return bool(self._growing)

    @property
    def starting(self) -> int:
        """Return how many gangs wait to start, and not to grow."""
        if self._growing or self.about is not None:  # a copy about one job has of equal gangs only the first ones
            return sum([len(group.entries) for group in self.groups.values() if group.starts])
        return len(self._keys)

    def waiting(self, job: JobId) -> tuple[GangRequest, ...]:
        """Return the waiting gangs of a job."""
        return tuple(entry.request for entry in self._jobs.get(job, ()))

    def position(self, job: JobId) -> int | None:
        """Return how many gangs are ahead of the first one of a job; None if it does not wait."""
        first = self.first(job)
        return None if first is None else self.ahead(first.key, first.request.user)

    def first(self, job: JobId) -> Entry | None:
        """Return the gang of a job that is first in order."""
        return min(self._jobs.get(job, ()), key=lambda entry: entry.key, default=None)

    def ahead(self, key: QueueKey, user: str = "") -> int:
        """Return how many gangs are ahead of this one.

        Users take turns among equal gangs, counted as if each user started from zero now.
        """
        users = self._by_turns().get(rank(key), {}) if self._by_user else {}
        if len(users) < 2:
            return bisect_left(self._keys, key)
        self._counted += len(users)
        if self._ranked == self.revision or self._counted > len(self._keys):
            return self.ranks()[key]
        turn = bisect_left(users[user], key)
        before = sum(min(turn, len(keys)) + (turn < len(keys) and keys[turn] < key) for keys in users.values())
        return bisect_left(self._keys, rank(key)) + before

    def ranks(self) -> dict[QueueKey, int]:
        """Return for each waiting gang how many are ahead, as `ahead` counts them."""
        if self._ranked != self.revision:
            ordered: Iterable[QueueKey] = self._keys
            if self._by_user:
                lists = [(level, keys) for level, users in self._by_turns().items() for keys in users.values()]
                turns = ((level, turn, key) for level, keys in lists for turn, key in enumerate(keys))
                ordered = (key for _, _, key in sorted(turns))
            self._ranks, self._ranked = {key: ahead for ahead, key in enumerate(ordered)}, self.revision
            self._counted = 0
        return self._ranks

    def arrange(
        self, order: Order, history: History, now: float, *, by_user: bool = True, by_duration: bool = False
    ) -> None:
        """Keep the queue in this order from now on.

        `by_user` and `by_duration` make separate groups for each user and duration. Raises PartFailed, and changes
        nothing, where the order fails.
        """
        another = order is not self._order and order != self._order
        replaced = another or (by_user, by_duration) != (self._by_user, self._by_duration)
        if replaced or (order.changes_with_time and now != self._now):
            entries = [entry for entries in self._jobs.values() for entry in entries]
            keys = [_key(order, entry.request, history, now) for entry in entries]
            self.history, self._now = history, now
            if replaced:
                self._order, self._by_user, self._by_duration = order, by_user, by_duration
                self._rearrange()
            elif any(entry.key != key for entry, key in zip(entries, keys, strict=True)):
                if self.about is not None:
                    entries = self._with_own_entries()
                self._sort_anew(entries, keys)
        self.history, self._now = history, now

    def report_anew(self) -> None:
        """Drop what planning remembers and has reported, after a plan that was given up."""
        self._rearrange()

    def _rearrange(self) -> None:
        requests = [entry.request for entries in self._jobs.values() for entry in entries]
        self.memory, self._ranked = None, -1
        self.groups, self._lists, self._keys, self._jobs, self._turns = {}, None, [], {}, None
        self._growing = 0
        self._findings = {}
        for request in requests:
            self._insert(request)

    def _with_own_entries(self) -> list[Entry]:
        """Copy the entries that are another queue's, and return them; groups follow by `_sort_anew`."""
        self._jobs = {job: [entry.copy() for entry in entries] for job, entries in self._jobs.items()}
        return [entry for entries in self._jobs.values() for entry in entries]

    def _sort_anew(self, entries: list[Entry], keys: list[QueueKey]) -> None:
        """Give the entries new keys; groups, and what was found and reported, stay: O(n log n)."""
        renamed: dict[QueueKey, QueueKey] = {}
        by_group: dict[Hashable, list[Entry]] = {}
        for entry, key in zip(entries, keys, strict=True):
            renamed[entry.key], entry.key = key, key
            by_group.setdefault(entry.group, []).append(entry)
        for name, group in self.groups.items():
            group.sort(by_group[name])
            group.fresh = {renamed[key] for key in group.fresh}
        self._keys = sorted(keys)
        self._lists, self._turns, self._ranked = None, None, -1

    def fork(self) -> Queue:
        """Return an independent copy, including the planning cache; events applied to one do not affect the other."""
        twin = self._empty_twin()
        for name, group in self.groups.items():
            other = twin.groups[name] = group.copy(group.keys, twin._finding_like(group))
            for entry in other.entries.values():
                twin._jobs.setdefault(entry.request.job, []).append(entry)
        twin._keys = [*self._keys]
        return twin

    def fork_about(self, job: JobId, most: int) -> Queue:
        """Return a copy that answers a question about one job; it must not be used any more once this queue changes.

        Plans for it report the reasons of that job alone. Of equal gangs they see only the first `most`, all of the job,
        and all nominated ones. It shares what events about that job do not change.
        """
        twin = self._empty_twin()
        twin.about = job
        named = [entry for each in {*self.nominated, job} for entry in self._jobs.get(each, ())]
        kept: dict[Hashable, list[QueueKey]] = {}
        for entry in named:
            kept.setdefault(entry.group, []).append(entry.key)
        for name, group in self.groups.items():
            keys: Sequence[QueueKey] = group.keys
            if len(keys) > most:
                keys = group.first_of_each(most)
                keys += sorted(set(kept.get(name, ())).difference(keys))
            twin.groups[name] = group.share(keys, twin._finding_like(group))
        twin._keys, twin._jobs = [*self._keys], dict(self._jobs)
        own = [entry.copy() for entry in self._jobs.get(job, ())]
        if own:
            twin._jobs[job] = own
        for entry in own:
            twin.groups[entry.group].replace(entry)
        return twin

    def _empty_twin(self) -> Queue:
        """Return a copy without gangs."""
        twin = Queue()
        twin._order, twin._limited = self._order, self._limited
        twin._by_user, twin._by_duration = self._by_user, self._by_duration
        twin.history, twin._now, twin._growing = self.history, self._now, self._growing
        twin.revision, twin.nominated, twin.expected = self.revision, set(self.nominated), set(self.expected)
        twin.memory, twin.unexplained, twin.about = copy(self.memory), self.unexplained, self.about
        return twin

    def _finding_like(self, group: Group) -> Finding:
        """Return this queue's finding for gangs like those of another queue's group, and count one more group of it."""
        alike = group.entries[group.keys[0]].alike
        finding = self._findings.setdefault(alike, Finding(group.verdict))
        finding.groups += 1
        return finding

    def digest(self) -> str:
        """Return a hash of all waiting gangs, independent of their order of arrival."""
        requests = [entry.request for entries in self._jobs.values() for entry in entries]
        waiting = sorted(((request.job, request.tasks), request) for request in requests)
        state = (self.revision, waiting, sorted(self.nominated))
        return blake2b(msgspec.json.encode(state, order="deterministic"), digest_size=16).hexdigest()

    def _insert(self, request: GangRequest) -> None:
        if not any(role.indexes for role in request.roles):
            return
        for entry in [*self._jobs.get(request.job, ())]:
            if not set(entry.request.tasks).isdisjoint(request.tasks):
                self._remove(entry)
        try:
            key = _key(self._order, request, self.history, self._now)
        except PartFailed:  # the next plan asks the order again, and reports it if it fails then too
            self._order = PriorityOrder()
            self._rearrange()
            key = _key(self._order, request, self.history, self._now)
        limited = request.queue in self._limited
        entry = Entry(request, key, limited=limited, by_user=self._by_user, by_duration=self._by_duration)
        self._jobs[request.job] = [*self._jobs.get(request.job, ()), entry]
        group = self.groups.get(entry.group)
        if group is None:
            finding = self._findings.setdefault(entry.alike, Finding())
            finding.groups += 1
            group = self.groups[entry.group] = Group(request, entry.shape, entry.group[0], finding)
            self._lists = None
            self._growing += not group.starts
        group.add(entry)
        if self._lists is not None:
            self._lists.note(group)
        insort(self._keys, entry.key)
        if self._turns is not None:
            insort(self._turns.setdefault(rank(key), {}).setdefault(request.user, []), key)

    def _remove(self, entry: Entry) -> None:
        entries = self._jobs[entry.request.job] = [each for each in self._jobs[entry.request.job] if each is not entry]
        if not entries:
            del self._jobs[entry.request.job]
        group = self.groups[entry.group]
        group.remove(entry)
        if self._lists is not None:
            self._lists.note(group)
        if not group.keys:
            self._lists = None
            self._growing -= not group.starts
            del self.groups[entry.group]
            group.finding.groups -= 1
            if not group.finding.groups:
                del self._findings[entry.alike]
        del self._keys[bisect_left(self._keys, entry.key)]
        if self._turns is not None:
            _end_turn(self._turns, entry)

    def _by_turns(self) -> dict[QueueKey, dict[str, list[QueueKey]]]:
        if self._turns is None:
            turns: dict[QueueKey, dict[str, list[QueueKey]]] = {}
            for group in self.groups.values():
                first, last = rank(group.keys[0]), rank(group.keys[-1])
                for level, keys in (
                    ((first, group.keys),) if first == last else ((rank(key), [key]) for key in group.keys)
                ):
                    turns.setdefault(level, {}).setdefault(group.user, []).extend(keys)
            for users in turns.values():
                for keys in users.values():
                    keys.sort()
            self._turns = turns
        return self._turns

    def _withdraw(self, job: JobId, tasks: frozenset[TaskKey]) -> None:
        found = [entry for entry in self._jobs.get(job, ()) if not tasks.isdisjoint(entry.request.tasks)]
        for entry in found:
            self._remove(entry)
        for entry in found:
            rest = _without(entry.request, tasks)
            if rest.roles:
                self._insert(rest)


def _key(order: Order, request: GangRequest, history: History, now: float) -> QueueKey:
    """Return the key of a waiting gang, which has tasks; ties of the order go to the older job. Raises PartFailed."""
    first = next((role.role, role.indexes[0]) for role in request.roles if role.indexes)
    return (-request.turn, *key_of(order, request, history, now), request.job, first)


def _end_turn(turns: dict[QueueKey, dict[str, list[QueueKey]]], entry: Entry) -> None:
    users = turns[rank(entry.key)]
    keys = users[entry.request.user]
    del keys[bisect_left(keys, entry.key)]
    if not keys:
        del users[entry.request.user]
    if not users:
        del turns[rank(entry.key)]


def _without(request: GangRequest, tasks: frozenset[TaskKey]) -> GangRequest:
    """Return the gang without some tasks; a role that was not elastic stays so."""
    roles = []
    for role in request.roles:
        left = tuple(index for index in role.indexes if TaskKey(role.role, index) not in tasks)
        if left:
            minimum = len(left) if role.minimum == len(role.indexes) else min(role.minimum, len(left))
            roles.append(msgspec.structs.replace(role, indexes=left, minimum=minimum))
    return msgspec.structs.replace(request, roles=tuple(roles))
