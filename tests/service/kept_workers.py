"""Workers whose processes outlive a test: each imports the service once, not once in every test that needs it.

The workers of the product belong to one event loop, and each test has a loop of its own. These are the same program,
spoken to from threads. The product's own are tested in tests/workers and through the API.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from corral.workers.pool import LENGTH, LimitExceeded, Limits, Worker, Workers


class KeptWorker(Worker):
    """A worker process that can be called from any loop."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-P", "-m", "corral.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")},
        )

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], limits: Limits) -> Any:
        """Return the function's answer, or raise its exception.

        Raises LimitExceeded when the process ended before it answered.
        """
        good, answer = await asyncio.to_thread(self._exchange, pickle.dumps((function, arguments, limits)))
        if not good:
            raise answer
        return answer

    def _exchange(self, content: bytes) -> tuple[bool, Any]:
        said, heard = self._program.stdin, self._program.stdout
        assert said is not None and heard is not None
        try:
            said.write(len(content).to_bytes(LENGTH, "big") + content)
            said.flush()
            head = heard.read(LENGTH)
            answer = heard.read(int.from_bytes(head, "big"))
        except BrokenPipeError:
            head = b""
        if len(head) < LENGTH or len(answer) < int.from_bytes(head, "big"):
            self._program.wait()
            return False, LimitExceeded("its process ended")
        good, told = pickle.loads(answer)
        return good, told

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._program.poll() is None

    async def end(self) -> None:
        """Kill the process, even during a call."""
        self.kill()

    def kill(self) -> None:
        """Kill the process and wait until it is gone."""
        self._program.kill()
        self._program.wait()


class KeptWorkers(Workers):
    """Bounds and turns of one service, and processes that all of them use one after the other."""

    idle: ClassVar[list[KeptWorker]] = []

    def _take(self) -> Worker:
        while self.idle:
            worker = self.idle.pop()
            if worker.alive():
                return worker
        return KeptWorker()

    def _keep(self, worker: Worker) -> None:
        assert isinstance(worker, KeptWorker)
        self.idle.append(worker)


@atexit.register
def _end_all() -> None:
    for worker in KeptWorkers.idle:
        worker.kill()
