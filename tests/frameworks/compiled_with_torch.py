"""Compile a small model on CPU with torch.compile, and print what the compiler's own caches did."""

import torch
from torch._dynamo.utils import counters

layers = [torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)]
model = torch.compile(torch.nn.Sequential(*layers))
print("sum", model(torch.ones(4, 64)).sum().item())
found = counters["inductor"]
print("hits", found["fxgraph_cache_hit"], "misses", found["fxgraph_cache_miss"], flush=True)
