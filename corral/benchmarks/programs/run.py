"""Run one benchmark in a task: start its processes, collect their figures, and print them as one line.

```
python -m corral.benchmarks.programs.run NAME --program MODULE --processes N
    [--gang ADDRESSES] [--mpi] [--parameters JSON] [--models NAMES]
```
The task's code has these programs below `corral/`, and nothing else of Corral.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import FrameType

from corral.benchmarks.programs.given import Given, NotMeasurable

MARK = "CORRAL-BENCHMARK "
"""What the line of figures begins with."""
_LONGEST_PROBLEM = 300
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
"""The variables by which the vendors' runtimes show a process some devices; HIP counts those that ROCr leaves."""

Measured = tuple[dict[str, float], str, str]
"""The figures of a process, what went wrong, and why nothing could be measured, which is no fault."""


def main(argv: Sequence[str]) -> int:
    """Run the benchmark; 0 if every process ended well."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("name")
    options.add_argument("--program", required=True)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--gang", default="", help="HOST:PORT of each task, with commas between")
    options.add_argument("--mpi", action="store_true")
    options.add_argument("--parameters", type=json.loads, default={})
    options.add_argument("--models", default="")
    options.add_argument("--one", type=int, default=-1, help="the process of this local rank, for itself")
    options.add_argument("--into", default="", help="the file that one process writes its figures to")
    given = options.parse_args(argv)
    if given.mpi:
        local = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))
        rank, size = _place_of_mpi(given, local)
        os.environ.update(_known(given, rank, size, local))
        measured = _measured(given, rank, size, local)
        _tell(given.name, [(rank, measured)])
        return 1 if measured[1] else 0
    if given.one >= 0:
        measured = _measured(given, *_place(given, given.one), given.one)
        with open(given.into, "w", encoding="utf-8") as file:
            json.dump(measured, file)
        return 1 if measured[1] else 0
    return _run_processes(given, list(argv))


def _place(given: argparse.Namespace, local: int) -> tuple[int, int]:
    """The rank of a process and the number of all; processes that do not work together are a gang of their task."""
    if not given.gang:
        return local, given.processes
    task = int(os.environ.get("CORRAL_TASK_INDEX", "0"))
    return task * given.processes + local, len(given.gang.split(",")) * given.processes


def _place_of_mpi(given: argparse.Namespace, local: int) -> tuple[int, int]:
    """The rank of a process that mpirun started, and the number of all.

    mpirun counts in the order of the topology. Addresses and nodes are in the order of the tasks, so ranks are, too.
    """
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
    size = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
    if not given.gang:
        return rank, size
    return int(os.environ.get("CORRAL_TASK_INDEX", "0")) * (size // len(given.gang.split(","))) + local, size


def _measured(given: argparse.Namespace, rank: int, size: int, local: int) -> Measured:
    addresses = tuple(filter(None, given.gang.split(",")))
    models = tuple(filter(None, given.models.split(",")))
    try:
        program = importlib.import_module(f"{__spec__.parent}.{given.program}")
        found = program.measure(Given(rank, size, local, addresses, given.parameters, models))
        return {name: float(value) for name, value in found.items()}, "", ""
    except NotMeasurable as error:
        return {}, "", str(error)[:_LONGEST_PROBLEM]
    except Exception as error:
        return {}, f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM], ""


def _run_processes(given: argparse.Namespace, argv: list[str]) -> int:
    running: list[subprocess.Popen[bytes]] = []

    def end(number: int, frame: FrameType | None) -> None:
        for process in running:
            process.terminate()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    results: list[tuple[int, Measured]] = []
    with tempfile.TemporaryDirectory() as folder:
        for local in range(given.processes):
            into = os.path.join(folder, str(local))
            env = {**os.environ, **variables(given, local)}
            running.append(
                subprocess.Popen(
                    [sys.executable, "-m", __spec__.name, *argv, f"--one={local}", f"--into={into}"], env=env
                )
            )
        for local, process in enumerate(running):
            code = process.wait()
            results.append((_place(given, local)[0], _read(os.path.join(folder, str(local)), code)))
    _tell(given.name, results)
    return 1 if any(problem for _, (_, problem, _) in results) else 0


def variables(given: argparse.Namespace, local: int) -> dict[str, str]:
    """What PyTorch's `env://` reads, and the one device of a process where there are several."""
    known = _known(given, *_place(given, local), local)
    for name in _VISIBLE:
        visible = [each for each in os.environ.get(name, "").split(",") if each]
        if given.processes > 1 and len(visible) >= given.processes:
            known[name] = visible[local]
    return known


def _known(given: argparse.Namespace, rank: int, size: int, local: int) -> dict[str, str]:
    known = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(local)}
    if given.gang:
        host, _, port = given.gang.split(",")[0].rpartition(":")
        known |= {"MASTER_ADDR": host, "MASTER_PORT": port}
    return known


def _read(path: str, code: int) -> Measured:
    try:
        with open(path, encoding="utf-8") as file:
            figures, problem, reason = json.load(file)
    except (OSError, ValueError):
        ended = f"signal {-code}" if code < 0 else f"code {code}"
        return {}, f"the process ended with {ended} and told nothing", ""
    return figures, problem, reason


def _tell(name: str, results: list[tuple[int, Measured]]) -> None:
    metrics: dict[str, float] = {}
    for rank, (figures, _, _) in results:
        metrics |= {f"{name}/{metric}:{rank}": round(value, 6) for metric, value in figures.items()}
    problems = [f"rank {rank}: {problem}" for rank, (_, problem, _) in results if problem]
    left_out = sorted({reason for _, (_, _, reason) in results if reason})
    metrics[f"{name}/return_code"] = 1 if problems else 0
    print(MARK + json.dumps({"metrics": metrics, "problems": problems, "leftOut": left_out}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
