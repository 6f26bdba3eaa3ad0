"""Ask the Jupyter server of a task whether somebody works in its kernels or terminals."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

LOOK_SECONDS = 15.0
"""Seconds between two looks; within them nothing is asked."""
_ANSWER_SECONDS = 5.0
_MOST_BYTES = 1024 * 1024
_PORT, _HOST, _TOKEN = "CORRAL_PORT_NOTEBOOK", "CORRAL_HOST", "JUPYTER_TOKEN"
WATCHED = (_PORT, _HOST, _TOKEN)
"""The variables of the command by which its server is reached."""


class NotebookActivity:
    """Tells `active`: 1 where a kernel or terminal has worked since the last look, 0 where none has.

    A server that does not answer tells nothing, so nobody takes it for idle.
    """

    def __init__(self, ask: Callable[[str], Any], clock: Callable[[], float] = time.monotonic) -> None:
        """`ask` returns the JSON answer of the server to a path below its own. Raises OSError, ValueError."""
        self._ask, self._clock = ask, clock
        self._next = -math.inf
        self._seen: object = None

    def look(self) -> dict[str, float]:
        """What is known since the last look; nothing between two looks."""
        now = self._clock()
        if now < self._next:
            return {}
        self._next = now + LOOK_SECONDS
        try:
            kernels = _listed(self._ask("api/kernels"), "id")
            terminals = _listed(self._ask("api/terminals"), "name")
        except (OSError, ValueError, RecursionError):
            return {}
        seen = ({name: each[:1] for name, each in kernels.items()}, terminals)
        # A kernel that nobody has connected to stays "starting".
        works = seen != self._seen or any(state == "busy" for _, state in kernels.values())
        self._seen = seen
        return {"active": float(works)}


def _listed(found: Any, name: str) -> dict[str, tuple[str, str]]:
    """The last activity and the state of each entry of a list, by name. Raises ValueError for anything else."""
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("no list of objects")
    return {str(each.get(name)): (str(each.get("last_activity")), str(each.get("execution_state"))) for each in found}


def activity_of(path: str, env: Mapping[str, str]) -> list[Callable[[], dict[str, float]]]:
    """What to look at for the server at `path`; nothing if the variables of the command do not name its port."""
    port = env.get(_PORT, "").partition(",")[0]
    if not port.isdecimal():
        return []
    hosts = ("127.0.0.1", env.get(_HOST) or socket.gethostbyname(socket.gethostname()))
    return [NotebookActivity(lambda below: _first_answer(hosts, int(port), path + below, env.get(_TOKEN, ""))).look]


def _first_answer(hosts: tuple[str, str], port: int, path: str, token: str) -> Any:
    """The JSON answer of a server on loopback, or else at the task's own address. Raises OSError, ValueError."""
    try:
        return _answer((hosts[0], port), path, token)
    except ConnectionRefusedError:
        return _answer((hosts[1], port), path, token)


def _answer(address: tuple[str, int], path: str, token: str) -> Any:
    """The JSON answer of a server. Raises OSError, ValueError."""
    import http.client  # most tasks are no notebooks

    connection = http.client.HTTPConnection(*address, timeout=_ANSWER_SECONDS)
    try:
        headers = {"Authorization": f"token {token}"}
        connection.request("GET", f"{path}?no_track_activity=1", headers=headers)
        answer = connection.getresponse()
        text = answer.read(_MOST_BYTES + 1)
        if answer.status != 200 or len(text) > _MOST_BYTES:
            raise ValueError(f"it answers {answer.status} with {len(text)} bytes")
        return json.loads(text)
    except http.client.HTTPException as error:
        raise ValueError(str(error)) from error
    finally:
        connection.close()
