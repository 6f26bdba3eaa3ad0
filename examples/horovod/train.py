"""Fits a line to noisy points, elastically: after a change of members it goes on from the last step that all committed."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import horovod.torch as hvd
import torch

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--steps", type=int, default=50)
options.add_argument("--pause", type=float, default=0.2, help="seconds between two steps")
options.add_argument("--rate", type=float, default=0.01, help="how far each step goes")
options.add_argument("--enough", type=Path, help="end early once the first process sees this file")
given = options.parse_args()

hvd.init()
device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(7)
inputs = torch.randn(4096, 16, device=device)
wanted = inputs @ torch.linspace(-1, 1, 16, device=device).unsqueeze(1) + 3
model = torch.nn.Linear(16, 1).to(device)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=given.rate), model.named_parameters())
task = f"{os.environ['CORRAL_ROLE']}-{os.environ['CORRAL_TASK_INDEX']}"


def enough() -> bool:
    """Whether all are to end now: only one looks, as a file appears to each at its own moment."""
    return given.enough is not None and bool(hvd.broadcast_object(given.enough.exists(), root_rank=0))


@hvd.elastic.run
def train(state: Any) -> None:
    while state.step < given.steps and not enough():
        mine = slice(hvd.rank(), None, hvd.size())
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[mine]), wanted[mine])
        loss.backward()
        optimizer.step()
        total = hvd.allreduce(loss.detach()).item()
        state.step += 1
        print(
            f"step {state.step}/{given.steps} on {task}: rank {hvd.rank()} of {hvd.size()}, loss {total:.6f}",
            flush=True,
        )
        time.sleep(given.pause)
        state.commit()


train(hvd.elastic.TorchState(model, optimizer, step=0))
