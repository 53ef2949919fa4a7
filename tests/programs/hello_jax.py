"""JAX finds its world without arguments; all processes add up their numbers."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize()
import jax.numpy as jnp  # noqa: E402 - after the start of JAX
from jax.experimental import multihost_utils  # noqa: E402

ranks = multihost_utils.process_allgather(jnp.array([jax.process_index()]))
os.write(1, f"hello {jax.process_index()} {jax.process_count()} {int(ranks.sum())}\n".encode())
