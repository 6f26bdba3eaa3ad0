"""Base model and field types of all documents: names, labels, quantities, environment variables, URIs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from corral.kernel.amounts import BYTES, MILLIS, Unit
from corral.spec.errors import describe
from corral.spec.yaml_scalars import written


class SpecModel(BaseModel):
    """Base of every document part: frozen, camelCase in documents, snake_case in Python, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Let all documents share one instance of a part that they leave out, as parts are frozen.

        A job has some fifty of those, which take two fifths of the time in which it is read.
        """
        for field in cls.__pydantic_fields__.values():
            made = field.default_factory
            if isinstance(made, type) and issubclass(made, SpecModel):
                field.default_factory = cache(made)


def refusal(message: str) -> PydanticCustomError:
    """Build the error that a validator raises; `message` reaches the author unchanged."""
    return PydanticCustomError("refused", "{sentence}", {"sentence": message})


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        raise refusal(f"expected text, got the yes/no value {describe(value)}; put quotes around it")
    value = written(value)
    if isinstance(value, str) and "\x00" in value:
        raise refusal("a NUL character cannot be part of it")
    return value


def quantity_check(unit: Unit) -> Callable[[Any], Any]:
    """Build the validator of an amount that documents write as text."""

    def check(value: Any) -> Any:
        value = _text(value)
        if isinstance(value, str) and value:
            try:
                amount = unit.parse(value)
            except ValueError as error:
                raise refusal(f"{error}, got {describe(value)}") from None
            if 0 < amount < unit.least:
                raise refusal(
                    f"{describe(value)} is {amount} {unit.pieces}; write a unit, such as {value}Mi or {value}Gi"
                )
        return value

    return check


PATTERN_MEANINGS: Final[dict[str, str]] = {}
"""Regular expression to its meaning in words, used in error messages."""


def _pattern(pattern: str, meaning: str) -> str:
    PATTERN_MEANINGS[pattern] = meaning
    return pattern


LABEL: Final = _pattern(
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "lower-case letters, digits and '-', beginning and ending with a letter or digit",
)
QUEUE: Final = _pattern(
    "^[A-Za-z0-9][-A-Za-z0-9_.]*$", "letters, digits, '-', '_' and '.', beginning with a letter or digit"
)
OPTIONAL_QUEUE: Final = _pattern(f"^$|{QUEUE}", "letters, digits, '-', '_' and '.', beginning with a letter or digit")
ENV_NAME: Final = _pattern("^[A-Za-z_][A-Za-z0-9_]*$", "letters, digits and '_', not beginning with a digit")
OPTIONAL_ENV_NAME: Final = _pattern(f"^$|{ENV_NAME}", "letters, digits and '_', not beginning with a digit")
LABEL_KEY: Final = _pattern(
    "^([-a-z0-9.]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    "letters, digits, '-', '_' and '.' (63 at most), after an optional domain and '/'",
)
LABEL_VALUE: Final = _pattern(
    "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
    "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
)
LEVEL: Final = _pattern(
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", "a level's name, such as pcie-switch, numa, node or rack, or nothing"
)
RESOURCE: Final = _pattern(
    "^[a-z0-9]([-a-z0-9./]*[a-z0-9])?$",
    "lower-case letters, digits, '-', '.' and '/', beginning and ending with a letter or digit",
)
URI: Final = _pattern("^[a-z][a-z0-9+.-]*:.+$", "a URI, such as file:///data/digits")

Text = Annotated[str, BeforeValidator(_text)]
"""Text without NUL characters; a number is kept as the text that was written."""
Name = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL), BeforeValidator(_text)]
"""A DNS label.

The constraints stand before the validator, so that they reach the JSON schema and run in pydantic's Rust core.
"""
QueueName = Annotated[str, Field(min_length=1, max_length=63, pattern=QUEUE), BeforeValidator(_text)]
Level = Annotated[str, Field(max_length=63, pattern=LEVEL), BeforeValidator(_text)]
"""The name of a cell level; "" means none."""
EnvName = Annotated[str, Field(min_length=1, max_length=256, pattern=ENV_NAME)]
OptionalEnvName = Annotated[str, Field(max_length=256, pattern=OPTIONAL_ENV_NAME), BeforeValidator(_text)]
EnvValue = Annotated[str, Field(max_length=131_000), BeforeValidator(_text)]
LabelKey = Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE), BeforeValidator(_text)]
ResourceName = Annotated[str, Field(max_length=253, pattern=RESOURCE)]
Uri = Annotated[str, Field(max_length=4096, pattern=URI), BeforeValidator(_text)]
Argument = Annotated[str, Field(max_length=131_000), BeforeValidator(_text)]
Cpu = Annotated[str, Field(max_length=MILLIS.most_text), BeforeValidator(quantity_check(MILLIS))]
"""Processors as written; `units.parse_cpu` converts to thousandths."""
Memory = Annotated[str, Field(max_length=BYTES.most_text), BeforeValidator(quantity_check(BYTES))]
"""Memory as written; `units.parse_memory` converts to bytes."""
Env = Annotated[dict[EnvName, EnvValue], Field(max_length=1000)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=200)]
