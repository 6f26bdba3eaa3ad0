"""Sums over all processes again and again, elastically: it goes on with whoever is there."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import horovod.torch as hvd
import torch

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--steps", type=int, default=20)
options.add_argument("--pause", type=float, default=0.2, help="seconds between two steps")
given = options.parse_args()

hvd.init()


@hvd.elastic.run
def train(state: Any) -> None:
    while state.step < given.steps:
        total = int(hvd.allreduce(torch.ones(1), op=hvd.Sum).item())
        task = f"{os.environ['CORRAL_ROLE']}-{os.environ['CORRAL_TASK_INDEX']}"
        print(f"step {state.step + 1}/{given.steps} on {task}: rank {hvd.rank()} of {total}", flush=True)
        state.step += 1
        time.sleep(given.pause)
        state.commit()


train(hvd.elastic.TorchState(step=0))
