"""Check whether control answers, with few imports, because a kubelet's probe does so every few seconds."""

from __future__ import annotations

import os
import socket

_SECONDS = 10.0


def control_answers(data_folder: str) -> bool:
    """Return whether the control of a data folder answers on its Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(os.path.join(data_folder, "run", "control.sock"))
            connection.sendall(b"GET /ping HTTP/1.1\r\nHost: control\r\nConnection: close\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False
