"""Expand a request for devices of one model, whichever it is, into one request per model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.placement.engine_request import EngineRequest, EngineRole
from corral.scheduler.placement.shape import TaskShape

_MOST = 64


def model_choices(index: EngineIndex, ask: EngineRequest) -> Iterator[EngineRequest]:
    """Yield the request with a model filled in wherever it needs equal models, scarcest model first."""
    if not ask.topology.same_model and not any(part.topology.same_model for part in ask.parts):
        yield ask
        return
    if ask.topology.same_model:
        for model in _models(index, ask.parts):
            yield ask._replace(parts=tuple(_of_model(part, model) for part in ask.parts))
        return
    choices = [_models(index, (part,)) if part.topology.same_model else [""] for part in ask.parts]
    for models in islice(product(*choices), _MOST):
        yield ask._replace(
            parts=tuple(
                _of_model(part, model) if model else part for part, model in zip(ask.parts, models, strict=True)
            )
        )


def _models(index: EngineIndex, parts: tuple[EngineRole, ...]) -> list[str]:
    """Return the models that all of the parts could use, fewest free devices first."""
    asking = [part.shape for part in parts if part.shape.devices]
    named = {shape.model for shape in asking if shape.model}
    if not asking or len(named) > 1:
        return [] if named else [""]
    kinds = {shape.kind for shape in asking if shape.kind}
    kind = kinds.pop() if kinds else ""
    models = named or index.tree.models
    free = {model: int(index.slots(_one(kind, model)).totals[0][0]) for model in models}
    return sorted(free, key=lambda model: (free[model], model))


def _one(kind: str, model: str) -> TaskShape:
    return TaskShape(1, kind, model, (), 0, 0, 0, ())


def _of_model(part: EngineRole, model: str) -> EngineRole:
    return part._replace(shape=part.shape._replace(model=model)) if part.shape.devices else part
