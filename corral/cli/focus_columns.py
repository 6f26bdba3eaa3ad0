"""Charges as rows of FOCUS, the FinOps Open Cost and Usage Specification, version 1.1.

The columns are those of https://focus.finops.org/focus-specification/v1-1: all mandatory and recommended ones, and the
conditional ones that apply. There are no commitment discounts, capacity reservations, regions or zones, so their columns
are left out. Nulls are empty. Columns of Corral's own begin with `x_`, as the specification asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from corral.client.schema import Charge

Cell = str | float | None


class _Meter(NamedTuple):
    unit: str
    """By FOCUS's format of units."""
    name: str


_METERS: Final = {
    "device-hours": _Meter("Device-Hours", "Device-hours"),
    "cpu-hours": _Meter("Core-Hours", "CPU-hours requested"),
    "memory-gib-hours": _Meter("GiB-Hours", "Memory requested"),
}
COLUMNS: Final = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName",
    "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId",
    "SkuMeter", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags", "x_EnergyKilowattHours",
    "x_IdleQuantity", "x_LostQuantity", "x_UsedQuantity",
)  # fmt: skip
"""The columns in order."""
_ISSUER: Final = "Corral"


def focus_row(charge: Charge, currency: str, account: str) -> dict[str, Cell]:
    """One charge as a row; `account` is the billing account, such as the address of the server."""
    meter, cost, price = _METERS[charge["meter"]], charge["cost"], charge["unitPrice"]
    begin, end = _month(charge["begin"])
    sku = f"{charge['meter']}/{charge['model'] or 'any'}"
    resource = charge["queue"] or None
    return {
        "BilledCost": cost,
        "BillingAccountId": account,
        "BillingAccountName": None,
        "BillingCurrency": currency,
        "BillingPeriodEnd": end,
        "BillingPeriodStart": begin,
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": _described(charge, meter),
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _time(charge["end"]),
        "ChargePeriodStart": _time(charge["begin"]),
        "ConsumedQuantity": charge["quantity"],
        "ConsumedUnit": meter.unit,
        "ContractedCost": cost,
        "ContractedUnitPrice": price,
        "EffectiveCost": cost,
        "InvoiceIssuerName": _ISSUER,
        "ListCost": cost,
        "ListUnitPrice": price,
        "PricingCategory": "Standard",
        "PricingQuantity": charge["quantity"],
        "PricingUnit": meter.unit,
        "ProviderName": _ISSUER,
        "PublisherName": _ISSUER,
        "ResourceId": resource,
        "ResourceName": resource,
        "ResourceType": "Queue" if resource else None,
        "ServiceCategory": "Compute",
        "ServiceName": "Corral",
        "ServiceSubcategory": "Other (Compute)",
        "SkuId": sku,
        "SkuMeter": meter.name,
        "SkuPriceId": f"{sku}/{charge['queue'] or 'any'}",
        "SubAccountId": charge["user"] or None,
        "SubAccountName": charge["user"] or None,
        "Tags": json.dumps({"queue": charge["queue"], "model": charge["model"]}, ensure_ascii=False),
        "x_EnergyKilowattHours": charge["energyKwh"],
        "x_IdleQuantity": charge["idle"],
        "x_LostQuantity": charge["lost"],
        "x_UsedQuantity": charge["used"],
    }


def _described(charge: Charge, meter: _Meter) -> str:
    model = f" of {charge['model']}" if charge["model"] else ""
    return f"{meter.name}{model} of {charge['user'] or 'nobody'} in queue {charge['queue']}"


def focus_cells(row: dict[str, Cell]) -> Iterator[str]:
    """The cells of a row as text for CSV, in the order of the columns."""
    for column in COLUMNS:
        value = row[column]
        yield (
            "" if value is None else f"{value:.10f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        )


def _time(text: str) -> str:
    """A time in FOCUS's form, in UTC and whole seconds."""
    return f"{datetime.fromisoformat(text):%Y-%m-%dT%H:%M:%SZ}"


def _month(text: str) -> tuple[str, str]:
    """Begin and end of the month of a time, which is the billing period."""
    at = datetime.fromisoformat(text)
    after = (at.year + at.month // 12, at.month % 12 + 1)
    return f"{at.year:04}-{at.month:02}-01T00:00:00Z", f"{after[0]:04}-{after[1]:02}-01T00:00:00Z"
