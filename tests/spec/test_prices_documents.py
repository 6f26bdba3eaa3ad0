"""Prices are read, each mistake is refused with a sentence, and the right rate decides."""

from __future__ import annotations

from typing import Any

import pytest

from corral.model.configuration import canonical, configuration_of
from corral.model.prices import Price, PriceList, days
from corral.model.usage import DAY, Use
from corral.spec.configuration_file import identity, load_document
from corral.spec.errors import SpecError
from corral.spec.prices import MOST_DAYS, MOST_RATES, PricesDocument

TEXT = """
kind: Prices
currency: EUR
rates:
  - {deviceHour: 1.2, cpuHour: 0.02, memoryGibHour: 0.003}
  - {model: H100, deviceHour: 3.1}
  - {model: h100, deviceHour: 2.9, from: 2026-12-01}
  - {queue: teaching, deviceHour: 0}
  - {queue: teaching, model: h100, deviceHour: 0.5}
"""
BEFORE, AFTER = 1_795_000_000.0, 1_798_000_000.0  # in November and December 2026


def prices(text: str = TEXT) -> PricesDocument:
    (document,) = load_document(text)
    assert isinstance(document, PricesDocument)
    return document


def test_the_rate_that_names_most_decides_for_each_price_and_the_last_one_of_several() -> None:
    known = PriceList.of(prices())
    assert known.currency == "EUR"
    assert known.price("research", "a100", BEFORE) == Price(1.2, 0.02, 0.003)
    assert known.price("research", "h100", BEFORE) == Price(3.1, 0.02, 0.003)
    assert known.price("research", "H100", AFTER) == Price(2.9, 0.02, 0.003)
    assert known.price("teaching", "a100", AFTER) == Price(0.0, 0.02, 0.003)
    assert known.price("teaching", "h100", AFTER) == Price(0.5, 0.02, 0.003)
    (change,) = (each for each in known.changes if each)
    assert list(known.periods(BEFORE, AFTER)) == [(BEFORE, change), (change, AFTER)]
    assert list(known.periods(BEFORE, change)) == [(BEFORE, change)]


def test_what_has_no_price_costs_nothing() -> None:
    known = PriceList.of(prices("kind: Prices\ncurrency: USD\nrates: [{model: h100, deviceHour: 2}]"))
    use = Use(7200.0, 0.0, 7200.0, 3600.0, 3600.0)
    assert known.price("q", "h100", BEFORE).of(use) == 4.0
    assert known.price("q", "a100", BEFORE).of(use) == 0.0
    assert PriceList().price("q", "h100", BEFORE).of(use) == 0.0


def test_a_period_is_cut_into_days_in_utc() -> None:
    assert list(days(DAY - 5.0, 2 * DAY + 7.0)) == [(DAY - 5.0, DAY), (DAY, 2 * DAY), (2 * DAY, 2 * DAY + 7.0)]
    assert list(days(5.0, 5.0)) == []


def test_the_document_is_stored_and_read_again_and_is_no_policy() -> None:
    document = prices()
    assert identity(document) == ("Prices", "default")
    assert load_document(canonical(document)) == [document]
    assert configuration_of([document]).policy is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"currency": "euro"}, "currency"),
        ({"rates": []}, "rates"),
        ({"rates": [{"model": "h100"}]}, "a rate needs a price: deviceHour, cpuHour or memoryGibHour"),
        ({"rates": [{"deviceHour": -1}]}, "deviceHour"),
        ({"rates": [{"deviceHour": 1e9}]}, "deviceHour"),
        ({"rates": [{"deviceHour": 1, "from": "tomorrow"}]}, "expected a day such as 2026-12-01"),
        ({"rates": [{"deviceHour": 1, "from": "1969-12-31"}]}, "expected a day since 1970"),
        ({"rates": [{"deviceHour": 1, "queue": "a/b"}]}, "queue"),
        (
            {"rates": [{"model": "h100", "deviceHour": 1}, {"model": "H100", "deviceHour": 2, "cpuHour": 1}]},
            "two rates give model H100 the same kind of price",
        ),
        ({"rates": [{"queue": f"q{at}", "deviceHour": 1} for at in range(MOST_RATES + 1)]}, "rates"),
        (
            {"rates": [{"deviceHour": 1, "from": f"{2000 + at}-01-01"} for at in range(MOST_DAYS + 1)]},
            f"rates begin on {MOST_DAYS} different days at most",
        ),
        ({"prices": 1}, "prices"),
    ],
)
def test_a_mistake_is_refused_with_a_sentence(change: dict[str, Any], said: str) -> None:
    document = {"kind": "Prices", "currency": "EUR", "rates": [{"deviceHour": 1}], **change}
    with pytest.raises(SpecError, match=said):
        load_document(document)
