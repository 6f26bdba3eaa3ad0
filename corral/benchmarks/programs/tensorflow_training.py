"""Training steps of small models in TensorFlow, where it is installed; each process measures for itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from corral.benchmarks.programs.given import Given
from corral.benchmarks.programs.jax_training import CLASSES, WIDTH, WORDS
from corral.benchmarks.programs.steps import figures_of_models, measured_steps


def measure(given: Given) -> dict[str, float]:
    """Return, for each model, milliseconds of the median step and samples in a second; nothing without TensorFlow."""
    return figures_of_models("tensorflow", given, _steps)


def _steps(name: str, given: Given) -> list[float]:
    """Seconds of each measured step. Raises ArithmeticError when the loss is no number, or does not fall."""
    tf: Any = importlib.import_module("tensorflow")
    tf.random.set_seed(7)
    batch = given.parameters["batch_size"]
    model, weights, shape = _MODELS[name](tf)
    inputs = tf.random.normal((batch, *shape))
    wanted = tf.random.uniform((batch,), 0, CLASSES, tf.int32)

    def step() -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=model(inputs))
            loss = tf.reduce_mean(losses)
        for at, slope in enumerate(tape.gradient(loss, weights)):
            weights[at].assign_sub(0.05 * slope)
        return loss

    compiled = tf.function(step)
    return measured_steps(name, given, lambda: float(compiled().numpy()))  # waits for the device


def _weights(tf: Any, *shapes: tuple[int, int]) -> list[Any]:
    return [tf.Variable(tf.random.normal(shape) / shape[0] ** 0.5) for shape in shapes]


def _mlp(tf: Any) -> tuple[Callable[[Any], Any], list[Any], tuple[int, ...]]:
    weights = _weights(tf, (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, CLASSES))

    def model(x: Any) -> Any:
        for weight in weights[:-1]:
            x = tf.nn.relu(x @ weight)
        return x @ weights[-1]

    return model, weights, (WIDTH,)


def _attention(tf: Any) -> tuple[Callable[[Any], Any], list[Any], tuple[int, ...]]:
    weights = _weights(tf, (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, CLASSES))

    def model(x: Any) -> Any:
        query, key, value = (x @ weight for weight in weights[:3])
        shares = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / WIDTH**0.5)
        return tf.reduce_mean(tf.matmul(shares, value), axis=1) @ weights[3]

    return model, weights, (WORDS, WIDTH)


_MODELS = {"mlp": _mlp, "attention": _attention}
