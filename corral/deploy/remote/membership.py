"""Add hosts to a running cluster and remove hosts from it: what a control plane is asked, and what its answers mean."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.reader import CONTROL_PLANE, Host
from corral.deploy.remote.asking import do_on
from corral.deploy.remote.ssh import NotReached
from corral.deploy.steps.files import PAUSE
from corral.deploy.steps.hadoop_files import USER
from corral.deploy.steps.kubeadm import CLOSED
from corral.deploy.steps.leaving import LEAVE, Leaving, is_late, refusal_of_leaving
from corral.deploy.steps.membership import (
    EMPTY,
    FORGET,
    MEASURE,
    OPEN,
    RESET,
    VALIDATE,
    Change,
    GarbledNodes,
    Node,
    parse_nodes,
    refusal_of_drain,
    refusal_of_validation,
)
from corral.deploy.steps.outcome import last_error, log_entry

_AGAIN: Final = "Read its log, then run it again."
_LOOK: Final = 60
"""Seconds that one question to the master of Hadoop waits."""
Told = Callable[[str, str], None]
"""Called with a host's name and what is done there now, or came of it."""
Measure = Callable[[str], Awaitable[Refusal | None]]
"""Validates a node that has joined, and returns why it is not good."""


async def nodes_of(plane: Host, list_path: Path) -> dict[str, Node]:
    """All nodes as Kubernetes has them, by this control plane. Raises NotReached."""
    code, text = await do_on(plane, list_path, "list_nodes")
    try:
        if code == 0:
            return parse_nodes(text)
        why = last_error(text)
    except GarbledNodes as error:
        why = str(error)
    raise NotReached(
        Refusal(f"{plane.name} does not tell its nodes: {why}", "See corral deploy status, then run it again.")
    )


@dataclass(slots=True)
class Membership:
    """A control plane of a running cluster, and the logs of the hosts that it is asked about."""

    plane: Host
    """The master of Hadoop where only hosts without Kubernetes are meant."""
    list_path: Path
    logs: Path
    told: Told
    _done: dict[str, list[str]] = field(default_factory=dict)
    _last: dict[str, str] = field(default_factory=dict)

    async def offer(self, host: Host, done: tuple[str, ...], measure: Measure | None = None) -> Change:
        """Validate a node that has joined, and let the scheduler use it; until then it stays closed.

        With `measure` it must be good by that, too.
        """
        self._done[host.name] = list(done)
        try:
            code, text = await self.do(host, VALIDATE, self.plane, "validate_node", host.name, PAUSE)
            if code:
                return self._failed(host, refusal_of_validation(text))
            self._done[host.name].append(VALIDATE)
            if measure is not None:
                self._note(host, MEASURE)
                if (refusal := await measure(host.name)) is not None:
                    self._write(host, refusal.message)
                    return self._failed(host, refusal)
                self._done[host.name].append(MEASURE)
            code, text = await self.do(host, "take the taint off its kubelet", host, "forget_taint", CLOSED)
            if code == 0:
                code, text = await self.do(host, OPEN, self.plane, "open_node", host.name, CLOSED)
            if code:
                return self._failed(host, Refusal(f"it is validated and not offered: {last_error(text)}", _AGAIN))
        except NotReached as error:
            return self._failed(host, error.refusal)
        return Change(host.name, "added", (*self._done[host.name], OPEN))

    async def remove(
        self, host: Host, steps: tuple[str, ...], seconds: int,
        *, end_tasks: bool, lost: bool, leaving: Leaving | None = None,
    ) -> Change:  # fmt: skip
        """Do these steps of a removal, in order; that of Hadoop's master by `leaving`."""
        self._done[host.name] = []
        forced = ("--force",) if end_tasks else ()
        forget = "drop_lost" if lost else "forget_node"
        if CONTROL_PLANE in host.roles:
            forget = "drop_lost_plane" if lost else "forget_plane"
        for step in steps:
            if step == LEAVE and leaving is not None:
                how = "lost" if lost else "end-tasks" if end_tasks else ""
                refusal = await self._leave(host, leaving, seconds, how)
                if refusal is not None:
                    return self._failed(host, refusal)
                self._done[host.name].append(step)
                continue
            calls = {
                EMPTY: (self.plane, "empty_node", host.name, str(seconds), *forced),
                RESET: (host, "reset_host"),
                FORGET: (self.plane, forget, host.name),
            }
            where, *words = calls[step]
            try:
                code, text = await self.do(host, step, where, *words)
            except NotReached as error:
                return self._failed(host, error.refusal)
            if code:
                refusal = Refusal(f"cannot {step}: it said {last_error(text)}", _AGAIN)
                return self._failed(host, refusal_of_drain(host.name, text, seconds) if step == EMPTY else refusal)
            self._done[host.name].append(step)
        return Change(host.name, "removed", tuple(self._done[host.name]))

    async def _leave(self, host: Host, leaving: Leaving, seconds: int, how: str) -> Refusal | None:
        """Let a host leave Hadoop, and wait until it has, unless it is lost; returns why it has not."""
        begun = time.monotonic()
        try:
            words = ("leave_hadoop", leaving.address, USER, *((how,) if how else ()))
            code, text = await self.do(host, LEAVE, leaving.master, *words)
            while not code and how != "lost":
                look = max(1, min(_LOOK, int(seconds - (time.monotonic() - begun))))
                words = ("has_left_hadoop", leaving.address, USER, str(look))
                code, text = await self.do(host, LEAVE, leaving.master, *words)
                waited = int(time.monotonic() - begun)
                if not code or not is_late(text) or waited >= seconds:
                    break
                self.told(host.name, f"waiting: {refusal_of_leaving(host.name, text, waited).message}")
                code = 0
        except NotReached as error:
            return error.refusal
        return refusal_of_leaving(host.name, text, seconds) if code else None

    async def do(self, host: Host, title: str, where: Host, *words: str) -> tuple[int, str]:
        """Do one step, and write it down; returns the exit code and what was printed. Raises NotReached."""
        self._note(host, title)
        try:
            code, text = await do_on(where, self.list_path, *words)
        except NotReached as error:
            self._write(host, f"lost: {error.refusal.message}")
            raise
        self._write(host, f"ended with {code}", text)
        return code, text

    def _note(self, host: Host, title: str) -> None:
        """Tell and write down what is done now; what is done several times is told once."""
        if title != self._last.get(host.name):
            self.told(host.name, title)
        self._last[host.name] = title
        self._write(host, title)

    def _failed(self, host: Host, refusal: Refusal) -> Change:
        return Change(host.name, "failed", tuple(self._done[host.name]), refusal)

    def _write(self, host: Host, says: str, output: str = "") -> None:
        with (self.logs / f"{host.name}.log").open("a", encoding="utf-8") as log:
            log.write(log_entry(datetime.now(UTC), says, output))
