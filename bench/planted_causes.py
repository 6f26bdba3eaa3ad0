"""How well the gain that a profile's advice estimates fits what following the advice gains, for each planted cause.

Each cause is a real PyTorch job: its pace, its profile, and its pace once the advice is followed, on a server of the
benchmark's own. The figure is how far the gain is from the estimate, as a part of the estimate; the median of the
rounds of $CORRAL_BENCH_ROUNDS. The Python with PyTorch is named by $CORRAL_BENCH_PYTHON; profiles are kept in the folder
$CORRAL_BENCH_KEEP.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Final

from bench.harness import Server, running_server
from bench.planted_jobs import CAUSES, STEP, Cause
from bench.stats import median

_ROUNDS: Final = 3
_WARM_UP: Final = 3
"""Steps at the start of a job that do not count."""
_SECONDS: Final = 8.0
"""The least that the counted steps of a job take."""
_PATIENCE: Final = 120.0
_PROFILE: Final = {"torch": "5s", "system": "4s"}
_TRIES: Final = 3


def measure() -> dict[str, float]:
    """Return for each cause how far gain and estimate are apart, both in percent, and how often its advice came first."""
    rounds = int(os.environ.get("CORRAL_BENCH_ROUNDS", _ROUNDS))
    figures: dict[str, float] = {}
    with running_server() as server:
        for name, cause in CAUSES.items():
            found = [_round(server, cause, f"{cause.subject}-{number}") for number in range(rounds)]
            figures[name] = median([100 * abs(gain - estimate) / estimate for estimate, gain, _, _ in found])
            figures[f"{name}: estimate"] = median([100 * estimate for estimate, *_ in found])
            figures[f"{name}: gain"] = median([100 * gain for _, gain, *_ in found])
            figures[f"{name}: farthest"] = max(100 * abs(gain - estimate) / estimate for estimate, gain, _, _ in found)
            figures[f"{name}: first"] = sum(first for _, _, first, _ in found)
            figures[f"{name}: twins with advice"] = sum(advised for *_, advised in found)
    return figures


def _round(server: Server, cause: Cause, name: str) -> tuple[float, float, bool, bool]:
    """The estimate, the gain, whether the advice came first, and whether the healthy twin got any.

    Raises RuntimeError when the advice is not given at all.
    """
    turn = server.data.parent / f"{name}-healthy"
    words = [str(turn), str(server.data.parent / name)]
    python = os.environ.get("CORRAL_BENCH_PYTHON", "python3")
    role = {
        "command": [python, "-c", cause.program, *words],
        "replicas": cause.tasks,
        "resources": {"cpu": cause.cpu},
        "env": {"PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"},
    }
    file = server.data.parent / f"{name}.json"
    file.write_text(json.dumps({"name": name, "profile": True, "roles": {"worker": role}}))
    job = _told(server, "submit", str(file), "-o", "name").strip()
    try:
        slow, told = _pace(server, job, 0.0), _profiled(server, cause, name)
        turn.touch()
        quick, of_twin = _pace(server, job, time.monotonic()), _profiled(server, cause, name)
    finally:
        _told(server, "stop", job)
    estimates = [each["gain"] for each in told if each["subject"] == cause.subject]
    if not estimates:
        raise RuntimeError(f"the profile of {name} has no advice of {cause.subject}: {told}")
    return estimates[0], 1 - quick / slow, told[0]["subject"] == cause.subject, bool(of_twin)


def _pace(server: Server, job: str, since: float) -> float:
    """Seconds of a step in the mean, of those that ended after `since`. Raises RuntimeError when there are too few."""
    deadline, log = time.monotonic() + _PATIENCE, ""
    while time.monotonic() < deadline:
        log = _told(server, "logs", job, "worker-0")
        steps = [at for each in re.findall(STEP, log) if (at := float(each)) > since][_WARM_UP:]
        if len(steps) > 1 and steps[-1] - steps[0] >= _SECONDS:
            return (steps[-1] - steps[0]) / (len(steps) - 1)
        time.sleep(0.5)
    raise RuntimeError(f"the job made no steps for {_SECONDS:.0f} s: {log[-2000:]}")


def _profiled(server: Server, cause: Cause, name: str) -> list[dict[str, Any]]:
    """The advice of a profile of all ranks; again where a process that stalled asked too late for a trace."""
    words = ("profile", name, "--all", "--what", cause.what, "--duration", _PROFILE[cause.what], "-o", "json")
    problems: list[object] = []
    for _ in range(_TRIES):
        done = server.corral(*words)
        facts = json.loads(done.stdout)
        if folder := os.environ.get("CORRAL_BENCH_KEEP"):
            (Path(folder) / f"{name}-{time.monotonic():.0f}.json").write_text(done.stdout)
        if not done.returncode and not facts["problems"]:
            return list(facts["advice"])
        problems.append((facts["problems"], done.stderr[-1000:]))
    raise RuntimeError(f"{name} was not profiled: {problems}")


def _told(server: Server, *words: str) -> str:
    done = server.corral(*words)
    if done.returncode:
        raise RuntimeError(f"corral {words[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
