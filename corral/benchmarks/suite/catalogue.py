"""The benchmarks that Corral has: the program of each, what it needs, its parameters and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput


class Parameter(NamedTuple):
    """A whole number that a suite may set."""

    default: int
    least: int
    most: int
    what: str


class Kind(NamedTuple):
    """One benchmark of the catalogue."""

    program: str
    """The module below `programs/`."""
    what: str
    metrics: tuple[str, ...]
    """The beginnings of its metrics' names. Their ends tell the unit and which way is better, see `Unit`."""
    parameters: Mapping[str, Parameter] = {}
    models: tuple[str, ...] = ()
    """The models it trains; a suite may name some of them."""
    gang: bool = False
    """Its processes work together: it runs in mode `torch.distributed` or `mpi`, over several tasks."""
    torch: bool = False
    """It needs PyTorch where its tasks run."""


class Unit(NamedTuple):
    """The unit of a metric, and whether a larger value is better."""

    suffix: str
    unit: str
    larger_is_better: bool


UNITS: Final = (
    Unit("_bw", "GB/s", True),
    Unit("_flops", "GFLOPS", True),
    Unit("_throughput", "1/s", True),
    Unit("_time", "ms", False),
    Unit("_lat", "us", False),
    Unit("return_code", "", False),
)
"""The ends of metrics' names, as SuperBench has them."""

_SIZE: Final = {"size_mib": Parameter(64, 1, 65_536, "MiB of each array or file")}
_REPEATED: Final = {"repeat": Parameter(5, 1, 1000, "how often it is measured; the best counts")}
_STEPS: Final = {
    "steps": Parameter(20, 1, 100_000, "training steps that are measured"),
    "warmup": Parameter(3, 0, 10_000, "steps before them"),
    "batch_size": Parameter(16, 1, 65_536, "samples in a step of one process"),
}

KINDS: Final[Mapping[str, Kind]] = {
    "process-launch": Kind(
        "launch", "The time that a process takes from its start to its end.", ("spawn", "python"), _REPEATED
    ),
    "cpu-stream": Kind(
        "stream", "STREAM: the bandwidth of memory by copy, scale, add and triad (McCalpin, 1995).",
        ("copy", "scale", "add", "triad"), _SIZE | _REPEATED,
    ),
    "matmul": Kind(
        "matmul", "Products of two square matrices, on each device or on the processor; the result is checked.",
        ("fp32",), {"size": Parameter(1024, 16, 32_768, "rows of a matrix")} | _REPEATED,
    ),
    "mem-bw": Kind(
        "copies", "Copies from host to device, back, and between devices.", ("h2d", "d2h", "d2d"),
        _SIZE | _REPEATED, torch=True,
    ),
    "kernel-launch": Kind(
        "kernel_launch", "The time of the smallest kernel from its launch to its end.", ("wall", "event", "queued"),
        {"launches": Parameter(1000, 1, 100_000, "launches that are measured together")} | _REPEATED, torch=True,
    ),
    "peer-bw": Kind(
        "peers", "Copies between each two devices of a node: over NVLink, PCI Express or the host's memory.",
        ("peer", "min_peer", "max_peer"), _SIZE | _REPEATED, torch=True,
    ),
    "disk-benchmark": Kind(
        "disk", "Sequential and random reads and writes in the task's folder, by fio where it is installed.",
        ("seq_read", "seq_write", "rand_read", "rand_write"),
        _SIZE | {"seconds": Parameter(5, 1, 3600, "seconds of each fio job")},
    ),
    "data-loading": Kind(
        "loading", "Decompression of gzip and decoding of records by the processor.", ("gunzip", "records"),
        _SIZE | _REPEATED,
    ),
    "tcp-bw": Kind(
        "network", "Latency and bandwidth of TCP between each pair of tasks.", ("pair", "min_pair"), _SIZE, gang=True
    ),
    "rdma-bw": Kind(
        "rdma", "Latency and bandwidth of RDMA writes between each pair of tasks, by perftest where it is installed.",
        ("pair", "min_pair"),
        {
            "size_kib": Parameter(1024, 1, 1_048_576, "KiB of a message"),
            "iterations": Parameter(1000, 5, 1_000_000, "messages of a measurement"),
        },
        gang=True,
    ),
    "all-reduce": Kind(
        "all_reduce", "Bus bandwidth of an all-reduce by size, over NCCL on devices and gloo on processors.",
        ("size", "largest"), {"most_mib": Parameter(64, 1, 16_384, "MiB of the largest message")} | _REPEATED,
        gang=True, torch=True,
    ),
    "all-to-all": Kind(
        "all_to_all", "Bus bandwidth of an all-to-all by size, over NCCL on devices and gloo on processors.",
        ("size", "largest", "smallest"), {"most_mib": Parameter(64, 1, 16_384, "MiB of the largest message")} | _REPEATED,
        gang=True, torch=True,
    ),
    "model-benchmarks": Kind(
        "training", "Training steps of small models in PyTorch, in each process or in parallel over all.",
        ("step", "samples"), _STEPS, ("resnet", "transformer", "lstm", "recommender"), gang=True, torch=True,
    ),
    "jax-benchmarks": Kind(
        "jax_training", "Training steps of small models in JAX, where it is installed.",
        ("mlp", "attention"), _STEPS, ("mlp", "attention"),
    ),
    "tensorflow-benchmarks": Kind(
        "tensorflow_training", "Training steps of small models in TensorFlow, where it is installed.",
        ("mlp", "attention"), _STEPS, ("mlp", "attention"),
    ),
}  # fmt: skip
"""Every benchmark by its name; names that SuperBench has too mean the same there."""


def kind_of(name: str) -> Kind:
    """Return the benchmark of a name, without its annotation. Raises InvalidInput with the known names."""
    kind = KINDS.get(name.partition(":")[0])
    if kind is None:
        known = ", ".join(KINDS)
        raise InvalidInput("unknown-benchmark", f'There is no benchmark "{name[:60]}"; there are {known}.')
    return kind


def unit_of(metric: str) -> Unit | None:
    """Return the unit of a metric such as `cpu-stream/triad_bw:0`; None for a name with another end."""
    name = metric.rpartition("/")[2].partition(":")[0]
    return next((unit for unit in UNITS if name.endswith(unit.suffix)), None)
