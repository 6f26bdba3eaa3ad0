"""Fits a line by gradient descent on data that is spread over all processes of the job."""

from __future__ import annotations

import os

import jax

# The coordinator's address is in the environment. The heartbeat finds a lost peer after 10 s instead of 100.
jax.distributed.initialize(
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
    process_id=int(os.environ["JAX_PROCESS_ID"]),
    heartbeat_timeout_seconds=10,
)

import jax.numpy as jnp  # noqa: E402  (after the processes have met)
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

SLOPE = np.array([1.0, -2.0, 3.0, 0.5], dtype=np.float32)
RATE = 0.5 * jax.process_count()  # each process adds its part of the gradient only

mine = np.random.default_rng(jax.process_index()).uniform(-1, 1, size=(256, 4)).astype(np.float32)
mine[:, np.arange(4) % jax.process_count() != jax.process_index()] = 0  # so that no process learns the whole line alone
mesh = Mesh(np.array(jax.devices()), ("data",))
spread = NamedSharding(mesh, PartitionSpec("data"))
inputs = jax.make_array_from_process_local_data(spread, mine)
targets = jax.make_array_from_process_local_data(spread, mine @ SLOPE)


@jax.jit
def step(weights: jax.Array, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    return weights - RATE * jax.grad(lambda w: jnp.mean((inputs @ w - targets) ** 2))(weights)


weights = jnp.zeros(4)
for _ in range(60):
    weights = step(weights, inputs, targets)
error = float(jnp.abs(weights - SLOPE).max())
print(f"process {jax.process_index()} of {jax.process_count()}: error {error:.6f}", flush=True)
raise SystemExit(0 if error < 0.01 else 1)
