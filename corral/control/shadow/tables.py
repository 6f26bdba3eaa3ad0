"""The rows of a report, from what was written down of both lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from corral.control.shadow.decisions import Kind
from corral.control.shadow.hours import HOUR, HourBook, Spell
from corral.kernel.quantile import quantile
from corral.model.policy_shadow import Counts, Figures, HourRow, QueueRow
from corral.model.records import rfc3339

Books = tuple[HourBook, HourBook]
"""That of the policy in force, and that of the candidate."""


class Rows:
    """The hours that were compared, from `begin` to `end`, in seconds since 1970."""

    def __init__(self, books: Books, begin: float, end: float) -> None:
        self._books = books
        self._begin = begin
        self._end = end
        first = int(begin // HOUR)
        self._numbers = range(first, max(first + 1, ceil(end / HOUR)))

    def hours(
        self, counts: Mapping[int, Mapping[Kind, Counts]], usable: Mapping[int, int]
    ) -> tuple[HourRow, ...]:  # fmt: skip
        """A row for each clock hour; `usable` are the devices at the ends of those in which something happened."""
        rows, devices = [], next(iter(usable.values()), 0)
        for number in self._numbers:
            devices = usable.get(number, devices)
            rows.append(self._row([number], added(counts.get(number, {}).values()), devices))
        return tuple(rows)

    def total(self, hours: Sequence[HourRow]) -> HourRow:
        """All hours together, with the mean of the devices."""
        seconds = max(1e-9, sum(hour.seconds for hour in hours))
        devices = sum(hour.devices * hour.seconds for hour in hours) / seconds
        return self._row(self._numbers, added(hour.decisions for hour in hours), round(devices))

    def _row(self, numbers: Sequence[int], decisions: Counts, devices: int) -> HourRow:
        begin, end = max(self._begin, numbers[0] * HOUR), min(self._end, (numbers[-1] + 1) * HOUR)
        names = sorted({name for book in self._books for number in numbers for name in book.hours.get(number, {})})
        in_force, candidate = (self._figures(book, numbers, names, end - begin) for book in self._books)
        queues = [
            QueueRow(name, *(self._figures(book, numbers, [name], end - begin) for book in self._books))
            for name in names
        ]
        return HourRow(rfc3339(begin), end - begin, decisions, in_force, candidate, devices, tuple(queues))

    def _figures(self, book: HourBook, numbers: Sequence[int], queues: Iterable[str], seconds: float) -> Figures:
        nothing = Spell()
        by_hour = [[book.hours.get(number, {}).get(queue, nothing) for queue in queues] for number in numbers]
        spells = [spell for hour in by_hour for spell in hour]
        waits = sorted(wait for spell in spells for wait in spell.waits)
        return Figures(
            started=len(waits),
            wait_p50=quantile(waits, 0.5) if waits else None,
            wait_p95=quantile(waits, 0.95) if waits else None,
            preempted=sum(spell.preempted for spell in spells),
            devices=sum(spell.device_seconds for spell in spells) / max(1e-9, seconds),
            waiting=sum(spell.waiting for spell in by_hour[-1]),
        )


def added(counts: Iterable[Counts]) -> Counts:
    """The sum of counts."""
    total = Counts()
    for each in counts:
        total.alike += each.alike
        total.elsewhere += each.elsewhere
        total.only_in_force += each.only_in_force
        total.only_candidate += each.only_candidate
    return total
