"""Compile a function with JAX, and print what JAX says of its persistent cache."""

import logging

import jax
import jax.numpy as jnp

logging.basicConfig()
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


@jax.jit
def planned(values):
    for _ in range(20):
        values = jnp.tanh(values @ values) + 1
    return values


print("shape", planned(jnp.ones((16, 16))).shape, flush=True)
