"""Whether somebody works in a notebook is read from its kernels and terminals; what cannot be read tells nothing."""

from __future__ import annotations

import http.server
import threading
from typing import Any

import pytest

from corral.runtime.notebook_activity import LOOK_SECONDS, NotebookActivity, activity_of
from corral.runtime.reports import ACTIVE_SECONDS, Reports
from tests.reserved import free_port
from tests.runtime.test_progress_is_reported import ATTEMPT, Server


class Jupyter:
    """Answers as its test says."""

    def __init__(self) -> None:
        self.kernels: Any = []
        self.terminals: Any = []
        self.now = 0.0
        self.activity = NotebookActivity(self.ask, lambda: self.now)

    def ask(self, path: str) -> Any:
        found = {"api/kernels": self.kernels, "api/terminals": self.terminals}[path]
        if isinstance(found, Exception):
            raise found
        return found

    def look(self) -> dict[str, float]:
        self.now += LOOK_SECONDS
        return self.activity.look()


def kernel(at: str, state: str = "idle") -> dict[str, str]:
    return {"id": "k1", "last_activity": at, "execution_state": state}


def test_kernels_and_terminals_that_worked_since_the_last_look_are_active() -> None:
    jupyter = Jupyter()
    jupyter.kernels = [kernel("10:00")]
    assert [jupyter.look(), jupyter.look()] == [{"active": 1.0}, {"active": 0.0}]
    assert jupyter.activity.look() == {}, "nothing is asked between two looks"
    jupyter.kernels = [kernel("10:01")]
    assert [jupyter.look(), jupyter.look()] == [{"active": 1.0}, {"active": 0.0}]
    jupyter.kernels = [kernel("10:01", "busy")]
    assert [jupyter.look(), jupyter.look()] == [{"active": 1.0}, {"active": 1.0}]
    jupyter.kernels, jupyter.terminals = [kernel("10:01")], [{"name": "1", "last_activity": "10:02"}]
    assert [jupyter.look(), jupyter.look()] == [{"active": 1.0}, {"active": 0.0}]


@pytest.mark.parametrize("answer", [OSError("away"), ValueError("404"), {}, [1], "[]", None])
def test_a_server_that_does_not_answer_as_jupyter_does_tells_nothing(answer: Any) -> None:
    jupyter = Jupyter()
    jupyter.kernels = answer
    assert [jupyter.look(), jupyter.look()] == [{}, {}]


def test_what_stays_the_same_is_told_again_before_the_server_forgets_it() -> None:
    server = Server()
    reports = Reports(server, ATTEMPT, [lambda: {"active": 0.0}])
    for second in (0.0, 1.0, ACTIVE_SECONDS - 1, ACTIVE_SECONDS, ACTIVE_SECONDS + 1):
        reports.look(second)
    assert [each["active"] for each in server.told] == [0.0, 0.0]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_a_server_on_loopback_or_at_the_tasks_own_address_is_asked(host: str) -> None:
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, format: str, *words: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer((host, free_port()), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (look,) = activity_of("/", {"CORRAL_HOST": "127.0.0.2", "CORRAL_PORT_NOTEBOOK": str(server.server_port)})
        assert look() == {"active": 1.0}
        server.shutdown()


def test_a_task_without_the_port_of_a_notebook_is_not_asked() -> None:
    assert activity_of("/", {}) == [] == activity_of("/", {"CORRAL_PORT_NOTEBOOK": "none"})
