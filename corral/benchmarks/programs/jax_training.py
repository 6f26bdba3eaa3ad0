"""Training steps of small models in JAX, where it is installed; each process measures for itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from corral.benchmarks.programs.given import Given
from corral.benchmarks.programs.steps import figures_of_models, measured_steps

WIDTH, CLASSES, WORDS = 256, 10, 64
"""The width of layers, the classes that are told apart, and the words of a sentence."""


def measure(given: Given) -> dict[str, float]:
    """Return, for each model, milliseconds of the median step and samples in a second; nothing without JAX."""
    return figures_of_models("jax", given, _steps)


def _steps(name: str, given: Given) -> list[float]:
    """Seconds of each measured step. Raises ArithmeticError when the loss is no number, or does not fall."""
    jax: Any = importlib.import_module("jax")
    model, weights, inputs = _MODELS[name](jax, given.parameters["batch_size"])
    wanted = jax.random.randint(jax.random.key(2), (given.parameters["batch_size"],), 0, CLASSES)

    def loss_of(weights: Any) -> Any:
        scores = jax.nn.log_softmax(model(weights, inputs))
        return -jax.numpy.take_along_axis(scores, wanted[:, None], axis=1).mean()

    def step(weights: Any) -> Any:
        loss, slopes = jax.value_and_grad(loss_of)(weights)
        return loss, jax.tree.map(lambda weight, slope: weight - 0.05 * slope, weights, slopes)

    compiled = jax.jit(step)

    def run() -> float:
        nonlocal weights
        loss, weights = compiled(weights)
        return float(loss)  # waits for the device

    return measured_steps(name, given, run)


def _mlp(jax: Any, batch: int) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    keys = jax.random.split(jax.random.key(1), 4)
    sizes = (WIDTH, WIDTH, WIDTH, CLASSES)
    weights = [jax.random.normal(keys[at], (sizes[at], sizes[at + 1])) / sizes[at] ** 0.5 for at in range(3)]

    def model(weights: Any, x: Any) -> Any:
        for weight in weights[:-1]:
            x = jax.nn.relu(x @ weight)
        return x @ weights[-1]

    return model, weights, jax.random.normal(keys[3], (batch, WIDTH))


def _attention(jax: Any, batch: int) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    keys = jax.random.split(jax.random.key(1), 5)
    weights = [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys[:3]]
    weights.append(jax.random.normal(keys[3], (WIDTH, CLASSES)) / WIDTH**0.5)

    def model(weights: Any, x: Any) -> Any:
        query, key, value = (x @ weight for weight in weights[:3])
        shares = jax.nn.softmax(query @ key.swapaxes(1, 2) / WIDTH**0.5)
        return (shares @ value).mean(axis=1) @ weights[3]

    return model, weights, jax.random.normal(keys[4], (batch, WORDS, WIDTH))


_MODELS = {"mlp": _mlp, "attention": _attention}
