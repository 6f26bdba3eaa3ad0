"""The keeper of the alerts of a rules file."""

from __future__ import annotations

from pathlib import Path

from corral.control.alerts.keeper import AlertKeeper
from corral.control.loop import Control
from corral.control.metrics.control_metrics import ControlMetrics
from corral.monitor.rules.rules_file import parse_rules


def keeper_of_file(path: Path, control: Control, *, url: str) -> AlertKeeper:
    """The keeper of a file's rules over what control measures; `url` is the server's.

    Raises SpecError for a broken file, OSError for an unreadable one.
    """
    groups = parse_rules(path.read_bytes(), str(path))
    samples = ControlMetrics(control).samples
    return AlertKeeper(groups, control.store, samples, control.clock, instance=url.partition("://")[2])
