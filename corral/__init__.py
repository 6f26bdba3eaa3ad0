"""Corral runs AI jobs on shared accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.runtime.reporting import report as report
    from corral.runtime.reporting import waiting as waiting

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Give `corral.report` and `corral.waiting` to programs where Corral is installed; nothing else pays for the import."""
    if name in ("report", "waiting"):
        from corral.runtime import reporting

        return getattr(reporting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
