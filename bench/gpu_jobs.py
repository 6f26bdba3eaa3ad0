"""Programs of the benchmark `gpu`, each for one NVIDIA GPU and PyTorch.

`$BENCH_DEVICE` is `cuda`; `cpu` tries the flow of the benchmark where no GPU is.
"""

from __future__ import annotations

from typing import Final

BEGIN: Final = """\
import os, time, torch
device = torch.device(os.environ.get("BENCH_DEVICE", "cuda"))
def waited():
    if device.type == "cuda": torch.cuda.synchronize()
"""
TRAINING: Final = (
    BEGIN
    + """\
from corral import report
print("devices", torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
wide, batch = (1024, 64) if device.type == "cuda" else (64, 2)
layer = torch.nn.TransformerEncoderLayer(wide, 8, 4 * wide, dropout=0.0, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device)
rule = torch.optim.SGD(model.parameters(), 1e-6)
if device.type == "cuda":
    held = torch.empty(int(0.85 * torch.cuda.mem_get_info()[0]), dtype=torch.uint8, device=device)
step = 0
while True:
    values = torch.ones(batch, 512 if device.type == "cuda" else 8, wide, device=device)
    with torch.autocast(device.type, torch.bfloat16):
        loss = model(values).float().square().mean()
    rule.zero_grad(); loss.backward(); rule.step()
    waited()
    step += 1
    report(step=step, loss=float(loss))
    print("step", step, time.monotonic(), flush=True)
"""
)
"""A transformer that keeps the device busy and its memory full: a healthy job."""

SLOW_LOADER: Final = (
    BEGIN
    + """\
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.ones(16, 1024)
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).to(device)
rule = torch.optim.SGD(model.parameters(), 1e-9)
for number, batch in enumerate(DataLoader(Images(), batch_size=8)):
    rule.zero_grad(); model(batch.to(device)).sum().backward(); rule.step()
    waited()
    print("step", number, flush=True)
"""
)
"""A model that waits for its data loader for most of each step."""

STUCK: Final = (
    BEGIN
    + """\
import torch.distributed as dist
from corral import report
kind = "nccl" if device.type == "cuda" else "gloo"
dist.init_process_group(kind, init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
for step in range(40):
    dist.all_reduce(torch.ones(1024, device=device))
    waited()
    report(step=step)
    time.sleep(0.25)
print("stuck", flush=True)
if device.type == "cuda":
    torch.cuda._sleep(10**12)  # the stream never gets to the next collective, as where a peer does not join it
    dist.all_reduce(torch.ones(1024, device=device))
    waited()
time.sleep(10_000)
"""
)
"""One rank of NCCL that reports forty steps and then waits for a collective without end, with a busy processor."""

COMPILED: Final = """\
import time, torch
device = "cuda" if torch.cuda.is_available() else "cpu"
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True)
model = torch.compile(torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device))
values = torch.ones(2, 16, 256, device=device)
begun = time.perf_counter()
model(values).sum().backward()
if device == "cuda": torch.cuda.synchronize()
print("first step", time.perf_counter() - begun)
"""
"""The first step of a compiled transformer, of which Triton's kernels are the largest part."""

CONFINED: Final = (
    BEGIN
    + """\
print("processors", torch.cuda.get_device_properties(0).multi_processor_count, flush=True)
try:
    held = torch.empty(40 * 2**30, dtype=torch.uint8, device=device)
    print("memory unbounded", flush=True)
except torch.OutOfMemoryError:
    print("memory bounded", flush=True)
"""
)
"""A task with a part of a device: tells its processors, and asks for more memory than its part has."""

SUITE: Final = """\
version: v0.12
superbench:
  benchmarks:
    "matmul:device": {modes: [{name: local, proc_num: devices}], parameters: {size: 8192, repeat: 20}}
    mem-bw: {modes: [{name: local, proc_num: devices}], parameters: {size_mib: 1024, repeat: 20}}
    kernel-launch: {modes: [{name: local, proc_num: devices}]}
    all-reduce: {parameters: {most_mib: 256}}
    all-to-all: {parameters: {most_mib: 256}}
    "model-benchmarks:one": {modes: [{name: local}]}
    jax-benchmarks: {}
"""
"""What of the suites measures one GPU."""
