"""Run task attempts in a container that another system allotted (a YARN container): ask the server which, and report.

The agent calls the server, never the other way round. One long call waits for orders; short calls report a start or an
end at once. Both carry the slot's whole state and get the whole list of orders, so a lost answer is repaired by the next.

An attempt's folder is created exclusively before the attempt starts, so an order that comes twice starts it once. An
attempt has a session of its own, with a guard: when the agent dies, a pipe closes and the guard kills the attempt. A
NodeManager may start the agent again in the same container: it then reports the attempts of the earlier one as lost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from corral.runtime.device_probe import probe
from corral.runtime.peers import Refused
from corral.runtime.slot_attempt import Attempt, LostAttempt
from corral.runtime.slot_calls import SlotCalls
from corral.runtime.slot_session import SessionEnd, serve_session

_WAIT_SECONDS = 20
"""Seconds for which the server may hold the call that waits for orders."""
_LONGEST_PAUSE = 5.0
_MOST_SESSIONS = 10_000
RELEASED, REFUSED = 0, 3
"""Exit codes of the agent: the server needs the slot no more; the server does not know the slot."""


class Slot:
    """The state of one slot: its attempts, and the sessions that run beside them."""

    def __init__(self, calls: SlotCalls, folder: str, python: list[str], stage_command: list[str]) -> None:
        """`python` are the words that run the runtime's zipapp; `stage_command` moves data, empty for none."""
        self._calls, self._folder = calls, folder
        self._python, self._stage_command = python, stage_command
        self._attempts: dict[str, Attempt | LostAttempt] = {
            name: LostAttempt(name, os.path.join(folder, name)) for name in os.listdir(folder)
        }
        self._sessions: dict[str, None] = {}
        """The last `_MOST_SESSIONS` that were ordered: an order may come twice, soon after the first time."""
        self._open: dict[str, SessionEnd] = {}
        """Those that are not over."""
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self.released = threading.Event()

    def follow(self) -> None:
        """Carry out orders until the server releases the slot. Raises Refused when it does not know the slot."""
        threading.Thread(target=self._report, daemon=True).start()
        while not self.released.is_set():
            self._carry_out(self._ask(_WAIT_SECONDS))

    def end(self) -> None:
        """Kill every attempt."""
        for attempt in list(self._attempts.values()):
            attempt.kill()

    def _report(self) -> None:
        """Tell the server of each change, beside the call that waits for orders."""
        while True:
            self._changed.wait()
            self._changed.clear()
            try:
                self._carry_out(self._ask(0))
            except Refused:
                return  # the call that waits for orders gets the same answer, and ends the agent

    def _ask(self, wait: float) -> Any:
        """Send the state until the server answers; the answer."""
        pause = 0.2
        while True:
            try:
                return self._calls.sync({name: each.state() for name, each in self._attempts.copy().items()}, wait)
            except OSError as error:
                print(f"corral: the server does not answer ({error}); trying again", file=sys.stderr, flush=True)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _carry_out(self, orders: Any) -> None:
        with self._lock:
            for order in orders.get("start", ()):
                self._start(order)
            for order in orders.get("stop", ()):
                if order["attempt"] in self._attempts:
                    self._attempts[order["attempt"]].stop(order["signal"], order["grace"])
            for order in orders.get("sessions", ()):
                self._open_session(order)
            for name in orders.get("forget", ()):
                if name in self._attempts and self._attempts[name].forget():
                    del self._attempts[name]
            if orders.get("release"):
                self.released.set()

    def _start(self, order: Any) -> None:
        name = order["attempt"]
        if name in self._attempts:
            return
        place = os.path.join(self._folder, name)
        attempt = Attempt(order, place, self._python, self._stage_command, self._calls, self._changed.set)
        self._attempts[name] = attempt
        attempt.start()

    def _open_session(self, order: Any) -> None:
        """Begin a session, or end it: `close` is no order to begin one."""
        name = order["session"]
        if order.get("close"):
            if ending := self._open.pop(name, None):
                ending.ask()
            return
        if name in self._sessions:
            return
        self._sessions[name] = None
        if len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        found = self._attempts.get(order["attempt"])
        attempt = found if isinstance(found, Attempt) else None
        ending = self._open[name] = SessionEnd()
        threading.Thread(target=self._serve, args=(order, attempt, ending), daemon=True).start()

    def _serve(self, order: Any, attempt: Attempt | None, ending: SessionEnd) -> None:
        try:
            serve_session(self._calls, order, attempt, ending)
        finally:
            self._open.pop(order["session"], None)


def main(file: str, instance: str) -> int:
    """Follow the orders for the slot `instance` of the service that a JSON file describes; the agent's exit code."""
    with open(file, encoding="utf-8") as opened:
        given = json.load(opened)
    calls = SlotCalls(given, instance, os.environ["CONTAINER_ID"], os.environ["NM_HOST"])
    if given.get("probe"):
        return probe(calls)
    if given.get("agent"):
        from corral.runtime import node_agent  # it needs ctypes, which not every Python has

        return node_agent.run(calls, given["agent"], instance, os.environ["NM_HOST"])
    folder = os.path.join(os.getcwd(), "attempts")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    python = [sys.executable, "-I", "-S", os.path.abspath(sys.argv[0])]
    slot = Slot(calls, folder, python, given.get("stage_command", []))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        slot.follow()
    except Refused as error:
        print(f"corral: {error}", file=sys.stderr, flush=True)
        return REFUSED
    except SystemExit:
        return 128 + signal.SIGTERM
    finally:
        slot.end()
    return RELEASED


def _end(*_: object) -> None:
    raise SystemExit
