"""Corral on one real NVIDIA GPU: discovery, figures, accounts, profiles, validation, benchmarks, caches and hangs.

Each part has a server of its own; $CORRAL_BENCH_PARTS names some of them, with commas between. $CORRAL_BENCH_PYTHON is
the Python with PyTorch (and JAX), and what commands print is kept in $CORRAL_BENCH_KEEP. The GPU's settings stay as
they are. A part that fails is told at the end, and the others go on.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench import compile_cache
from bench.gpu_jobs import COMPILED, CONFINED, SLOW_LOADER, STUCK, SUITE, TRAINING
from bench.harness import CORRAL, Server, running_server

_PATIENCE: Final = 150.0
_SERIES_SECONDS: Final = 50.0
"""How long the training runs at least, so that three steps of the series are whole."""


def measure() -> dict[str, float]:
    """Return the figures of all parts. Raises RuntimeError with what failed."""
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "training": _training, "loader": _loader, "validation": _validation, "benchmarks": _benchmarks,
        "compile": _compile, "hang": _hang, "share": _share,
    }  # fmt: skip
    figures: dict[str, float] = {}
    failed = []
    for name in os.environ.get("CORRAL_BENCH_PARTS", ",".join(parts)).split(","):
        begun = time.monotonic()
        try:
            figures |= parts[name]()
        except Exception as error:  # the next part does not depend on it
            traceback.print_exc()
            failed.append(f"{name}: {error}")
        figures[f"{name}: seconds"] = time.monotonic() - begun
    _kept("figures", json.dumps(figures, indent=1))
    if failed:
        raise RuntimeError("; ".join(failed))
    return figures


# -- parts


def _training() -> dict[str, float]:
    """Discovery, then a training that keeps the GPU busy: its device, profiles, series, energy and hours."""
    library, handle = _nvml()
    figures: dict[str, float] = {}
    with running_server() as server:
        nodes = json.loads(_said(server, "nodes", "nodes", "-o", "json"))
        node = nodes[0]["name"]
        found = json.loads(_said(server, "node", "nodes", node, "-o", "json"))
        if handle is not None:
            device = found["devices"][0]
            told = (_text(library.nvmlDeviceGetName(handle)), int(library.nvmlDeviceGetMemoryInfo(handle).total))
            if (device["model"], device["memoryBytes"]) != told:
                raise RuntimeError(f"the node tells {device['model']}, {device['memoryBytes']}, NVML {told}")
        begun, energy = time.monotonic(), _energy(library, handle)
        job = _submitted(server, "trainer", TRAINING, profile=True, report=True)
        _logged(server, job, r"(?m)^step 20 ")
        for what, duration in (("torch", "3s"), ("system", "4s"), ("memory", "3s"), ("stacks", "2s"), ("python", "2s")):
            _said(server, f"profile-{what}", "profile", job, "--what", what, "--duration", duration)
        trace = json.loads(
            _said(server, "profile-torch.json", "profile", job, "--what", "torch", "--duration", "3s", "-o", "json")
        )
        figures |= {f"trace {name}": value for name, value in _numbers(trace.get("report", trace)).items()}
        time.sleep(max(0.0, _SERIES_SECONDS - (time.monotonic() - begun)))
        _said(server, "nodes-busy", "nodes", node)
        _said(server, "metrics", "metrics", job)
        series = json.loads(_said(server, "metrics.json", "metrics", job, "-o", "json"))
        figures |= _greatest(series)
        _said(server, "ranks", "profile", "ranks", job)
        _said(server, "stop", "stop", job)
        took, used = time.monotonic() - begun, _energy(library, handle) - energy
        _wait(lambda: _state(server, job) == "stopped")
        figures |= {"NVML's energy, kJ": used / 1e6, "training: seconds of job": took}
        for name, words in {
            "efficiency": ("efficiency", job), "usage": ("usage", "--by", "job"), "usage-model": ("usage", "--by", "model"),
            "usage.json": ("usage", "--by", "job", "-o", "json"), "job": ("get", job), "events": ("events", job),
        }.items():  # fmt: skip
            _said(server, name, *words)
    return figures


def _loader() -> dict[str, float]:
    """A job that waits for its data: what comes first in the advice."""
    with running_server() as server:
        job = _submitted(server, "slow-loader", SLOW_LOADER, profile=True)
        _logged(server, job, r"(?m)^step 20\b")
        said = _said(server, "profile-loader", "profile", job, "--what", "torch", "--duration", "4s")
        told = json.loads(
            _said(server, "profile-loader.json", "profile", job, "--what", "torch", "--duration", "4s", "-o", "json")
        )
        _said(server, "stop-loader", "stop", job)
    first = _advice(told)
    if not first or first[0]["subject"] != "data-loading":
        raise RuntimeError(f"the first advice is not of the data loader: {said}")
    return {"loader: estimated gain, %": 100 * float(first[0]["gain"])}


def _validation() -> dict[str, float]:
    """The built-in validation of the node, with its products, copies and NCCL on the GPU."""
    environment = {"PATH": f"{Path(_python()).parent}{os.pathsep}{os.environ['PATH']}"}
    with running_server(settings=environment) as server:
        node = json.loads(_said(server, "validated-nodes", "nodes", "-o", "json"))[0]["name"]
        _said(server, "validate", "nodes", "validate", node, "--why", "benchmark")
        try:
            _wait(lambda: _validated(server, node))
        finally:
            _said(server, "health", "nodes", "health", node)
            history = json.loads(_said(server, "health.json", "nodes", "health", node, "-o", "json"))
            job = next((each["job"] for each in history if each["job"]), "")
            log = _said(server, "validation-log", "logs", job) if job else ""
    if history[0]["after"] != "healthy":  # `cordoned` where it failed
        raise RuntimeError(f"the validation did not succeed: {log}")
    told = json.loads(log.partition("CORRAL-VALIDATION ")[2].splitlines()[0])
    return {f"validation: {name}": float(value) for name, value in told["figures"].items()}


def _benchmarks() -> dict[str, float]:
    """The benchmarks that measure a GPU, and how it stands beside its data sheet."""
    with running_server() as server:
        suite, results = server.data.parent / "suite.yaml", server.data.parent / "results.jsonl"
        suite.write_text(SUITE)
        words = ["benchmark", "run", "--suite", str(suite), "--python", _python(), "--results", str(results)]
        try:
            _said(server, "benchmark", *words)
        finally:
            text = results.read_text() if results.exists() else ""
            _kept("results.jsonl", text)
            for job in json.loads(_said(server, "benchmark-jobs", "ls", "-o", "json") or "[]"):
                _said(server, f"benchmark-log-{job['name']}", "logs", job["id"])
        diagnosed = server.corral("benchmark", "diagnose", str(results))
        _kept("diagnose", f"{diagnosed.returncode}\n{diagnosed.stdout}{diagnosed.stderr}")
    return {name: float(value) for name, value in json.loads(text.splitlines()[0]).items() if _is_number(value)}


def _compile() -> dict[str, float]:
    """The first step of a compiled model, and of one whose kernels were compiled by the job before it."""
    with running_server() as server:
        cold, warm = (
            compile_cache.first_step(server, name, _python(), COMPILED, devices=_devices()) for name in ("cold", "warm")
        )
        _said(server, "cache", "cache")
        _said(server, "cache-job", "cache", "job", "warm")
    return {"compile: cold, s": cold, "compile: warm, s": warm, "compile: part, %": 100 * warm / cold}


def _hang() -> dict[str, float]:
    """A rank of NCCL that stands still: its bundle, and what the flight recorder wrote."""
    with running_server() as server:
        job, begun = _submitted(server, "stuck", STUCK, profile=True, report=True, hangAfter="30s"), time.monotonic()
        try:
            _wait(lambda: '"bundle"' in server.corral("profile", "hung", job, "-o", "json").stdout)
            seconds = time.monotonic() - begun
        finally:
            _said(server, "hung", "profile", "hung", job)
            _said(server, "stuck-log", "logs", job)
            _said(server, "stuck-job", "get", job, "-o", "json")
            _said(server, "stuck-events", "events", job)
        folder = Path(os.environ.get("CORRAL_BENCH_KEEP") or server.data.parent)
        fetch = [str(CORRAL), "profile", "hung", job, "--fetch", "latest"]
        subprocess.run(fetch, env=server.environment, cwd=folder, check=True)
    return {"hang: seconds until told": seconds}


def _share() -> dict[str, float]:
    """Two tasks with a part of the GPU each, confined by NVIDIA's Multi-Process Service."""
    daemon = shutil.which("nvidia-cuda-mps-control") or "/usr/local/nvidia/bin/nvidia-cuda-mps-control"
    if not Path(daemon).exists():
        _kept("share", "nvidia-cuda-mps-control is not installed.")
        return {"share: MPS": 0.0}
    folder = Path(os.environ.get("CORRAL_BENCH_KEEP", "/tmp")) / "mps"
    (folder / "log").mkdir(parents=True, exist_ok=True)
    own = {"CUDA_MPS_PIPE_DIRECTORY": f"/tmp/corral-mps-{os.getpid()}", "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    Path(own["CUDA_MPS_PIPE_DIRECTORY"]).mkdir()
    subprocess.run([daemon, "-d"], env={**os.environ, **own}, check=True)
    try:
        with running_server(settings=own) as server:
            share = {"share": {"computePercent": 30, "memory": "20Gi"}}
            job = _submitted(server, "confined", CONFINED, devices=share, replicas=2)
            _wait(lambda: _state(server, job) in {"succeeded", "failed"})
            said = _said(server, "share", "logs", job)
            _said(server, "share-job", "get", job)
    finally:
        subprocess.run([daemon], input="quit\n", text=True, env={**os.environ, **own}, check=False)
    processors = [int(each) for each in re.findall(r"processors (\d+)", said)]
    return {
        "share: MPS": 1.0,
        "share: multiprocessors of a task": float(max(processors, default=0)),
        "share: tasks with bounded memory": float(said.count("memory bounded")),
    }


# -- jobs and commands


def _submitted(server: Server, name: str, program: str, *, devices: Any = None, replicas: int = 1, **more: Any) -> str:
    python = _python()
    environment = {"PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    if "BENCH_DEVICE" in os.environ:
        environment["BENCH_DEVICE"] = os.environ["BENCH_DEVICE"]
    resources = {"cpu": 1, "devices": _devices() if devices is None else devices}
    role = {"command": [python, "-c", program], "replicas": replicas, "resources": resources, "env": environment}
    file = server.data.parent / f"{name}.json"
    file.write_text(json.dumps({"name": name, "roles": {"worker": role}, **more}))
    done = server.corral("submit", str(file), "-o", "name")
    if done.returncode:
        raise RuntimeError(f"{name} was refused: {done.stderr}")
    return done.stdout.strip()


def _said(server: Server, name: str, *words: str) -> str:
    """Run a command, keep what it printed, and return its output. Raises RuntimeError when it fails."""
    done = server.corral(*words)
    _kept(name, done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError(f"corral {' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout


def _kept(name: str, text: str) -> None:
    folder = os.environ.get("CORRAL_BENCH_KEEP")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / name).write_text(text)


def _logged(server: Server, job: str, pattern: str) -> None:
    """Wait until the job has printed a line. Raises RuntimeError with its log when it ends or takes too long."""
    deadline, log = time.monotonic() + _PATIENCE, ""
    while time.monotonic() < deadline:
        log = server.corral("logs", job).stdout
        if re.search(pattern, log):
            return
        if _state(server, job) in {"succeeded", "failed", "stopped"}:
            break
        time.sleep(0.5)
    raise RuntimeError(f"the job {job} did not print {pattern}: {log[-2000:]}")


def _state(server: Server, job: str) -> str:
    return str(json.loads(server.corral("get", job, "-o", "json").stdout)["state"])


def _validated(server: Server, node: str) -> bool:
    """Whether the validation is over: the node's last move is out of it."""
    history = json.loads(server.corral("nodes", "health", node, "-o", "json").stdout)
    return bool(history) and history[0]["what"] == "moved" and history[0]["before"] == "validating"


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"it did not happen within {_PATIENCE:.0f} s")
        time.sleep(0.5)


# -- figures


def _nvml() -> tuple[Any, Any]:
    """NVML and the first GPU; (None, None) where the flow is tried without one."""
    if os.environ.get("BENCH_DEVICE") == "cpu":
        return None, None
    library = importlib.import_module("pynvml")
    library.nvmlInit()
    return library, library.nvmlDeviceGetHandleByIndex(0)


def _energy(library: Any, handle: Any) -> float:
    """Millijoules that the GPU has used since its driver was loaded."""
    return 0.0 if handle is None else float(library.nvmlDeviceGetTotalEnergyConsumption(handle))


def _devices() -> int:
    return 0 if os.environ.get("BENCH_DEVICE") == "cpu" else 1


def _python() -> str:
    return os.environ.get("CORRAL_BENCH_PYTHON", "python3")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _numbers(value: Any, name: str = "", deep: int = 3) -> dict[str, float]:
    """The numbers of a document by their paths."""
    if _is_number(value):
        return {name: float(value)}
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    found: dict[str, float] = {}
    for key, each in pairs if deep else ():
        found |= _numbers(each, f"{name}.{key}".strip("."), deep - 1)
    return found


def _advice(profile: Any) -> list[dict[str, Any]]:
    """The advice of a profile, wherever its document has it."""
    if isinstance(profile, dict):
        if isinstance(profile.get("advice"), list):
            return list(profile["advice"])
        profile = list(profile.values())
    for each in profile if isinstance(profile, list) else ():
        if found := _advice(each):
            return found
    return []


def _greatest(series: dict[str, Any]) -> dict[str, float]:
    """The greatest value of each series of the job."""
    found: dict[str, float] = {}
    for each in series["items"]:
        values = [value for value in each["mean"] if value is not None]
        if values:
            found[f"series {each['family']}"] = max(values)
    return found
