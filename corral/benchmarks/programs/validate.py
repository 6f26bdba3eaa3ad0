"""Run the benchmarks of a suite one after the other on one node, and print all figures as those of a node's validation.

```
python -m corral.benchmarks.programs.validate RUNS
```
RUNS is a list in JSON: for each benchmark its `words` (see `run`), the `seconds` it may take, and whether it is a `gang`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from corral.benchmarks.programs.run import MARK

VALIDATION = "CORRAL-VALIDATION "
"""What the line of figures begins with, as in the built-in validation."""
_RATES = (("_time", 1e3), ("_lat", 1e6))
"""Ends of metrics that are better when smaller, and their units in a second; the validation's figures are rates."""


def main(runs: list[dict[str, Any]], tool: str) -> int:
    """Run all; 0 if each ended well."""
    figures: dict[str, float] = {}
    problems: list[str] = []
    for run in runs:
        words = [sys.executable, "-m", "corral.benchmarks.programs.run", *run["words"]]
        if run["gang"]:
            words.append(f"--gang=127.0.0.1:{_free_port()}")
        text, problem = _output(words, float(run["seconds"]))
        told = [json.loads(line[len(MARK) :]) for line in text.splitlines() if line.startswith(MARK)]
        for each in told:
            figures.update(_as_rates(each["metrics"]))
            problems += [f"{run['words'][0]}: {found}" for found in each["problems"]]
        if problem or not told:
            problems.append(f"{run['words'][0]} {problem or 'told no figures'}")
    print(VALIDATION + json.dumps({"figures": figures, "problems": problems, "with": tool}), flush=True)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _output(words: list[str], seconds: float) -> tuple[str, str]:
    """What a benchmark prints, and what is wrong where it takes too long; its processes are ended then."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            return process.communicate(timeout=seconds)[0], ""
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0], f"did not end within {seconds:.0f} s"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _as_rates(metrics: dict[str, float]) -> dict[str, float]:
    """Metrics of which more is better; times become how many there are in a second."""
    rates = {}
    for metric, value in metrics.items():
        name, colon, rank = metric.partition(":")
        for end, units in _RATES:
            if name.endswith(end):
                name, value = f"{name[: -len(end)]}_per_second", units / value if value > 0 else 0.0
        if not name.endswith("/return_code"):
            rates[f"{name}{colon}{rank}"] = value
    return rates


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2]))
