"""Corral runs AI jobs on shared accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.runtime.reporting import report as report

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Give `corral.report` to programs where Corral is installed; nothing else pays for its import."""
    if name == "report":
        from corral.runtime.reporting import report

        return report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
