"""Measure what a server imports at its start, stage by stage and package by package.

`python -m bench.imports` prints the table of docs/performance.md.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from bench.stats import median

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("up", "shared", "front", "control")
"""`corral up` itself, what it loads for both processes, and what each loads after the fork."""
RUNS = 5
_UP = "import corral.cli.command_table, corral.cli.server, corral.lifecycle, corral.engines.local.kind"
_SHARED = "import corral.forking\ncorral.forking.load_shared()"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SMALL = 5.0
"""Milliseconds and tenths of a MB below which the table adds packages up."""


class Cost(NamedTuple):
    """What the modules of one package cost without those that they import."""

    modules: int = 0
    milliseconds: float = 0.0
    megabytes: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """The sum of both."""
        return Cost(
            self.modules + other.modules,
            self.milliseconds + other.milliseconds,
            self.megabytes + other.megabytes,
        )


def measure() -> dict[str, float]:
    """Milliseconds of processor time and MB of resident memory of each stage; milliseconds from a cold cache too."""
    warm, cold = _medians(cold=False), _medians(cold=True)
    figures: dict[str, float] = {}
    for stage in STAGES:
        total = _total(warm[stage])
        figures |= {f"{stage} ms": total.milliseconds, f"{stage} MB": total.megabytes}
        figures[f"{stage} cold ms"] = _total(cold[stage]).milliseconds
    return figures


def _total(costs: dict[str, Cost]) -> Cost:
    total = Cost()
    for cost in costs.values():
        total = total.plus(cost)
    return total


def _medians(*, cold: bool) -> dict[str, dict[str, Cost]]:
    """By stage and package, the medians of several runs."""
    found: dict[str, dict[str, Cost]] = {}
    for stage in STAGES:
        if stage == "shared":
            continue  # it is part of the run of front
        runs = [_run(stage, cold=cold) for _ in range(RUNS)]
        for part in runs[0]:
            if part in found:
                continue
            found[part] = {
                package: Cost(
                    cost.modules,
                    median([each[part].get(package, Cost()).milliseconds for each in runs]),
                    median([each[part].get(package, Cost()).megabytes for each in runs]),
                )
                for package, cost in runs[0][part].items()
            }
    return found


def _run(stage: str, *, cold: bool) -> dict[str, dict[str, Cost]]:
    """The costs of one new interpreter that loads everything up to `stage`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as in an installed Corral, which has its bytecode
    command = [sys.executable, "-m", "bench.imports", stage]
    if cold:
        files = subprocess.run([*command, "files"], env=environment, check=True, stdout=subprocess.PIPE, text=True)
        for name in json.loads(files.stdout.splitlines()[-1]):
            _forget(name)
    done = subprocess.run([*command, "cold" if cold else "warm"], env=environment, check=True, stdout=subprocess.PIPE)
    said: dict[str, dict[str, list[Any]]] = json.loads(done.stdout.splitlines()[-1])
    return {part: {package: Cost(*cost) for package, cost in costs.items()} for part, costs in said.items()}


def _forget(name: str) -> None:
    """Drop a file from the system's cache; pages that another process has mapped stay."""
    with contextlib.suppress(OSError):
        handle = os.open(name, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def imports_of(function: str) -> str:
    """The import statements of a coroutine function of corral/app.py, as code."""
    tree = ast.parse((ROOT / "corral" / "app.py").read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == function)
    return "\n".join(ast.unparse(node) for node in ast.walk(found) if isinstance(node, ast.ImportFrom))


class Recorder:
    """Charges each module's time and memory to its package while modules are loaded."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._inner: list[tuple[float, int]] = []
        self.costs: dict[str, Cost] = {}

    @contextlib.contextmanager
    def charging(self, name: str, *, modules: int) -> Iterator[None]:
        """Charge the block to `name`, without the blocks inside it."""
        self._inner.append((0.0, 0))
        begun, held = self._clock(), _resident()
        try:
            yield
        finally:
            spent, grown = self._clock() - begun, _resident() - held
            inner_spent, inner_grown = self._inner.pop()
            if self._inner:
                above_spent, above_grown = self._inner[-1]
                self._inner[-1] = (above_spent + spent, above_grown + grown)
            cost = Cost(modules, (spent - inner_spent) * 1000, (grown - inner_grown) / 1e6)
            package = package_of(name)
            self.costs[package] = self.costs.get(package, Cost()).plus(cost)

    def install(self) -> None:
        """Record the modules that are loaded from now on."""
        self._wrap(SourceFileLoader, "exec_module", lambda module: module.__name__, 1)
        self._wrap(ExtensionFileLoader, "create_module", lambda spec: spec.name, 1)
        self._wrap(ExtensionFileLoader, "exec_module", lambda module: module.__name__, 0)

    def _wrap(self, loader: Any, method: str, name_of: Callable[[Any], str], modules: int) -> None:
        original = getattr(loader, method)

        def recorded(own: Any, what: Any) -> Any:
            with self.charging(name_of(what), modules=modules):
                return original(own, what)

        setattr(loader, method, recorded)


def package_of(module: str) -> str:
    """The package that a module is charged to: Corral's rooms apart, the standard library together."""
    first, *more = module.split(".")
    if first == "corral" and more:
        return f"corral.{more[0]}"
    return "(standard library)" if first in sys.stdlib_module_names else first


def _resident() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def _load(stage: str, *, cold: bool) -> dict[str, dict[str, Cost]]:
    """Load everything up to `stage` in this interpreter; the costs by part."""
    parts = {"up": _UP}
    if stage != "up":
        parts |= {"shared": _SHARED, stage: imports_of(f"_{stage}")}
    found = {}
    recorder = Recorder(time.perf_counter if cold else time.process_time)
    recorder.install()
    for part, code in parts.items():
        recorder.costs = {}
        exec(compile(code, part, "exec"), {})  # noqa: S102 (our own import statements)
        found[part] = recorder.costs
    gc.collect()
    return found


def _files() -> list[str]:
    """The files of all modules that this interpreter has loaded."""
    modules = list(sys.modules.values())
    names = {getattr(each, kind, None) for each in modules for kind in ("__file__", "__cached__")}
    return sorted(name for name in names if name)


def table() -> str:
    """The costs by stage and package as Markdown."""
    warm, cold = _medians(cold=False), _medians(cold=True)
    lines = ["| stage | package | modules | warm ms | cold ms | MB |", "|---|---|---|---|---|---|"]
    for stage in STAGES:
        rows = sorted(warm[stage].items(), key=lambda row: -row[1].milliseconds)
        small = [name for name, cost in rows if cost.milliseconds < _SMALL and cost.megabytes * 10 < _SMALL]
        shown = [(name, cost, cold[stage].get(name, Cost())) for name, cost in rows if name not in small]
        rest = _total({name: warm[stage][name] for name in small})
        rest_cold = _total({name: cold[stage].get(name, Cost()) for name in small})
        all_cold = _total(cold[stage])
        for name, cost, slow in [
            ("**all**", _total(warm[stage]), all_cold),
            *shown,
            (f"{len(small)} others", rest, rest_cold),
        ]:
            figures = f"{cost.milliseconds:.0f} | {slow.milliseconds:.0f} | {cost.megabytes:.1f}"
            lines.append(f"| {stage} | {name} | {cost.modules} | {figures} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        stage, how = sys.argv[1:]
        costs = _load(stage, cold=how == "cold")
        print(json.dumps(_files() if how == "files" else costs))
    else:
        print(table())
