"""Why: only NVIDIA's Multi-Process Service keeps tasks to their parts of a device, so whether it runs has to be known."""

from __future__ import annotations

import os
from pathlib import Path

PIPE_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
_DEFAULT_FOLDER = "/tmp/nvidia-mps"
_PID_FILE = "nvidia-cuda-mps-control.pid"
_NAME = "nvidia-cuda-mps"
"""The first 15 letters of the daemon's name, which is what the kernel keeps of it."""


def pipe_folder() -> Path:
    """Where the control daemon has its pipe, as its clients look for it."""
    return Path(os.environ.get(PIPE_VARIABLE) or _DEFAULT_FOLDER)


def daemon_runs(folder: Path | None = None, proc: Path = Path("/proc")) -> bool:
    """Whether a control daemon with its pipe in this folder is alive; a file that one left behind does not count."""
    folder = folder or pipe_folder()
    try:
        pid = int((folder / _PID_FILE).read_text().strip())
        name = (proc / str(pid) / "comm").read_text().strip()
    except (OSError, ValueError):
        return False
    return name.startswith(_NAME) and (folder / "control").exists()
