"""The keeper of alerts of a rules file, with the actions of a file of routes."""

from __future__ import annotations

from pathlib import Path

from corral.control.alerts.actions import AlertActions
from corral.control.alerts.keeper import AlertKeeper
from corral.control.loop import Control
from corral.control.metrics.control_metrics import ControlMetrics
from corral.kernel.errors import InvalidInput
from corral.monitor.rules.routes import parse_routes
from corral.monitor.rules.rules_file import parse_rules


def keeper_of_files(
    rules: Path | None, routes: Path | None, control: Control, metrics: ControlMetrics, *, url: str, mail: bool = False
) -> AlertKeeper:
    """The keeper of a file's rules over what `/metrics` tells, and of a file's routes; `url` is the server's.

    `mail` says whether there is a mail server. Raises SpecError for a broken file, OSError for an unreadable one,
    InvalidInput for routes that mail without a mail server.
    """
    groups = parse_rules(rules.read_bytes(), str(rules)) if rules is not None else ()
    actions = None
    if routes is not None:
        parsed = parse_routes(routes.read_bytes(), str(routes))
        if parsed.mails and not mail:
            raise InvalidInput(
                "invalid-setting", "The actions email-admin and email-user need a mail server (CORRAL_MAIL_SERVER)."
            )
        actions = AlertActions(parsed, control.store)
    return AlertKeeper(
        groups, control.store, metrics.samples, control.clock,
        instance=url.partition("://")[2], actions=actions,
    )  # fmt: skip
