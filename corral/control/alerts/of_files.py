"""The keeper of alerts of a rules file, with the actions of a file of routes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from corral.control.alerts.actions import AlertActions
from corral.control.alerts.clock_fixes import ClockFixer
from corral.control.alerts.keeper import AlertKeeper
from corral.control.alerts.latest_scalars import LatestScalars
from corral.control.alerts.past_series import Read
from corral.control.alerts.reported_figures import Named, reported_figures
from corral.control.loop import Control
from corral.control.metrics.control_metrics import ControlMetrics
from corral.kernel.errors import InvalidInput
from corral.model.metrics.job_figures import SCALAR
from corral.monitor.rules.routes import Routes, parse_routes
from corral.monitor.rules.rules_file import parse_rules


def read_routes(path: Path, *, mail: bool) -> Routes:
    """Read a file of routes; `mail` says whether there is a mail server.

    Raises SpecError for a broken file, OSError for an unreadable one, InvalidInput if it mails without a mail server.
    """
    routes = parse_routes(path.read_bytes(), str(path))
    if routes.mails and not mail:
        raise InvalidInput(
            "invalid-setting", "The actions email-admin and email-user need a mail server (CORRAL_MAIL_SERVER)."
        )
    return routes


def keeper_of_files(
    rules: Path | None,
    routes: Routes | None,
    control: Control,
    metrics: ControlMetrics,
    *,
    url: str,
    kept: Read | None = None,
) -> AlertKeeper:
    """The keeper of a file's rules over what `/metrics` tells, and of the routes to actions; `url` is the server's.

    `kept` reads the past from the store of series, where there is one.

    Raises SpecError for a broken file, OSError for an unreadable one, InvalidInput if it needs agents and there are none.
    """
    groups = parse_rules(rules.read_bytes(), str(rules)) if rules is not None else ()
    if routes is not None and routes.fixes and metrics.agents is None:
        raise InvalidInput("invalid-setting", "The action fix-nvidia-gpu-low-perf needs agents (CORRAL_AGENTS).")
    fixer = None if metrics.agents is None else ClockFixer(metrics.agents, control.store, control.clock)
    actions = AlertActions(routes, control.store, fixer) if routes is not None else None

    latest = LatestScalars()

    def reported(now: float) -> Iterable[Named]:
        if not control.world_is_whole:
            return ()
        return chain(reported_figures(control.world.jobs.values(), now), latest.named(control.world.jobs, now))

    keeper = AlertKeeper(
        groups, control.store, metrics.samples, control.clock,
        instance=url.partition("://")[2], actions=actions, machines=metrics.of_machines, kept=kept, reported=reported,
    )  # fmt: skip
    if keeper.reads(SCALAR):
        metrics.scalars_for_rules = latest.take
    return keeper
