"""The calls of questions that are answered later, the same for each kind."""

from __future__ import annotations

import json
from typing import Any, Final, Generic, NamedTuple, TypeVar

from corral.client.calls import Call, call, raise_for

Answer = TypeVar("Answer")

RUNNING: Final = "running"
PATIENCE: Final = 60.0
"""Seconds for which a client that follows a question goes on while the server does not answer."""


class LaterCalls(NamedTuple, Generic[Answer]):
    """The calls about a question of one kind, by its id."""

    path: str
    """The path of the kind."""

    def state(self, question: str) -> Call[Any]:
        """Return its state: its progress, then its answer or its error."""
        return call("GET", f"{self.path}/{question}")

    def cancel(self, question: str) -> Call[None]:
        """Cancel it, and have its answer forgotten."""
        return call("DELETE", f"{self.path}/{question}")

    def events(self, question: str) -> Call[bytes]:
        """Return the stream of its states, to be parsed by a `Feed`."""
        return call("GET", f"{self.path}/{question}/events", accept="text/event-stream")

    def answer_of(self, status: Any) -> Answer:
        """Return the answer of a question that is done. Raises the error that it failed with."""
        error = status["error"]
        if error is not None:
            said = {name: error[name] for name in ("code", "message", "problems")}
            raise_for(error["status"], json.dumps(said).encode())
        answer: Answer = status["answer"]
        return answer
