"""PyTorch jobs with one planted cause of slowness each, that turn into their healthy twins when the advice is followed.

Each prints `step SECONDS` at the end of each step, by the monotonic clock. Its first word is a file: from the step on at
whose start that is there, the job is its healthy twin. The second is the file where ranks meet, or the one that is read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

STEP: Final = r"(?m)\bstep ([\d.]+)$"
"""What a job prints after each step."""


class Cause(NamedTuple):
    """A planted cause: what is looked at, what its advice is called, and the program."""

    what: str
    """`torch` or `system`, as for `corral profile --what`."""
    subject: str
    """The advice that must come first."""
    program: str
    tasks: int = 1
    cpu: str = "1"


_BEGIN: Final = """\
import os, sys, time, torch
torch.set_num_threads(1)
def healthy():
    return os.path.exists(sys.argv[1])
def stepped():
    print("step", time.monotonic(), flush=True)
"""
_GANG: Final = """\
import torch.distributed as dist
rank = int(os.environ["CORRAL_TASK_INDEX"])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
"""
_LOADER: Final = """\
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(16, 1024)
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4)))
rule = torch.optim.SGD(model.parameters(), 1e-9)
for workers in (0, 3):
    for batch in DataLoader(Images(), batch_size=4, num_workers=workers):
        rule.zero_grad(); model(batch).sum().backward(); rule.step()
        stepped()
        if not workers and healthy(): break
"""
_SLOW_RANK: Final = """\
weights = torch.ones(64, 64)
while True:
    time.sleep(0.05)
    (weights @ weights).sum()
    if rank == 1 and not healthy(): time.sleep(0.1)
    dist.all_reduce(torch.ones(8))
    stepped()
"""
_EXPOSED: Final = """\
weight = torch.nn.Parameter(torch.zeros(2**21))
rule = torch.optim.SGD([weight], 1e-9)
values = torch.ones(2**21)
while True:
    follows = torch.tensor(float(healthy()))
    dist.all_reduce(follows)  # both ranks turn at the same step
    rule.zero_grad()
    for batch in range(16):  # gradients are added up
        time.sleep(0.005)
        (weight * values).sum().backward()
        if not follows or batch == 15: dist.all_reduce(weight.grad)
    rule.step()
    stepped()
"""
_THREAD: Final = """\
left = torch.ones(2048, 2048)
while True:
    torch.set_num_threads(2 if healthy() else 1)
    left @ left
    stepped()
"""
_PAGES: Final = """\
import random
size, record = 2**27, 2**16
with open(sys.argv[2], "wb") as file:
    file.write(os.urandom(size)); file.flush(); os.fsync(file.fileno())
file = os.open(sys.argv[2], os.O_RDONLY)
os.posix_fadvise(file, 0, size, os.POSIX_FADV_RANDOM)
while True:
    for _ in range(64):
        content = os.pread(file, record, record * random.randrange(size // record))
        torch.frombuffer(bytearray(content), dtype=torch.uint8).float().mean()
    if not healthy(): os.posix_fadvise(file, 0, size, os.POSIX_FADV_DONTNEED)  # as where the memory is smaller
    stepped()
"""

CAUSES: Final = {
    "data loader too slow": Cause("torch", "data-loading", _BEGIN + _LOADER),
    "one rank slow": Cause("torch", "imbalance", _BEGIN + _GANG + _SLOW_RANK, tasks=2),
    "communication exposed": Cause("torch", "communication", _BEGIN + _GANG + _EXPOSED, tasks=2),
    "one thread of two": Cause("system", "one-thread", _BEGIN + _THREAD, cpu="2"),
    "page-cache misses": Cause("system", "page-cache", _BEGIN + _PAGES),
}
