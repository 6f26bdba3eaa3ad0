"""What the tasks of a job checked before their commands began, as the API shows it."""

from __future__ import annotations

from corral.model.preflight.network import NetworkReport
from corral.model.preflight.platform import PlatformReport
from corral.model.records import Record


class PreflightReport(Record, frozen=True):
    """What the tasks of a job's current attempt checked before their commands began."""

    attempt: int
    checks: tuple[str, ...]
    """What the job asks to be checked."""
    network: NetworkReport | None = None
    """null until a task told what it measured."""
    platform: PlatformReport | None = None
    """null until a task told what its machine is like."""
