"""Environments with the frameworks' real libraries, in the test cache, built once from hash-locked requirements.

Run as a program it builds the named ones (or all) that are missing and prints the time of each. `make test` does so before
the tests: beside them Horovod's compilation takes longer than a test may.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
NAMES: Final = ("pytorch", "tensorflow", "jax", "mpi", "notebook", "horovod", "tensorboard")
_PLACES: Final = {"pytorch": "examples/pytorch"}
"""PyTorch is tested in the demo's own environment, because it is large."""
_STAMP: Final = ".requirements.sha256"
WITHOUT_COMPILER: Final = Path(__file__).with_name("without_compiler")
"""A folder for PYTHONPATH: with it training programs start without PyTorch's compiler."""


def cache_folder() -> Path:
    """$CORRAL_CACHE, else ~/.cache/corral."""
    return Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral")


def environment(name: str) -> Path:
    """The `bin` folder of the environment `name`; built if it is missing or its requirements have changed."""
    folder = _folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_built(name):
            _build(folder, _requirements(name))
            if name == "horovod":
                _install_horovod(folder)
            (folder / _STAMP).write_text(_wanted(name))
    return folder / "bin"


def digits() -> Path:
    """scikit-learn's digits as a file for the PyTorch example's `--data`: with it a process need not import the library."""
    (file,) = environment("pytorch").parent.glob("lib/python*/site-packages/sklearn/datasets/data/digits.csv.gz")
    return file


def is_built(name: str) -> bool:
    """Whether the environment `name` is there, with today's requirements."""
    stamp = _folder(name) / _STAMP
    return stamp.exists() and stamp.read_text() == _wanted(name)


def _folder(name: str) -> Path:
    return cache_folder() / _PLACES.get(name, f"frameworks/{name}")


def _requirements(name: str) -> Path:
    return ROOT / "requirements" / "frameworks" / f"{name}.txt"


def _wanted(name: str) -> str:
    return hashlib.sha256(_requirements(name).read_bytes()).hexdigest()


def _build(folder: Path, requirements: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    env = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    python = folder / "bin" / "python"
    _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], env)
    _run([uv, "pip", "sync", "--quiet", "--require-hashes", "--python", python, requirements], env)


def _install_horovod(folder: Path) -> None:
    """Build Horovod, which has no wheels (some minutes), and keep it by its own version and PyTorch's."""
    wheels = cache_folder() / "wheels"
    python, source = folder / "bin" / "python", ROOT / "requirements" / "frameworks" / "horovod-source.txt"
    env = dict(os.environ, PATH=f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", MAKEFLAGS=f"-j{os.cpu_count()}")
    env |= {f"HOROVOD_WITHOUT_{library}": "1" for library in ("TENSORFLOW", "MXNET", "MPI")}
    env |= {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_WITH_GLOO": "1", "HOROVOD_CPU_OPERATIONS": "GLOO"}
    if not list(wheels.glob("horovod-*.whl")):
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--require-hashes"]
        _run([python, "-m", "pip", "wheel", *options, "--wheel-dir", wheels, "-r", source], env)
    (wheel,) = wheels.glob("horovod-*.whl")
    _run(
        [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--no-deps", "--python", python, wheel], env
    )


def _run(command: list[str | Path], env: dict[str, str]) -> None:
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NAMES:
        if not is_built(chosen):
            print(f"installing {chosen} for its tests", "(some minutes)" if chosen == "horovod" else "", flush=True)
            begun = time.monotonic()
            environment(chosen)
            print(f"installed {chosen} in {time.monotonic() - begun:.0f} s", flush=True)
