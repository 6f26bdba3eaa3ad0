"""Load FastAPI with models that are built at their first use, for which no start of a server waits.

FastAPI describes the OpenAPI format in some fifty models of pydantic. Their validators take a quarter of the time in
which front's modules are loaded, and only the OpenAPI document needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict


@contextmanager
def built_late() -> Iterator[None]:
    """Models of pydantic that are declared in the block are built at their first use."""
    usual, rebuild = BaseModel.model_config, BaseModel.__dict__["model_rebuild"]

    def model_rebuild(cls: type[BaseModel], /, **options: Any) -> bool | None:
        if not options:  # FastAPI's calls after its declarations; pydantic's own at a first use have options
            return None
        built: bool | None = rebuild.__get__(None, cls)(**options)
        return built

    BaseModel.model_config = ConfigDict(defer_build=True)
    BaseModel.model_rebuild = classmethod(model_rebuild)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        BaseModel.model_config = usual
        BaseModel.model_rebuild = rebuild  # type: ignore[method-assign]


with built_late():
    import fastapi.openapi.models  # noqa: F401
