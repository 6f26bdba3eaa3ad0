"""Detect NVIDIA's Multi-Process Service, which alone confines tasks to their fraction of a device."""

from __future__ import annotations

import os
from pathlib import Path

PIPE_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
_DEFAULT_FOLDER = "/tmp/nvidia-mps"
_PID_FILE = "nvidia-cuda-mps-control.pid"
_NAME = "nvidia-cuda-mps"
"""The daemon's name as the kernel keeps it: its first 15 characters."""


def pipe_folder() -> Path:
    """Return the folder of the control daemon's pipe, as its clients find it."""
    return Path(os.environ.get(PIPE_VARIABLE) or _DEFAULT_FOLDER)


def daemon_runs(folder: Path | None = None, proc: Path = Path("/proc")) -> bool:
    """Return whether a control daemon with its pipe in this folder is alive.

    Files left by a dead daemon do not count.
    """
    folder = folder or pipe_folder()
    try:
        pid = int((folder / _PID_FILE).read_text().strip())
        name = (proc / str(pid) / "comm").read_text().strip()
    except (OSError, ValueError):
        return False
    return name.startswith(_NAME) and (folder / "control").exists()
