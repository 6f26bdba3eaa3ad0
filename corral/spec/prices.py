"""The Prices document: what an hour of a device, a processor and a GiB of memory costs, by device model and queue.

```yaml
kind: Prices
currency: EUR
rates:
  - {deviceHour: 1.20, cpuHour: 0.02, memoryGibHour: 0.003}
  - {model: h100, deviceHour: 3.10}
  - {model: h100, deviceHour: 2.90, from: 2026-12-01}     # from this day on
  - {queue: teaching, deviceHour: 0}
```

Reports on use apply it; nothing that schedules reads it.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from corral.spec.base import OPTIONAL_QUEUE, QueueName, SpecModel, Text, refusal
from corral.spec.errors import describe
from corral.spec.yaml_scalars import written

MOST_RATES: Final = 500
"""Rates of one document."""
MOST_DAYS: Final = 100
"""Days on which rates of one document begin: a report is summed once for each of them that it spans."""
METERS: Final = ("device_hour", "cpu_hour", "memory_gib_hour")
"""The fields of a rate that are prices."""

Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Rate(SpecModel):
    """Prices for one device model, one queue, both, or everything; those that it does not have come from wider rates."""

    model: Text = Field("", max_length=200, description='The device model, as `corral nodes` shows it; "" is any.')
    queue: Annotated[str, Field(max_length=63, pattern=OPTIONAL_QUEUE), BeforeValidator(written)] = Field(
        "", description='The queue that the job is in; "" is any. Queues below it are not meant.'
    )
    begin: Text = Field(
        "", alias="from", max_length=10, description="The first day in UTC on which it holds, such as 2026-12-01."
    )
    device_hour: Price | None = Field(None, description="The price of a device for an hour.")
    cpu_hour: Price | None = Field(None, description="The price of a processor, as asked for, for an hour.")
    memory_gib_hour: Price | None = Field(None, description="The price of a GiB of memory, as asked for, for an hour.")

    @field_validator("begin")
    @classmethod
    def _is_day(cls, value: str) -> str:
        if not value:
            return value
        try:
            day = date.fromisoformat(value)
        except ValueError:
            raise refusal(f"expected a day such as 2026-12-01, got {describe(value)}") from None
        if day.year < 1970:
            raise refusal(f"expected a day since 1970, got {describe(value)}")
        return day.isoformat()

    @model_validator(mode="after")
    def _has_a_price(self) -> Rate:
        if all(getattr(self, meter) is None for meter in METERS):
            raise refusal("a rate needs a price: deviceHour, cpuHour or memoryGibHour")
        return self


class PricesDocument(SpecModel):
    """What devices, processors and memory cost, for reports on use."""

    api_version: Literal["corral.dev/v1alpha1"] = Field(
        "corral.dev/v1alpha1", description="The version of this language."
    )
    kind: Literal["Prices"] = Field("Prices", description="Always Prices.")
    name: QueueName = Field("default", description="The list's name; the one called default is in force.")
    currency: Text = Field(
        min_length=3, max_length=3, pattern="^[A-Z]{3}$", description="The currency by ISO 4217, such as EUR."
    )
    rates: list[Rate] = Field(
        min_length=1,
        max_length=MOST_RATES,
        description="The rates. For each price the rate decides that names queue and model, or else the queue, or else the "
        "model, or else neither; of several such the one that began last.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> PricesDocument:
        known: set[tuple[str, str, str, str]] = set()
        for rate in self.rates:
            for meter in METERS:
                key = rate.model.casefold(), rate.queue, rate.begin, meter
                if getattr(rate, meter) is not None and key in known:
                    raise refusal(f"two rates give {_in_words(rate)} the same kind of price")
                known |= {key} if getattr(rate, meter) is not None else set()
        if len({rate.begin for rate in self.rates}) > MOST_DAYS:
            raise refusal(f"rates begin on {MOST_DAYS} different days at most")
        return self

    def to_document(self) -> dict[str, Any]:
        """The canonical document with every field."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """The canonical document as stable JSON: equal prices give equal text."""
        return json.dumps(self.to_document(), separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _in_words(rate: Rate) -> str:
    named = [f"model {rate.model}" if rate.model else "", f"queue {rate.queue}" if rate.queue else ""]
    what = " in ".join(each for each in named if each) or "everything"
    return f"{what} from {rate.begin}" if rate.begin else what
