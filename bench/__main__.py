"""Run the benchmarks: `python -m bench` lists them, `python -m bench NAME [-o json]` runs one."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from datetime import UTC, datetime

from bench.bounds import Benchmark, load_bounds
from bench.machine import describe
from corral import __version__


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns 1 when a figure misses its `must` bound, 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Corral against bench/bounds.toml.")
    parser.add_argument("name", nargs="?", help="which benchmark; without a name they are listed")
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args(arguments)
    bounds = load_bounds()
    if options.name is None:
        for benchmark in bounds.values():
            print(f"{benchmark.name:18} {benchmark.what}")
        return 0
    if options.name not in bounds:
        print(f"There is no benchmark {options.name!r}: {', '.join(bounds)}.", file=sys.stderr)
        return 2
    record = run(bounds[options.name])
    print(json.dumps(record, indent=2) if options.output == "json" else table(record))
    return 1 if record["missed"] else 0


def run(benchmark: Benchmark) -> dict[str, object]:
    """Run one benchmark and return its record: date, machine, and every figure with its bounds and verdict.

    Raises RuntimeError when the benchmark did not report a figure that bounds.toml has.
    """
    machine = describe()
    begun = time.perf_counter()
    measured: dict[str, float] = importlib.import_module(benchmark.module).measure()
    figures = []
    for figure in benchmark.figures:
        if figure.name not in measured:
            raise RuntimeError(f"the benchmark {benchmark.name} did not report {figure.name}")
        value = measured[figure.name]
        figures.append(
            {
                "name": figure.name,
                "value": round(value, 3),
                "unit": figure.unit,
                "must": figure.must,
                "aim": figure.aim,
                "verdict": figure.verdict(value),
            }
        )
    known = {figure.name for figure in benchmark.figures}
    return {
        "benchmark": benchmark.name,
        "what": benchmark.what,
        "version": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - begun, 1),
        "machine": machine,
        "figures": figures,
        "also": {name: round(value, 3) for name, value in measured.items() if name not in known},
        "missed": [figure["name"] for figure in figures if figure["verdict"] == "missed"],
    }


def table(record: dict[str, object]) -> str:
    """Format the record as a table for people."""
    lines = [f"{record['benchmark']}: {record['what']}"]
    figures = record["figures"]
    assert isinstance(figures, list)
    for figure in figures:
        bounds = ", ".join(f"{word} {figure[word]:g}" for word in ("must", "aim") if figure[word] is not None)
        lines.append(
            f"  {figure['name']:12} {figure['value']:>12,.6g} {figure['unit']:8} {figure['verdict']:7} {bounds}"
        )
    also = record["also"]
    assert isinstance(also, dict)
    lines += [f"  {name:12} {value:>12,.6g}" for name, value in also.items()]
    machine = record["machine"]
    assert isinstance(machine, dict)
    lines.append("  on " + ", ".join(f"{key} {value}" for key, value in machine.items()))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
