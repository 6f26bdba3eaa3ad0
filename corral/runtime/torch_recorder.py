"""Let Corral ask PyTorch for its flight recorder: PyTorch calls `begin` as it is imported, as a backend that loads itself.

One file of the standard library and PyTorch alone; `torch_daemon` copies it beside a task. PyTorch's own server answers
on a socket that only this user can reach, in a thread of C++ that needs no Python, so also in a program that hangs.
"""

import importlib
import os

VARIABLE = "CORRAL_FLIGHT_RECORDER"
"""The environment variable with the folder for sockets and dumps."""


def begin() -> None:
    """Answer in this process until it ends; a PyTorch without such a server answers nothing."""
    folder = os.environ.get(VARIABLE, "")
    try:
        parts = importlib.import_module("torch._C._distributed_c10d")
        server = parts._WorkerServer(os.path.join(folder, f"recorder-{os.getpid()}.sock"))
    except Exception:  # a program must run as it does without Corral
        return
    import atexit

    atexit.register(server.shutdown)
