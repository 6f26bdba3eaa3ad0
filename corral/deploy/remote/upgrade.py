"""Upgrade one node: close it, wait for its tasks, drain it, do its steps, validate it, and open it again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from corral.deploy.checks.connection import Refusal
from corral.deploy.hosts.reader import Host, Hosts
from corral.deploy.remote.membership import Membership
from corral.deploy.remote.ssh import NotReached
from corral.deploy.remote.work import do_steps
from corral.deploy.steps.files import PAUSE
from corral.deploy.steps.membership import Change, refusal_of_drain, refusal_of_validation
from corral.deploy.steps.outcome import Outcome, last_error
from corral.deploy.steps.step import HostPlan
from corral.deploy.steps.upgrade import CLOSE, DRAIN, RETURN, VALIDATE, WAIT, images_of, named, parse_tasks, rest_of

_AGAIN: Final = "Read its log, then run it again."
_LOOK: Final = 60
"""Seconds of one look at the tasks of a node; the control plane does nothing else for `corral deploy` meanwhile."""


class _Refused(Exception):
    """A step that did not come to its end, with the reason."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(slots=True)
class Upgrade:
    """A running cluster whose nodes are upgraded."""

    hosts: Hosts
    member: Membership
    packages: Sequence[Path]
    seconds: int
    """How long the tasks of a node may take to end, and then its other pods."""
    end_tasks: bool
    _done: list[str] = field(default_factory=list)

    async def images(self, plans: Sequence[HostPlan]) -> dict[str, Outcome]:
        """Import the images of all nodes, at once."""
        wanted = {plan.name: images_of(plan) for plan in plans if images_of(plan).doable}
        return await do_steps(
            self.hosts, wanted, self.member.list_path, self.member.logs, self.packages, self.member.told
        )  # fmt: skip

    async def node(self, host: Host, plan: HostPlan, titles: Sequence[str], done: Sequence[str]) -> Change:
        """Do what is still to be done of a node, by these titles; the steps in `done` are already."""
        self._done = list(done)
        try:
            if CLOSE in titles:
                await self._call(host, CLOSE, "close_node", host.name)
                if not self.end_tasks:
                    await self._wait(host)
                await self._drain(host)
            await self._steps(host, rest_of(plan))
            if VALIDATE in titles:
                await self._validate(host)
                await self._call(host, RETURN, "open_again", host.name)
        except _Refused as error:
            return Change(host.name, "failed", tuple(self._done), error.refusal)
        except NotReached as error:
            return Change(host.name, "failed", tuple(self._done), error.refusal)
        return Change(host.name, "upgraded", tuple(self._done))

    async def _call(self, host: Host, title: str, *words: str) -> str:
        """Ask the control plane to do something; returns what it printed. Raises NotReached or _Refused."""
        code, text = await self.member.do(host, title, self.member.plane, *words)
        if code:
            raise _Refused(Refusal(f"cannot {title}: it said {last_error(text)}", _AGAIN))
        if title not in self._done:
            self._done.append(title)
        return text

    async def _wait(self, host: Host) -> None:
        begun, told, look = time.monotonic(), "", 0
        while True:
            tasks = parse_tasks(await self._call(host, WAIT, "wait_for_tasks", host.name, str(look)))
            left = self.seconds - (time.monotonic() - begun)
            if tasks is None:
                raise _Refused(Refusal(f"cannot {WAIT}: the control plane names none", _AGAIN))
            if not tasks:
                return
            if left <= 0:
                remedy = (
                    f"It takes no new ones. Move them (corral drain kubernetes/{host.name}), wait, or: --end-tasks."
                )
                raise _Refused(Refusal(f"tasks run on it after {self.seconds} s: {named(tasks)}", remedy))
            if named(tasks) != told:
                told = named(tasks)
                self.member.told(host.name, f"waiting for {told}")
            look = max(1, min(_LOOK, int(left)))

    async def _drain(self, host: Host) -> None:
        forced = ("--force",) if self.end_tasks else ()
        words = ("empty_node", host.name, str(self.seconds), *forced)
        code, text = await self.member.do(host, DRAIN, self.member.plane, *words)
        if code:
            raise _Refused(refusal_of_drain(host.name, text, self.seconds))
        self._done.append(DRAIN)

    async def _steps(self, host: Host, plan: HostPlan) -> None:
        if not plan.doable:
            return
        done = await do_steps(
            self.hosts, {host.name: plan}, self.member.list_path, self.member.logs, self.packages, self.member.told
        )  # fmt: skip
        self._done += done[host.name].done
        refusal = done[host.name].refusal
        if refusal is not None:
            raise _Refused(refusal)

    async def _validate(self, host: Host) -> None:
        wanted = f"v{self.hosts.kubernetes.version}"
        await self._call(host, f"wait for its kubelet to be ready with {wanted}", "has_version", host.name, wanted)
        code, text = await self.member.do(host, VALIDATE, self.member.plane, "validate_node", host.name, PAUSE)
        if code:
            refusal = refusal_of_validation(text, "upgraded and takes no pods yet")
            raise _Refused(refusal)
        self._done.append(VALIDATE)
