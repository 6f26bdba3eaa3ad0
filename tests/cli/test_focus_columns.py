"""Rows of FOCUS have the columns of version 1.1, with their types, allowed values and null rules."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Final

import pytest

from corral.cli.focus_columns import COLUMNS, focus_cells, focus_row

if TYPE_CHECKING:
    from corral.client.schema import Charge

TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
NUMBER: Final = r"\d+(\.\d+)?"
TEXT: Final = r".+"
RULES: Final[dict[str, tuple[str, bool]]] = {
    "BilledCost": (NUMBER, False),
    "BillingAccountId": (TEXT, False),
    "BillingAccountName": (TEXT, True),
    "BillingCurrency": ("[A-Z]{3}", False),
    "BillingPeriodEnd": (TIME, False),
    "BillingPeriodStart": (TIME, False),
    "ChargeCategory": ("Usage|Purchase|Tax|Credit|Adjustment", False),
    "ChargeClass": ("Correction", True),
    "ChargeDescription": (TEXT, True),
    "ChargeFrequency": ("One-Time|Recurring|Usage-Based", False),
    "ChargePeriodEnd": (TIME, False),
    "ChargePeriodStart": (TIME, False),
    "ConsumedQuantity": (NUMBER, False),
    "ConsumedUnit": (r"[A-Z]\w*-Hours", False),
    "ContractedCost": (NUMBER, False),
    "ContractedUnitPrice": (NUMBER, False),
    "EffectiveCost": (NUMBER, False),
    "InvoiceIssuerName": (TEXT, False),
    "ListCost": (NUMBER, False),
    "ListUnitPrice": (NUMBER, False),
    "PricingCategory": ("Standard|Dynamic|Committed|Other", False),
    "PricingQuantity": (NUMBER, False),
    "PricingUnit": (r"[A-Z]\w*-Hours", False),
    "ProviderName": (TEXT, False),
    "PublisherName": (TEXT, False),
    "ResourceId": (TEXT, True),
    "ResourceName": (TEXT, True),
    "ResourceType": (TEXT, True),
    "ServiceCategory": ("Compute", False),
    "ServiceName": (TEXT, False),
    "ServiceSubcategory": (re.escape("Other (Compute)"), False),
    "SkuId": (TEXT, False),
    "SkuMeter": (TEXT, False),
    "SkuPriceId": (TEXT, False),
    "SubAccountId": (TEXT, True),
    "SubAccountName": (TEXT, True),
    "Tags": (r"\{.*\}", True),
    "x_EnergyKilowattHours": (NUMBER, False),
    "x_IdleQuantity": (NUMBER, False),
    "x_LostQuantity": (NUMBER, False),
    "x_UsedQuantity": (NUMBER, False),
}
"""By column what a cell is, and whether it may be null where the charge is usage and no correction (version 1.1)."""


def charge(meter: str = "device-hours", **changes: object) -> Charge:
    made = {
        "begin": "2026-12-31T00:00:00.000Z", "end": "2027-01-01T00:00:00.000Z", "user": "ann", "queue": "research",
        "model": "h100", "meter": meter, "quantity": 3.5, "lost": 0.25, "unitPrice": 2.0, "cost": 7.0,
        "used": 1.5, "idle": 0.75, "energyKwh": 0.125,
    }  # fmt: skip
    return {**made, **changes}  # type: ignore[typeddict-item]


@pytest.mark.parametrize("meter", ["device-hours", "cpu-hours", "memory-gib-hours"])
@pytest.mark.parametrize("changes", [{}, {"model": "", "queue": "", "user": ""}, {"quantity": 0.000001, "cost": 0}])
def test_every_cell_is_of_its_column(meter: str, changes: dict[str, object]) -> None:
    row = focus_row(charge(meter, **changes), "EUR", "https://corral.example")
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, list(focus_cells(row))])
    (read,) = csv.DictReader(io.StringIO(text.getvalue()))
    assert list(read) == list(COLUMNS) == list(RULES)
    for column, (kind, nullable) in RULES.items():
        assert (nullable and not read[column]) or re.fullmatch(kind, read[column]), (column, read[column])
    assert float(read["ListUnitPrice"]) * float(read["PricingQuantity"]) == pytest.approx(
        float(read["ListCost"]), abs=0.00001
    )


def test_the_billing_period_is_the_month_and_a_charge_lies_in_it() -> None:
    row = focus_row(charge(), "EUR", "a")
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == ("2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z")
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == ("2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z")
    assert (row["SubAccountId"], row["SkuId"], row["ConsumedUnit"]) == ("ann", "device-hours/h100", "Device-Hours")
    assert row["SkuPriceId"] == "device-hours/h100/research"
    assert row["ChargeDescription"] == "Device-hours of h100 of ann in queue research"
