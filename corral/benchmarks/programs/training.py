"""Training steps of small models in PyTorch; in parallel over all processes where there are several."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from corral.benchmarks.programs.given import Given
from corral.benchmarks.programs.steps import figures_of


def measure(given: Given) -> dict[str, float]:
    """Return, for each model, milliseconds of the median step and samples in a second of all processes."""
    import torch

    group: Any = None
    if given.size > 1 and given.addresses:
        group = importlib.import_module("torch.distributed")
        group.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        figures: dict[str, float] = {}
        for name in given.models:
            processes = given.size if group is not None else 1
            seconds = _steps(torch, group, name, given)
            figures |= figures_of(name, seconds, processes * given.parameters["batch_size"])
        return figures if given.first or group is None else {}
    finally:
        if group is not None:
            group.destroy_process_group()


def _steps(torch: Any, group: Any, name: str, given: Given) -> list[float]:
    """Seconds of each measured step. Raises ArithmeticError when the loss is no number."""
    torch.manual_seed(7)
    there = torch.cuda.is_available()
    device = torch.device("cuda", given.local_rank % torch.cuda.device_count()) if there else torch.device("cpu")
    model, batch = MODELS[name](torch, given.parameters["batch_size"])
    model = model.to(device)
    if group is not None:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if there else None)
    inputs, wanted = batch[0].to(device), batch[1].to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seconds = []
    for step in range(given.parameters["warmup"] + given.parameters["steps"]):
        begun = time.perf_counter()
        optimizer.zero_grad()
        found = model(inputs)
        loss = torch.nn.functional.cross_entropy(found.flatten(0, -2), wanted.flatten())
        loss.backward()
        optimizer.step()
        if not torch.isfinite(loss).item():
            raise ArithmeticError(f"the loss of {name} is no number")
        if step >= given.parameters["warmup"]:
            seconds.append(time.perf_counter() - begun)
    return seconds


def _resnet(torch: Any, batch: int) -> tuple[Any, Any]:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.layers(x))

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), Block(16), Block(16), nn.MaxPool2d(2), nn.Conv2d(16, 32, 1), Block(32),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return model, (torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,)))


def _transformer(torch: Any, batch: int) -> tuple[Any, Any]:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 1000))
    tokens = torch.randint(0, 1000, (batch, 65))
    return model, (tokens[:, :-1], tokens[:, 1:])


def _lstm(torch: Any, batch: int) -> tuple[Any, Any]:
    nn = torch.nn

    class Reader(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.cells = nn.Embedding(1000, 64), nn.LSTM(64, 128, batch_first=True)
            self.out = nn.Linear(128, 1000)

        def forward(self, x: Any) -> Any:
            return self.out(self.cells(self.words(x))[0])

    tokens = torch.randint(0, 1000, (batch, 33))
    return Reader(), (tokens[:, :-1], tokens[:, 1:])


def _recommender(torch: Any, batch: int) -> tuple[Any, Any]:
    nn = torch.nn

    class Ranker(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(10_000, 32, mode="sum") for _ in range(8))
            self.top = nn.Sequential(nn.Linear(8 * 32, 64), nn.ReLU(), nn.Linear(64, 2))

        def forward(self, x: Any) -> Any:
            return self.top(torch.cat([table(x[:, at]) for at, table in enumerate(self.tables)], dim=1))

    return Ranker(), (torch.randint(0, 10_000, (batch, 8, 4)), torch.randint(0, 2, (batch,)))


MODELS: dict[str, Callable[[Any, int], tuple[Any, Any]]] = {
    "resnet": _resnet, "transformer": _transformer, "lstm": _lstm, "recommender": _recommender,
}  # fmt: skip
"""Makes a model and one batch for it: inputs, and the classes that they have."""
