"""Computes pi: every rank adds up its part of an integral, and all add up the parts."""

from __future__ import annotations

import math
import os

from mpi4py import MPI

STEPS = 1_000_000

world = MPI.COMM_WORLD
part = sum(4 / (1 + ((i + 0.5) / STEPS) ** 2) for i in range(world.rank, STEPS, world.size)) / STEPS
pi = world.allreduce(part)
places = world.gather(f"{world.rank}={os.environ['CORRAL_ROLE']}-{os.environ['CORRAL_TASK_INDEX']}")
if world.rank == 0:
    print(f"pi is {pi:.10f}, by {world.size} ranks: {' '.join(places or [])}", flush=True)
raise SystemExit(0 if math.isclose(pi, math.pi, rel_tol=1e-9) else 1)
