"""The report on who used how much, and the series of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import (
        BudgetList,
        BudgetView,
        ChargePage,
        EfficiencyReport,
        FairnessReport,
        IdleJob,
        IdleList,
        JobEfficiency,
        SeriesAnswer,
        UsageReport,
    )


def usage(*, by: str = "user", begin: str = "", end: str = "", user: str = "", queue: str = "") -> Call[UsageReport]:
    """Return the device-seconds used from `begin` to `end`, by `user`, `queue`, `job`, `tag`, `node` or `model`."""
    return call("GET", "/usage", {"by": by, "from": begin, "to": end, "user": user, "queue": queue})


def charges(*, begin: str = "", end: str = "", user: str = "", queue: str = "") -> Call[ChargePage]:
    """Return what users used by day, queue, device model and meter, with its cost; go on with `next` as `begin`."""
    return call("GET", "/usage/charges", {"from": begin, "to": end, "user": user, "queue": queue})


def fairness(*, week: str = "", user: str = "") -> Call[FairnessReport]:
    """Return what queues were owed and got in a week such as `2026-W48`; by default in the last whole one.

    With `user` the parts on users and jobs are about that one alone.
    """
    return call("GET", "/usage/fairness", {"week": week, "user": user})


def efficiency(job: str) -> Call[JobEfficiency]:
    """Return what a job asked for and what it used, in numbers and sentences."""
    return call("GET", f"/jobs/{quote(job, safe='')}/efficiency")


def efficiency_report(*, user: str = "", queue: str = "", begin: str = "", end: str = "") -> Call[EfficiencyReport]:
    """Return what the jobs of a user or queue asked for and used from `begin` to `end`; by default in the last week."""
    return call("GET", "/efficiency", {"user": user, "queue": queue, "from": begin, "to": end})


def idle_jobs(*, job: str = "") -> Call[IdleList]:
    """Return the jobs that leave their devices idle, those first that waste the most; only one if its id is named."""
    return call("GET", "/idle", {"job": job})


def extend_idle(job: str, *, reason: str) -> Call[IdleJob]:
    """Give a job whose owner was warned of idle devices more time, once."""
    return call("POST", f"/jobs/{quote(job, safe='')}/idle/extend", data={"reason": reason})


def budgets() -> Call[BudgetList]:
    """Return how the budgets of device-hours of queues and users stand."""
    return call("GET", "/budgets")


def set_budget(
    kind: str, name: str, window: str, device_hours: float, *, warn_at: float = 0.8, when_used_up: str = "warn"
) -> Call[BudgetView]:
    """Set the device-hours that a `queue` or `user` may use in each `day`, `week` or `month`.

    Jobs that run while it is used up run on (`warn`) or are suspended until it allows more (`hold`).
    """
    data = {"deviceHours": device_hours, "warnAt": warn_at, "whenUsedUp": when_used_up}
    return call("PUT", _budget(kind, name, window), data=data)


def top_up_budget(kind: str, name: str, window: str, device_hours: float, *, reason: str) -> Call[BudgetView]:
    """Add device-hours to a budget until its present window ends."""
    return call("POST", f"{_budget(kind, name, window)}/top-ups", data={"deviceHours": device_hours, "reason": reason})


def remove_budget(kind: str, name: str, window: str) -> Call[None]:
    """Remove a budget."""
    return call("DELETE", _budget(kind, name, window))


def _budget(kind: str, name: str, window: str) -> str:
    return f"/budgets/{quote(kind, safe='')}/{quote(name, safe='')}/{quote(window, safe='')}"


def series(
    families: Sequence[str] = (), *, job: str = "", labels: Sequence[str] = (), begin: str = "", end: str = "",
    step: str = "",
) -> Call[SeriesAnswer]:  # fmt: skip
    """Return series of metrics: of a job all `families` or some of them, or of the server some.

    `labels` are of the form `queue=research`. `step` is a duration such as `5m`; by default a day has some 300 steps.
    """
    asked = {"family": families, "job": job, "label": labels, "from": begin, "to": end, "step": step}
    return call("GET", "/series", asked)
