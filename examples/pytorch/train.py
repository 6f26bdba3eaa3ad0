"""Trains a small network on scikit-learn's digits, data parallel over all processes of the job.

Corral (or torchrun) sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Every process keeps a checkpoint, in its own
folder or in the one it is given. After a restart all go on from the newest one, so the size of the job may change while
it runs. SIGUSR1 asks for a checkpoint and the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

try:
    from corral import report  # there where the job says `report: true`
except ImportError:

    def report(**values: object) -> bool:
        """Without Corral nobody reads it."""
        return False


asked_to_end = False


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--batch", type=int, default=32, help="images per process and step")
    options.add_argument("--data", type=Path, help="lines of 64 points and their digit, if not scikit-learn's own")
    options.add_argument("--pause", type=float, default=0.0, help="seconds to rest after each epoch, to watch it run")
    options.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"), help="a place that outlives the job")
    options.add_argument("--output", type=Path, default=Path("output"))
    given = options.parse_args()
    signal.signal(signal.SIGUSR1, ask_to_end)

    device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)

    train, test = digits(given.data)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    begin = resume(given.checkpoint, model, optimizer)
    parallel = DistributedDataParallel(model)
    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(train, seed=7)
    loader = DataLoader(train, batch_size=given.batch, sampler=sampler)

    noise = GradientNoise(parallel, given.batch)
    if rank == 0:
        print(f"training on {len(train)} images with {world} processes from epoch {begin + 1}", flush=True)
    accuracy = 0.0
    for epoch in range(begin, given.epochs):
        sampler.set_epoch(epoch)
        began, losses = time.monotonic(), []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        noise.measure(images.to(device), labels.to(device))
        mean = torch.stack(losses).mean()
        dist.all_reduce(mean)
        accuracy = evaluate(model, test, device)
        if os.environ.get("LOCAL_RANK", "0") == "0":
            save(given.checkpoint, epoch + 1, model, optimizer)
        if rank == 0:
            learned = f"loss {mean.item() / world:.5f} accuracy {accuracy:.4f}"
            print(f"epoch {epoch + 1}/{given.epochs} {learned} processes {world}", flush=True)
        time.sleep(given.pause)
        if rank == 0:
            report(
                step=epoch + 1,
                steps=given.epochs,
                loss=mean.item() / world,
                throughput=len(train) / (time.monotonic() - began),
                batch_size=given.batch * world,
                gradient_noise=noise.scale,
            )
        if asked_to_end:
            print(f"asked to end after epoch {epoch + 1}", flush=True)
            sys.exit()

    if rank == 0:
        given.output.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), given.output / "model.pt")
        print(f"model saved to {given.output / 'model.pt'}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


class GradientNoise:
    """The gradient noise scale in images: how large a batch pays (McCandlish et al. 2018, appendix A.1).

    The gradients of one batch of each process are compared with their mean over all processes. Both terms are averaged
    over epochs, because one measurement scatters.
    """

    def __init__(self, parallel: DistributedDataParallel, batch: int) -> None:
        self.parallel, self.batch = parallel, batch
        self.noise = self.signal = 0.0

    @property
    def scale(self) -> float | None:
        """The scale; None while it is not known, as with one process."""
        return self.noise / self.signal if self.noise > 0 and self.signal > 0 else None

    def measure(self, images: Tensor, labels: Tensor) -> None:
        """Take the gradients of a batch on every process; the model is left as it is."""
        world = dist.get_world_size()
        if world == 1:
            return
        self.parallel.zero_grad()
        with self.parallel.no_sync():
            nn.functional.cross_entropy(self.parallel(images), labels).backward()
        mean = torch.cat([weight.grad.flatten() for weight in self.parallel.parameters()])
        squares = mean.pow(2).sum()
        dist.all_reduce(mean)
        dist.all_reduce(squares)
        small, large = squares.item() / world, (mean / world).pow(2).sum().item()
        self.signal = 0.9 * self.signal + 0.1 * (world * large - small) / (world - 1)
        self.noise = 0.9 * self.noise + 0.1 * (small - large) * self.batch * world / (world - 1)
        self.parallel.zero_grad()


def ask_to_end(number: int, frame: object) -> None:
    """Finish and save the current epoch, then end."""
    global asked_to_end
    asked_to_end = True


def digits(data: Path | None) -> tuple[TensorDataset, TensorDataset]:
    """Images of 8 × 8 points (scikit-learn has 1,797): three quarters to train on, the rest to test with."""
    if data is None:
        from sklearn.datasets import load_digits  # its import takes a second, which others are spared

        images, labels = load_digits(return_X_y=True)
    else:
        rows = numpy.loadtxt(data, delimiter=",")
        images, labels = rows[:, :64], rows[:, 64].astype(int)
    points, wanted = torch.tensor(images / 16).float(), torch.tensor(labels)
    order = torch.randperm(len(wanted), generator=torch.Generator().manual_seed(7))
    parts = order[len(wanted) // 4 :], order[: len(wanted) // 4]
    train, test = (TensorDataset(points[part], wanted[part]) for part in parts)
    return train, test


def evaluate(model: nn.Module, test: TensorDataset, device: torch.device) -> float:
    """The share of right answers; each process tests its own part."""
    images, labels = (tensor[dist.get_rank() :: dist.get_world_size()].to(device) for tensor in test.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum()
    counts = torch.stack([right, torch.tensor(len(labels), device=device)])
    dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def save(place: Path, epoch: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write the checkpoint atomically."""
    fresh = place.with_suffix(f".{dist.get_rank()}.new")
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, fresh)
    fresh.replace(place)


def resume(place: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Load the newest checkpoint of any process; returns the number of epochs done."""
    mine = torch.load(place, map_location="cpu") if place.exists() else None
    epochs: list[int | None] = [None] * dist.get_world_size()
    dist.all_gather_object(epochs, mine["epoch"] if mine else 0)
    done = max(epoch or 0 for epoch in epochs)
    if done:
        newest = [mine if mine and mine["epoch"] == done else None]
        dist.broadcast_object_list(newest, src=epochs.index(done))
        assert newest[0] is not None
        model.load_state_dict(newest[0]["model"])
        optimizer.load_state_dict(newest[0]["optimizer"])
    return done


if __name__ == "__main__":
    main()
