"""Fields of job and cluster documents for the amounts that have no field written out in a model.

Their rows are in `corral.kernel.amounts`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, create_model

from corral.kernel.amounts import AMOUNTS, MAX_COUNT, Unit
from corral.spec.base import SpecModel, quantity_check

Model = TypeVar("Model", bound=SpecModel)


def with_amounts(model: type[Model], place: Literal["of_task", "of_node"]) -> type[Model]:
    """A subclass of the model with a field for each amount that is described for tasks or for nodes."""
    fields: dict[str, Any] = {}
    for amount in AMOUNTS:
        if description := getattr(amount, place):
            fields[amount.name] = _field(amount.unit, description)
    return create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)


def counted_amounts(model: SpecModel) -> dict[str, int]:
    """The amounts of the fields that `with_amounts` made, in their units; those of 0 are left out."""
    fields = type(model).model_fields
    found = {
        amount.name: amount.unit.parse(str(getattr(model, amount.name)))
        for amount in AMOUNTS
        if (amount.of_task or amount.of_node) and amount.name in fields
    }
    return {name: amount for name, amount in found.items() if amount}


def _field(unit: Unit, description: str) -> tuple[Any, Any]:
    """The type of a field, and the field with the default that reserves or counts nothing."""
    if not unit.most_text:
        return int, Field(0, ge=0, le=MAX_COUNT, description=description)
    text = Annotated[str, Field(max_length=unit.most_text), BeforeValidator(quantity_check(unit))]
    return text, Field("0", min_length=1, description=description)
