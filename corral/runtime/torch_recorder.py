"""Let Corral ask PyTorch for its flight recorder: PyTorch calls `begin` as it is imported, as a backend that loads itself.

One file of the standard library and PyTorch alone; `torch_daemon` copies it beside a task. PyTorch's own server answers
on a socket that only this user can reach, in a thread of C++ that needs no Python, so also in a program that hangs.
"""

import importlib
import os

VARIABLE = "CORRAL_FLIGHT_RECORDER"
"""The environment variable with the folder for sockets and dumps."""

_RENAMED = {
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_FR_DUMP_TEMP_FILE",
}
"""Variables by their names before PyTorch 2.9, of which later ones warn, and their names since."""


def begin() -> None:
    """Answer in this process until it ends; a PyTorch without such a server answers nothing."""
    folder = os.environ.get(VARIABLE, "")
    try:
        parts = importlib.import_module("torch._C._distributed_c10d")
        server = parts._WorkerServer(os.path.join(folder, f"recorder-{os.getpid()}.sock"))
        forget_old_names(str(importlib.import_module("torch.version").__version__))
    except Exception:  # a program must run as it does without Corral
        return
    import atexit

    atexit.register(server.shutdown)


def forget_old_names(version: str) -> None:
    """Take variables under their old names from the environment where this PyTorch knows the new ones."""
    if tuple(int(each) for each in version.split(".")[:2]) >= (2, 9):
        for old, new in _RENAMED.items():
            if os.environ.get(old) == os.environ.get(new):
                os.environ.pop(old, None)
