"""Charges: what one user used in one queue on one day, by device model and meter, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from corral.model.prices import HOUR, PriceList
from corral.model.records import Record, rfc3339
from corral.model.usage import UseOf


class Meter(NamedTuple):
    """What is measured and priced."""

    name: str
    price: int
    """Its place in `Price`."""
    seconds: str
    """The field of `Use` that it counts."""
    used: str = ""
    """The field of `Use` with what was measured of it."""


METERS = (
    Meter("device-hours", 0, "device_seconds", "used_device_seconds"),
    Meter("cpu-hours", 1, "cpu_seconds", "used_cpu_seconds"),
    Meter("memory-gib-hours", 2, "memory_gib_seconds", "used_memory_gib_seconds"),
)
JOULES_OF_KWH = 3_600_000


class Charge(Record, frozen=True):
    """The use of one user in one queue, on a day in UTC or the part of it that was asked for."""

    begin: str
    end: str
    user: str
    queue: str
    model: str
    """The device model; "" is none or unknown."""
    meter: str
    """`device-hours`, `cpu-hours` or `memory-gib-hours`; the latter two as asked for."""
    quantity: float
    """Hours."""
    lost: float = 0.0
    """The part of device-hours in attempts that came to nothing."""
    unit_price: float = 0.0
    """The price of an hour; 0 where no rate has one."""
    cost: float = 0.0
    used: float = 0.0
    """The part of the hours that was used, as far as it was measured; it is not priced."""
    idle: float = 0.0
    """The part of device-hours in which a device's use was below 5 %, in attempts that did not come to nothing."""
    energy_kwh: float = 0.0
    """Of device-hours the energy, where the devices tell their power."""


class ChargePage(Record, frozen=True):
    """The charges of some whole days; `next` is the time from which to go on, "" after the last."""

    currency: str
    """By ISO 4217; `XXX` where there are no prices."""
    items: tuple[Charge, ...] = ()
    next: str = ""


def charges(groups: list[UseOf], begin: float, end: float, prices: PriceList) -> Iterator[Charge]:
    """The charges of the groups of a period in which no price changes, in order."""
    for each in sorted(groups, key=lambda group: (group.key, group.queue, group.model)):
        price = prices.price(each.queue, each.model, begin)
        for meter in METERS:
            seconds = getattr(each.use, meter.seconds)
            if not seconds:
                continue
            used = getattr(each.use, meter.used) / HOUR if meter.used else 0.0
            energy = each.use.energy_joules / JOULES_OF_KWH if meter.price == 0 else 0.0
            hours, unit = seconds / HOUR, price[meter.price] or 0.0
            lost = each.use.lost_device_seconds / HOUR if meter.price == 0 else 0.0
            idle = each.use.idle_device_seconds / HOUR if meter.price == 0 else 0.0
            yield Charge(
                rfc3339(begin), rfc3339(end), each.key, each.queue, each.model, meter.name, round(hours, 6),
                round(lost, 6), unit, round(hours * unit, 6), round(used, 6), round(idle, 6), round(energy, 6),
            )  # fmt: skip
