"""The guard around every call of an installed part of a policy, which may end a call that takes too long.

The scheduler reads no clock, so whoever runs it installs a guard; by default a call may take any time. Control installs
`corral.control.part_time_limit.PartTimeLimit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class TookTooLong(BaseException):
    """A part used up its time in this plan. No Exception, so that a part that catches those does not stop it."""


class CallGuard(Protocol):
    """Runs the calls of installed parts."""

    def begin_plan(self) -> None:
        """Take note that a plan begins; a limit of time is for all calls of one plan."""
        ...

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the call returns; raises TookTooLong in it when its time is used up."""
        ...


class Unlimited:
    """Lets each call take any time."""

    def begin_plan(self) -> None:
        """Do nothing."""

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the call returns."""
        return call(*args, **kwargs)


_guard: CallGuard = Unlimited()


def install_guard(guard: CallGuard) -> CallGuard:
    """Let `guard` run the calls of this process from now on; return the guard before it."""
    global _guard
    before, _guard = _guard, guard
    return before


def begin_plan() -> None:
    """Tell the guard that a plan begins."""
    _guard.begin_plan()


def guarded(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a call of an installed part under the guard; raises TookTooLong."""
    return _guard.run(call, *args, **kwargs)
