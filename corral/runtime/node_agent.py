"""Run a node's agent in a YARN container of its own, and tell the server how it begins and ends.

The agent is the administrator's command: Corral must be installed on the node. It gets its address, its node's name and
a token of its own, whose file only its user can read. When it ends, so does the container, and YARN starts it again.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import Any

from corral.runtime.peers import Refused
from corral.runtime.slot_calls import SlotCalls

TOKEN = "agent.token"
"""The file of the agent's token, in the container's folder."""
_PR_SET_PDEATHSIG = 1
_NO_PROGRAM = 127
_LINES = 5
"""The last lines of an agent that ended that are sent."""
_MOST_LINE = 300
_SAY_SECONDS = 10.0
"""Seconds that an end waits for the server to take it."""


def run(calls: SlotCalls, given: dict[str, Any], instance: str, host: str) -> int:
    """Run the agent until it ends; the exit code of the container."""
    component = instance.rpartition("-")[0]
    node = given["nodes"][component]
    _write_token(given["tokens"][component])
    address = f"{host}:{given['port']}" if ":" not in host else f"[{host}]:{given['port']}"
    words = [*given["command"], "--listen", address, "--token-file", os.path.abspath(TOKEN), "--node", node]
    libc = ctypes.CDLL(None)

    def with_us() -> None:
        """Have the agent end with this process, also when it is killed."""
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    try:
        agent = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=with_us)
    except OSError as error:
        said = f"{words[0]} cannot be started: {error.strerror}"
        print(f"corral: {said}", file=sys.stderr, flush=True)
        _tell(calls, {"state": "ended", "code": _NO_PROGRAM, "said": said}, _SAY_SECONDS)
        return _NO_PROGRAM

    asked = []

    def end(*_: object) -> None:
        asked.append(True)
        agent.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    begun = threading.Thread(target=_told, args=(calls, {"state": "begun"}), daemon=True)
    begun.start()
    last: deque[str] = deque(maxlen=_LINES)
    assert agent.stderr is not None
    for line in agent.stderr:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        last.append(line.decode(errors="replace").strip()[:_MOST_LINE])
    code = agent.wait()
    code = 128 - code if code < 0 else code
    begun.join(_SAY_SECONDS)
    _tell(
        calls,
        {"state": "ended", "code": code, "said": "YARN ended its container" if asked else " ".join(last)[-1000:]},
        _SAY_SECONDS,
    )
    return code or 1


def _write_token(token: str) -> None:
    """Write the token for the agent; a container that is started again finds that of before."""
    handle = os.open(TOKEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(token)


def _tell(calls: SlotCalls, report: dict[str, Any], seconds: float) -> None:
    """Tell the server. It may be away: the agent runs on, and the server finds it by itself."""
    told = threading.Thread(target=_told, args=(calls, report), daemon=True)
    told.start()
    told.join(seconds)


def _told(calls: SlotCalls, report: dict[str, Any]) -> None:
    try:
        calls.agent_told(report)
    except (OSError, Refused) as error:
        print(f"corral: the server was not told: {error}", file=sys.stderr, flush=True)
