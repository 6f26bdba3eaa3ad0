"""The cost of use: which rates of the Prices document hold for a queue and a device model on a day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from corral.model.usage import DAY, Use
from corral.spec.prices import METERS, PricesDocument

HOUR = 3600
"""Seconds."""
NO_CURRENCY = "XXX"
"""The code of ISO 4217 for no currency, where there are no prices."""


class Price(NamedTuple):
    """Prices of an hour; None is not priced."""

    device_hour: float | None = None
    cpu_hour: float | None = None
    memory_gib_hour: float | None = None

    def of(self, use: Use) -> float:
        """What this use costs; what is not priced costs nothing."""
        seconds = use.device_seconds, use.cpu_seconds, use.memory_gib_seconds
        return sum(amount * (price or 0.0) for amount, price in zip(seconds, self, strict=True)) / HOUR


@dataclass(frozen=True)
class PriceList:
    """The rates by meter, model (in small letters) and queue, each with its beginning in seconds since 1970."""

    currency: str = NO_CURRENCY
    rates: Mapping[tuple[str, str, str], tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """The latest beginning first."""
    changes: tuple[float, ...] = ()
    """The beginnings of rates in order."""

    @classmethod
    def of(cls, document: PricesDocument) -> PriceList:
        """That of a document."""
        found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for rate in document.rates:
            begin = datetime.fromisoformat(rate.begin).replace(tzinfo=UTC).timestamp() if rate.begin else 0.0
            for meter in METERS:
                if (price := getattr(rate, meter)) is not None:
                    found.setdefault((meter, rate.model.casefold(), rate.queue), []).append((begin, price))
        rates = {key: tuple(sorted(each, reverse=True)) for key, each in found.items()}
        return cls(document.currency, rates, tuple(sorted({begin for each in rates.values() for begin, _ in each})))

    def price(self, queue: str, model: str, at: float) -> Price:
        """The prices at a time for devices of a model in a queue."""
        return Price(*(self._one(meter, queue, model.casefold(), at) for meter in METERS))

    def _one(self, meter: str, queue: str, model: str, at: float) -> float | None:
        for key in ((meter, model, queue), (meter, "", queue), (meter, model, ""), (meter, "", "")):
            for begin, price in self.rates.get(key, ()):
                if begin <= at:
                    return price
        return None

    def periods(self, begin: float, end: float) -> Iterator[tuple[float, float]]:
        """The parts of a period in each of which no price changes."""
        return pairwise([begin, *(change for change in self.changes if begin < change < end), end])


def days(begin: float, end: float) -> Iterable[tuple[float, float]]:
    """The days in UTC of a period, the first and last of which may be parts of days."""
    at = begin
    while at < end:
        after = min(end, (at // DAY + 1) * DAY)
        yield at, after
        at = after
